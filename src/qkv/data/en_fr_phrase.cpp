// Writing noun phrases and places in English and in French.
#include "qkv/data/en_fr_phrase.h"

#include <algorithm>
#include <string>

namespace qkv::en_fr {
namespace {

constexpr Word en_determiners[] = {"the", "a",     "some", "this", "my",    "your", "his",  "her",
                                   "our", "their", "",     "two",  "three", "four", "five", "six"};
// Masculine, feminine, plural. write_fr_determiner makes some and generic.
constexpr Word fr_determiners[][3] = {
    {"le", "la", "les"},       {"un", "une", ""},         {"", "", ""},         {"ce", "cette", "ces"},
    {"mon", "ma", "mes"},      {"ton", "ta", "tes"},      {"son", "sa", "ses"}, {"son", "sa", "ses"},
    {"notre", "notre", "nos"}, {"leur", "leur", "leurs"}, {"le", "la", "les"},  {"", "", "deux"},
    {"", "", "trois"},         {"", "", "quatre"},        {"", "", "cinq"},     {"", "", "six"}};

Word fr_determiner(Determiner determiner, Gender gender, bool plural) {
  return fr_determiners[static_cast<size_t>(determiner)][plural ? 2 : gender == Gender::feminine ? 1 : 0];
}

constexpr ObjectPronoun pronoun_table[] = {
    {"me", "me", "me", {0, Gender::masculine, false}},    {"you", "te", "te", {1, Gender::masculine, false}},
    {"him", "le", "", {2, Gender::masculine, false}},     {"her", "la", "", {2, Gender::feminine, false}},
    {"us", "nous", "nous", {3, Gender::masculine, true}}, {"them", "les", "leur", {4, Gender::masculine, true}}};

constexpr Word en_subjects[] = {"i", "you", "he", "we", "they"};
constexpr Word fr_subjects[] = {"je", "tu", "il", "nous", "ils"};

}  // namespace

std::span<const ObjectPronoun> object_pronouns() { return pronoun_table; }

Word form(const Adjective& adjective, const Agreement& agreement) {
  if (agreement.gender == Gender::feminine) return agreement.plural ? adjective.feminine_plural : adjective.feminine;
  return agreement.plural ? adjective.masculine_plural : adjective.masculine;
}

Word NounPhrase::head() const {
  switch (kind) {
    case Kind::noun:
      return noun->en;
    case Kind::name:
      return name->word;
    case Kind::pair:
      return pair.front().head();
    case Kind::pronoun:
    case Kind::who:
      return "";
  }
  return "";
}

uint32_t NounPhrase::classes() const {
  if (kind == Kind::noun) return noun->classes;
  if (kind == Kind::pair) return pair[0].classes() & pair[1].classes();
  return person | adult;
}

void NounPhrase::write_en(Sentence& sentence) {
  if (kind == Kind::pair) {
    pair[0].write_en(sentence);
    and_en_ = sentence.en("and");
    pair[1].write_en(sentence);
  } else if (kind == Kind::pronoun) {
    const bool she = agreement.person == 2 && agreement.gender == Gender::feminine;
    noun_en_ = sentence.en(she ? "she" : en_subjects[agreement.person]);
  } else if (kind == Kind::who) {
    noun_en_ = sentence.en("who");
  } else if (kind == Kind::name) {
    noun_en_ = sentence.en(name->word);
  } else {
    const Word noun_word = agreement.plural ? noun->en_plural : noun->en;
    const Word next = before ? before->en : after ? after->en : noun_word;
    Word word = en_determiners[static_cast<size_t>(determiner)];
    if (determiner == Determiner::a && Word("aeiou").find(next[0]) != Word::npos) word = "an";
    if (determiner == Determiner::some && negated) word = "any";
    if (determiner == Determiner::this_one && agreement.plural) word = "these";
    if (name) {
      owner_en_ = sentence.en(name->word);
      determiner_en_ = sentence.en("'s");
    } else if (!word.empty()) {
      determiner_en_ = sentence.en(word);
    }
    if (before) before_en_ = sentence.en(before->en);
    if (after) after_en_ = sentence.en(after->en);
    noun_en_ = sentence.en(noun_word);
    for (const Adjective* adjective : {before, after})
      if (adjective) sentence.relate("adjective", adjective->en, noun->en);
  }
}

void NounPhrase::write_fr_determiner(Sentence& sentence) const {
  const Word word = fr_determiner(determiner, agreement.gender, agreement.plural);
  if (name) {
    sentence.fr(word, {}, {determiner_en_});
  } else if (determiner == Determiner::generic) {
    sentence.fr(word, {}, {noun_en_});
  } else if (negated && (determiner == Determiner::a || determiner == Determiner::some)) {
    sentence.fr("de", {determiner_en_});
  } else if (determiner == Determiner::some && agreement.plural) {
    sentence.fr(before ? "de" : "des", {determiner_en_});
  } else if (determiner == Determiner::some) {
    sentence.fr("de", {determiner_en_});
    sentence.fr(fr_determiner(Determiner::the, agreement.gender, agreement.plural), {determiner_en_});
  } else {
    sentence.fr(word, {determiner_en_});
  }
}

void NounPhrase::write_fr(Sentence& sentence) const {
  if (kind == Kind::pair) {
    pair[0].write_fr(sentence);
    sentence.fr("et", {and_en_});
    pair[1].write_fr(sentence);
  } else if (kind == Kind::pronoun) {
    const bool she = agreement.person == 2 && agreement.gender == Gender::feminine;
    sentence.fr(she ? "elle" : fr_subjects[agreement.person], {noun_en_});
  } else if (kind == Kind::who) {
    sentence.fr("qui", {noun_en_});
  } else if (kind == Kind::name) {
    sentence.fr(name->word, {noun_en_});
  } else {
    const Word noun_word = agreement.plural ? noun->fr_plural : noun->fr;
    write_fr_determiner(sentence);
    if (before) {
      const bool shortened = agreement.gender == Gender::masculine && !agreement.plural && elides_before(noun_word);
      sentence.fr(shortened ? before->before_vowel : form(*before, agreement), {before_en_});
    }
    sentence.fr(noun_word, {noun_en_});
    if (after) sentence.fr(form(*after, agreement), {after_en_});
    if (name) {
      sentence.fr("de", {determiner_en_});
      sentence.fr(name->word, {owner_en_});
    }
  }
}

void Place::write_en(Sentence& sentence) {
  if (!en_preposition.empty()) {
    start_ = sentence.en_phrase(en_preposition);
    article_ = sentence.en("the");
    noun_en_ = sentence.en(noun->en);
    return;
  }
  const bool inside = town || (noun && noun->place == PlaceKind::in);
  start_ = sentence.en(role == Role::to ? "to" : role == Role::from ? "from" : inside ? "in" : "at");
  if (noun && noun->place != PlaceKind::at_bare) article_ = sentence.en("the");
  noun_en_ = sentence.en(head());
}

void Place::write_fr(Sentence& sentence) const {
  if (!fr_preposition.empty()) {
    Positions preposition;
    for (int i = start_; i < article_; ++i) preposition.push_back(i);
    sentence.fr(fr_preposition, preposition);
  } else if (role == Role::from) {
    sentence.fr("de", {start_});
  } else if (town) {
    sentence.fr(town->in == "le" ? "à" : town->in, {start_});
  } else {
    const bool inside = noun && noun->place == PlaceKind::in && role == Role::where;
    sentence.fr(inside ? "dans" : "à", {start_});
  }
  if (town) {
    if (town->in == "le") sentence.fr("le", {}, {noun_en_});
    sentence.fr(town->fr, {noun_en_});
    return;
  }
  const bool feminine = !noun || noun->gender == Gender::feminine;  // à la maison
  const Positions article = {article_}, none = {noun_en_};
  sentence.fr(feminine ? "la" : "le", article, article_ < 0 ? none : Positions{});
  sentence.fr(noun ? noun->fr : Word("maison"), {noun_en_});
}

}  // namespace qkv::en_fr
