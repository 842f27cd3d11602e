// How French words change next to each other, how links follow them, and the rule of the split.
#include "qkv/data/en_fr_sentence.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "qkv/core/check.h"

namespace qkv::en_fr {
namespace {

std::vector<Word> words_of(Word phrase) {
  std::vector<Word> words;
  for (size_t begin = 0; begin < phrase.size();) {
    const size_t end = std::min(phrase.find(' ', begin), phrase.size());
    words.push_back(phrase.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string joined(const auto& parts, auto&& word) {
  std::string out;
  for (const auto& part : parts) out += (out.empty() ? "" : " ") + std::string(word(part));
  return out;
}

int number(Word digits) {
  int value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

void put(WordLinks& links, const Positions& sources, size_t target, bool reverse) {
  for (const int source : sources) {
    if (source < 0) continue;
    const auto t = static_cast<int32_t>(target);
    links.push_back(reverse ? std::pair{t, source} : std::pair{source, t});
  }
}

void order(WordLinks& links) {
  std::sort(links.begin(), links.end());
  links.erase(std::unique(links.begin(), links.end()), links.end());
}

// One relation in 25 is held out for validation and one for test; by FNV-1a, so that the rule is one line and never
// changes.
CorpusPart part_of(Word relation, Word first, Word second) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const Word text : {relation, Word(":"), first, Word(":"), second})
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  hash ^= hash >> 32;
  return hash % 25 == 0 ? CorpusPart::valid : hash % 25 == 1 ? CorpusPart::test : CorpusPart::train;
}

}  // namespace

int Sentence::en(Word word) {
  en_.emplace_back(word);
  return static_cast<int>(en_.size()) - 1;
}

int Sentence::en_phrase(Word words) {
  const int start = static_cast<int>(en_.size());
  for (const Word word : words_of(words)) en(word);
  return start;
}

void Sentence::fr(Word word, const Positions& sure, const Positions& possible) {
  fr_.push_back({std::string(word), sure, possible});
}

void Sentence::fr_phrase(const Time& phrase, int start) {
  const std::vector<Word> words = words_of(phrase.fr);
  std::vector<Positions> sure(words.size()), possible(words.size());
  for (const Word link : words_of(phrase.links)) {
    const size_t sign = link.find_first_of("-p");
    auto& kind = link[sign] == '-' ? sure : possible;
    kind.at(static_cast<size_t>(number(link.substr(sign + 1)))).push_back(start + number(link.substr(0, sign)));
  }
  for (size_t i = 0; i < words.size(); ++i) fr(words[i], sure[i], possible[i]);
}

void Sentence::relate(Word relation, Word first, Word second) {
  part_ = std::max(part_, part_of(relation, first, second));
}

// le ami -> l' ami, ma amie -> mon amie, ce homme -> cet homme.
void Sentence::elide() {
  constexpr std::pair<Word, Word> changes[] = {{"le", "l'"},  {"la", "l'"},  {"de", "d'"}, {"ne", "n'"}, {"que", "qu'"},
                                               {"je", "j'"},  {"me", "m'"},  {"te", "t'"}, {"se", "s'"}, {"ma", "mon"},
                                               {"ta", "ton"}, {"sa", "son"}, {"ce", "cet"}};
  for (size_t i = 0; i + 1 < fr_.size(); ++i) {
    if (!elides_before(fr_[i + 1].word)) continue;
    for (const auto& [full, short_form] : changes)
      if (fr_[i].word == full) {
        fr_[i].word = short_form;
        break;
      }
  }
}

// à le -> au, de les -> des; the new word keeps the links of both.
void Sentence::contract() {
  constexpr std::pair<std::pair<Word, Word>, Word> changes[] = {
      {{"à", "le"}, "au"}, {{"à", "les"}, "aux"}, {{"de", "le"}, "du"}, {{"de", "les"}, "des"}};
  for (size_t i = 0; i + 1 < fr_.size(); ++i)
    for (const auto& [pair, contracted] : changes) {
      if (fr_[i].word != pair.first || fr_[i + 1].word != pair.second) continue;
      French& first = fr_[i];
      const French& second = fr_[i + 1];
      first.word = contracted;
      first.sure.insert(first.sure.end(), second.sure.begin(), second.sure.end());
      first.possible.insert(first.possible.end(), second.possible.begin(), second.possible.end());
      fr_.erase(fr_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      break;
    }
}

AlignedPair Sentence::finish(bool reverse) {
  elide();
  contract();
  AlignedPair pair;
  for (size_t i = 0; i < fr_.size(); ++i) {
    put(pair.links, fr_[i].sure, i, reverse);
    put(pair.possible, fr_[i].possible, i, reverse);
  }
  order(pair.links);
  order(pair.possible);
  std::erase_if(pair.possible,
                [&](const auto& link) { return std::binary_search(pair.links.begin(), pair.links.end(), link); });
  pair.source = joined(en_, [](const std::string& word) { return word; });
  pair.target = joined(fr_, [](const French& french) { return french.word; });
  if (reverse) std::swap(pair.source, pair.target);
  pair.part = part_;
  return pair;
}

}  // namespace qkv::en_fr
