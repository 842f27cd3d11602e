// The built-in corpus: French grammar is checked with separate lists, not with the tables that generate it.
#include "qkv/data/en_fr.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "qkv/core/check.h"
#include "support/files.h"

using namespace qkv;

namespace {

using Words = std::vector<std::string>;
using WordSet = std::set<std::string>;

Words words(const std::string& sentence) {
  std::istringstream in(sentence);
  return {std::istream_iterator<std::string>(in), {}};
}

const std::vector<AlignedPair>& corpus() {
  static const std::vector<AlignedPair> pairs = en_fr_corpus();
  return pairs;
}

bool starts_with_vowel(const std::string& word) {
  if (word == "hamster" || word == "hamsters") return false;  // h aspiré
  for (const char* start : {"a", "e", "i", "o", "u", "y", "h", "é", "ê", "è", "à", "œ", "î", "ô"})
    if (word.starts_with(start)) return true;
  return false;
}

const WordSet feminine = {"femme",  "fille", "mère",   "sœur",         "infirmière", "pomme",   "orange",  "viande",
                          "soupe",  "eau",   "lettre", "histoire",     "robe",       "chemise", "voiture", "clé",
                          "boîte",  "table", "porte",  "fenêtre",      "fleur",      "chanson", "musique", "cuisine",
                          "maison", "gare",  "école",  "bibliothèque", "plage"};
const WordSet masculine = {"homme",   "garçon",   "enfant",  "père",   "frère",      "ami",     "professeur",
                           "médecin", "étudiant", "chien",   "chat",   "oiseau",     "cheval",  "hamster",
                           "gâteau",  "pain",     "fromage", "lait",   "café",       "thé",     "livre",
                           "chapeau", "manteau",  "vélo",    "sac",    "lit",        "arbre",   "film",
                           "bus",     "train",    "jardin",  "marché", "restaurant", "hôpital", "parc"};
const WordSet masculine_only = {"le",   "un",  "ce",    "cet",   "du",      "au",     "petit", "grand",
                                "beau", "bel", "vieux", "vieil", "nouveau", "nouvel", "bon"};
const WordSet feminine_only = {"la",     "une",    "cette", "ma",      "ta",       "sa",
                               "petite", "grande", "belle", "vieille", "nouvelle", "bonne"};
const WordSet plural_only = {"les", "des",   "aux",  "ces",   "mes",    "tes",  "ses",
                             "nos", "leurs", "deux", "trois", "quatre", "cinq", "six"};
const WordSet after_masculine = {"bleu", "noir", "blanc", "français", "cher"};
const WordSet after_feminine = {"bleue", "noire", "blanche", "française", "chère"};

using qkv_test::error_of;

}  // namespace

TEST(EnFr, GivesTheRequestedSizeAndTheSameSentencesForTheSameSeed) {
  EXPECT_EQ(corpus().size(), 20'000u);
  const std::vector<AlignedPair> again = en_fr_corpus({.size = 2'000}),
                                 other = en_fr_corpus({.size = 2'000, .seed = 2});
  size_t same = 0;
  for (size_t i = 0; i < again.size(); ++i) {
    ASSERT_EQ(again[i].source, corpus()[i].source) << "a smaller corpus is a prefix";
    ASSERT_EQ(again[i].target, corpus()[i].target);
    ASSERT_EQ(again[i].links, corpus()[i].links);
    same += again[i].source == other[i].source;
  }
  EXPECT_LT(same, 100u);
}

TEST(EnFr, MapsEachSentenceToOneSentenceInBothDirectionsForAnySeed) {
  std::map<std::string, std::string> french, english;
  for (const uint64_t seed : {1, 2, 3, 4})
    for (const AlignedPair& pair : en_fr_corpus({.size = 20'000, .seed = seed})) {
      EXPECT_EQ(french.emplace(pair.source, pair.target).first->second, pair.target) << pair.source;
      EXPECT_EQ(english.emplace(pair.target, pair.source).first->second, pair.source) << pair.target;
    }
  EXPECT_GT(french.size(), 60'000u);
}

TEST(EnFr, HasDistinctSentencesOf3To16WordsFromVocabulariesOf200To500) {
  WordSet sources, targets, english, french;
  for (const AlignedPair& pair : corpus()) {
    EXPECT_TRUE(sources.insert(pair.source).second) << pair.source;
    EXPECT_TRUE(targets.insert(pair.target).second) << pair.target;
    const Words en = words(pair.source), fr = words(pair.target);
    for (const Words& side : {en, fr}) {
      EXPECT_GE(side.size(), 3u) << pair.source;
      EXPECT_LE(side.size(), 16u) << pair.source;
      EXPECT_TRUE(side.back() == "." || side.back() == "?") << pair.source;
    }
    english.insert(en.begin(), en.end());
    french.insert(fr.begin(), fr.end());
  }
  for (const WordSet& vocabulary : {english, french}) {
    EXPECT_GE(vocabulary.size(), 200u);
    EXPECT_LE(vocabulary.size(), 500u);
  }
}

TEST(EnFr, LinksEveryWordAndEveryContentWordSurely) {
  const WordSet light = {
      "a",   "an", "the", "to", "for", "back", "is",  "are", "am", "do", "does",
      "did", "'s", "old", "of", "le",  "la",   "les", "l'",  "du", "au"};  // may have possible links only
  for (const AlignedPair& pair : corpus()) {
    const Words en = words(pair.source), fr = words(pair.target);
    std::set<int32_t> en_sure, fr_sure, en_any, fr_any;
    for (const auto& [s, t] : pair.links) {
      ASSERT_TRUE(s >= 0 && t >= 0 && s < static_cast<int32_t>(en.size()) && t < static_cast<int32_t>(fr.size()))
          << pair.source;
      en_sure.insert(s);
      fr_sure.insert(t);
      en_any.insert(s);
      fr_any.insert(t);
    }
    for (const auto& [s, t] : pair.possible) {
      ASSERT_TRUE(s >= 0 && t >= 0 && s < static_cast<int32_t>(en.size()) && t < static_cast<int32_t>(fr.size()))
          << pair.source;
      EXPECT_FALSE(std::binary_search(pair.links.begin(), pair.links.end(), std::pair(s, t))) << pair.source;
      en_any.insert(s);
      fr_any.insert(t);
    }
    EXPECT_TRUE(std::is_sorted(pair.links.begin(), pair.links.end()));
    for (int32_t i = 0; i < static_cast<int32_t>(en.size()); ++i) {
      EXPECT_TRUE(en_any.contains(i)) << pair.source << ": " << en[i];
      if (!light.contains(en[i])) {
        EXPECT_TRUE(en_sure.contains(i)) << pair.source << ": " << en[i];
      }
    }
    for (int32_t i = 0; i < static_cast<int32_t>(fr.size()); ++i) {
      EXPECT_TRUE(fr_any.contains(i)) << pair.target << ": " << fr[i];
      if (!light.contains(fr[i])) {
        EXPECT_TRUE(fr_sure.contains(i)) << pair.target << ": " << fr[i];
      }
    }
  }
}

TEST(EnFr, NeverPutsTwoFrenchWordsTogetherThatDoNotAgree) {
  size_t checked = 0;
  for (const AlignedPair& pair : corpus()) {
    const Words fr = words(pair.target);
    for (size_t i = 0; i + 1 < fr.size(); ++i) {
      const std::string &word = fr[i], &next = fr[i + 1];
      if (feminine.contains(next)) {
        EXPECT_FALSE(masculine_only.contains(word)) << pair.target;
      }
      if (masculine.contains(next)) {
        EXPECT_FALSE(feminine_only.contains(word)) << pair.target;
      }
      if (feminine.contains(next) || masculine.contains(next)) {
        EXPECT_FALSE(plural_only.contains(word)) << pair.target;
      }
      if (feminine.contains(word)) {
        EXPECT_FALSE(after_masculine.contains(next)) << pair.target;
      }
      if (masculine.contains(word)) {
        EXPECT_FALSE(after_feminine.contains(next)) << pair.target;
      }
      checked += feminine.contains(next) || masculine.contains(next);
    }
  }
  EXPECT_GT(checked, 10'000u);
}

TEST(EnFr, ElidesAndContractsWhereFrenchDoes) {
  const WordSet full = {"le", "la", "de", "ne", "que", "je",   "me",     "te",
                        "se", "ma", "ta", "sa", "ce",  "beau", "nouveau"};
  const WordSet elided = {"l'", "d'", "n'", "qu'", "j'", "m'", "t'", "s'", "cet", "bel", "vieil", "nouvel"};
  std::map<std::string, int> seen;
  for (const AlignedPair& pair : corpus()) {
    const Words fr = words(pair.target);
    for (size_t i = 0; i + 1 < fr.size(); ++i) {
      const std::string &word = fr[i], &next = fr[i + 1];
      ++seen[word];
      const bool predicate = word == "beau" || word == "nouveau";  // il est beau et ...
      if (starts_with_vowel(next) && !(predicate && (next == "et" || i == 0 || fr[i - 1] == "est"))) {
        EXPECT_FALSE(full.contains(word)) << pair.target;
      }
      if (elided.contains(word)) {
        EXPECT_TRUE(starts_with_vowel(next)) << pair.target;
      }
      if (word == "à" || word == "de") {
        EXPECT_FALSE(next == "le" || next == "les") << pair.target;
      }
      if (word == "la" && (next == "le" || next == "la")) ADD_FAILURE() << pair.target;
    }
  }
  for (const std::string& word : elided) EXPECT_GT(seen[word], 0) << word;
  for (const char* word : {"au", "aux", "du", "des"}) EXPECT_GT(seen[word], 0) << word;
}

TEST(EnFr, WrapsTheVerbInTheNegation) {
  size_t negated = 0;
  for (const AlignedPair& pair : corpus()) {
    const Words en = words(pair.source), fr = words(pair.target);
    const auto count = [](const Words& in, const WordSet& of) {
      return std::count_if(in.begin(), in.end(), [&](const std::string& word) { return of.contains(word); });
    };
    const auto no = count(en, {"not", "never", "cannot"});
    EXPECT_EQ(no, count(fr, {"ne", "n'"})) << pair.target;
    EXPECT_EQ(no, count(fr, {"pas", "jamais"})) << pair.target;
    negated += no > 0;
  }
  EXPECT_GT(negated, 3'000u);
}

TEST(EnFr, AgreesTheParticipleOfEtreWithTheSubject) {
  std::map<std::string, size_t> seen;
  for (const AlignedPair& pair : corpus()) {
    const Words fr = words(pair.target);
    for (size_t i = 0; i + 2 < fr.size(); ++i) {
      const std::string participle = fr[i + 2], both = fr[i] + " " + fr[i + 1];
      const bool moved = participle.starts_with("allé") || participle.starts_with("revenu") ||
                         participle.starts_with("parti") || participle.starts_with("resté");
      if (!moved || participle == "partir") continue;
      const bool feminine_ending =
          participle.ends_with("ée") || participle.ends_with("ue") || participle.ends_with("ie");
      if (both == "elle est") {
        EXPECT_TRUE(feminine_ending) << pair.target;
      }
      if (both == "il est" || both == "je suis" || both == "tu es") {
        EXPECT_FALSE(feminine_ending || participle.ends_with('s')) << pair.target;
      }
      if (both == "ils sont" || both == "nous sommes") {
        EXPECT_TRUE(participle.ends_with('s') && !participle.ends_with("es")) << pair.target;
      }
      ++seen[both];
    }
  }
  for (const char* both : {"elle est", "il est", "ils sont", "nous sommes"}) EXPECT_GT(seen[both], 5u) << both;
}

TEST(EnFr, ReverseIsTheSameCorpusTheOtherWayRound) {
  const std::vector<AlignedPair> back = en_fr_corpus({.size = 3'000, .reverse = true});
  for (size_t i = 0; i < back.size(); ++i) {
    ASSERT_EQ(back[i].source, corpus()[i].target);
    ASSERT_EQ(back[i].target, corpus()[i].source);
    WordLinks links;
    for (const auto& [s, t] : back[i].links) links.emplace_back(t, s);
    std::sort(links.begin(), links.end());
    ASSERT_EQ(links, corpus()[i].links);
  }
}

TEST(EnFr, HoldsOutCombinationsOfWordsThatTrainingKnows) {
  const EnFrSplit split = en_fr_split(corpus());
  EXPECT_EQ(split.train.size() + split.valid.size() + split.test.size(), 20'000u);
  EXPECT_GT(split.valid.size(), 500u);
  EXPECT_GT(split.test.size(), 500u);
  EXPECT_GT(split.train.size(), 15'000u);
  WordSet known_en, known_fr, sources;
  for (const AlignedPair& pair : split.train) {
    const Words en = words(pair.source), fr = words(pair.target);
    known_en.insert(en.begin(), en.end());
    known_fr.insert(fr.begin(), fr.end());
    sources.insert(pair.source);
  }
  for (const auto* part : {&split.valid, &split.test})
    for (const AlignedPair& pair : *part) {
      EXPECT_TRUE(sources.insert(pair.source).second) << pair.source;
      for (const std::string& word : words(pair.source)) EXPECT_TRUE(known_en.contains(word)) << word;
      for (const std::string& word : words(pair.target)) EXPECT_TRUE(known_fr.contains(word)) << word;
    }
}

TEST(EnFr, KeepsACombinationOutOfTrainingAltogetherOrNotAtAll) {
  // Adjective and noun side by side, by this test's own lists: a held-out pair must have no training sentence at all.
  const WordSet adjectives = {"small", "tall", "big",  "beautiful", "handsome", "old",   "young",
                              "good",  "red",  "blue", "black",     "white",    "french"};
  struct Seen {
    size_t train = 0, held_out = 0;
  };
  std::map<std::string, Seen> seen;
  for (const AlignedPair& pair : en_fr_corpus({.size = 40'000, .seed = 5})) {
    const Words en = words(pair.source);
    for (size_t i = 0; i + 1 < en.size(); ++i)
      if (adjectives.contains(en[i]) && !adjectives.contains(en[i + 1]))
        ++(pair.part == CorpusPart::train ? seen[en[i] + " " + en[i + 1]].train
                                          : seen[en[i] + " " + en[i + 1]].held_out);
  }
  size_t never_trained = 0, trained = 0;
  for (const auto& [words_together, counts] : seen) {
    if (counts.train + counts.held_out < 20) continue;
    counts.train == 0 ? ++never_trained : ++trained;
    // By chance one sentence in eight is held out because of another pair; a held-out pair leaves no training sentence.
    if (counts.train > 0) {
      EXPECT_GT(counts.train, counts.held_out) << words_together;
    }
  }
  EXPECT_GE(never_trained, 5u);
  EXPECT_GT(trained, 50u);
}

TEST(EnFr, PutsASentenceIntoTheSamePartForAnySeed) {
  std::map<std::string, CorpusPart> parts;
  size_t met_again = 0;
  for (const uint64_t seed : {1, 2, 3})
    for (const AlignedPair& pair : en_fr_corpus({.size = 20'000, .seed = seed})) {
      const auto [place, fresh] = parts.emplace(pair.source, pair.part);
      met_again += !fresh;
      EXPECT_EQ(place->second, pair.part) << pair.source;
    }
  EXPECT_GT(met_again, 100u);
}

TEST(EnFr, WritesLinksAsPharaohDoes) {
  EXPECT_EQ(pharaoh(WordLinks{}), "");
  EXPECT_EQ(pharaoh(WordLinks{{0, 0}, {1, 2}}), "0-0 1-2");
  EXPECT_EQ(pharaoh(AlignedPair{.source = "a b", .target = "c d", .links = {{0, 0}, {1, 1}}, .possible = {{0, 1}}}),
            "0-0 0p1 1-1");
}

TEST(EnFr, RefusesSizesThatTheGrammarDoesNotReach) {
  EXPECT_EQ(error_of([] { en_fr_corpus({.size = 0}); }),
            "[en-fr] the grammar makes 1 to 2000000 sentences, got size 0");
  EXPECT_EQ(error_of([] { en_fr_corpus({.size = 2'000'001}); }),
            "[en-fr] the grammar makes 1 to 2000000 sentences, got size 2000001");
}
