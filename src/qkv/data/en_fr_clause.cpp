// Writing clauses in English and in French, with the links between them.
#include "qkv/data/en_fr_clause.h"

#include "qkv/core/check.h"

namespace qkv::en_fr {
namespace {

constexpr Word adverbs_en[] = {"", "often", "always"}, adverbs_fr[] = {"", "souvent", "toujours"};
constexpr Word wh_en[] = {"", "", "where", "why", "what"}, wh_fr[] = {"", "", "où", "pourquoi", "que"};
constexpr Word reflexives[] = {"me", "te", "se", "nous", "se"};

bool third_singular(const Agreement& agreement) { return agreement.person == 2; }

}  // namespace

std::string participle_form(const Verb& verb, const Agreement& agreement) {
  std::string form(verb.participle);  // none ends in s, which would not change in the plural
  if (agreement.gender == Gender::feminine) form += 'e';
  if (agreement.plural) form += 's';
  return form;
}

Word be_form(const Agreement& agreement) {
  return agreement.person == 0 ? "am" : third_singular(agreement) ? "is" : "are";
}

// The word before the subject of a question, or "" if English needs none.
Word Clause::helper() const {
  const bool needed = question != Question::none || polarity == Polarity::negative;
  const bool third = third_singular(subject.agreement);
  switch (tense) {
    case Tense::present:
      if (!simple_present()) return be_form(subject.agreement);
      return !needed ? "" : third ? "does" : "do";
    case Tense::past:
      return needed ? "did" : "";
    case Tense::perfect:
      return third ? "has" : "have";
    case Tense::future:
      return be_form(subject.agreement);
    case Tense::want:
      return !needed ? "" : third ? "does" : "do";
    case Tense::can:
      return polarity == Polarity::negative ? "cannot" : "can";
  }
  return "";
}

void Clause::write_en(Sentence& sentence) {
  const Word word = helper();
  const bool asks = question != Question::none;
  if (asks && question != Question::yes_no) wh_ = sentence.en(wh_en[static_cast<size_t>(question)]);
  if (asks) helper_ = sentence.en(word);
  if (writes_subject) subject.write_en(sentence);
  if (!asks && !word.empty()) helper_ = sentence.en(word);
  light_helper_ = helper_ >= 0 && (tense == Tense::present || tense == Tense::want || tense == Tense::future);
  if (polarity == Polarity::never) not_ = sentence.en("never");
  if (polarity == Polarity::negative) not_ = tense == Tense::can ? helper_ : sentence.en("not");
  write_en_verb(sentence, helper_ >= 0);
  write_en_complements(sentence);
  relate(sentence);
}

void Clause::write_en_verb(Sentence& sentence, bool has_helper) {
  const bool third = third_singular(subject.agreement);
  if (adverb != Adverb::none) adverb_ = sentence.en(adverbs_en[static_cast<size_t>(adverb)]);
  Word word = verb->base;
  if (tense == Tense::present) word = !simple_present() ? verb->ing : !has_helper && third ? verb->third : verb->base;
  if (tense == Tense::past && !has_helper) word = verb->en_past;
  if (tense == Tense::perfect) word = verb->en_participle;
  if (tense == Tense::future) finite_ = sentence.en("going");
  if (tense == Tense::want) finite_ = sentence.en(!has_helper && third ? "wants" : "want");
  if (tense == Tense::can) finite_ = helper_;
  if (tense == Tense::future || tense == Tense::want) to_ = sentence.en("to");
  main_ = sentence.en(word);
  if (!verb->particle.empty()) particle_ = sentence.en(verb->particle);
}

void Clause::write_en_complements(Sentence& sentence) {
  if (pronoun) pronoun_ = sentence.en(pronoun->en);
  if (to_whom) pronoun_ = sentence.en(to_whom->en);
  if (object) object->write_en(sentence);
  if (receiver) {
    to_receiver_ = sentence.en("to");
    receiver->write_en(sentence);
  }
  if (place) place->write_en(sentence);
  if (time) time_ = sentence.en_phrase(time->en);
}

void Clause::relate(Sentence& sentence) const {
  if (!subject.head().empty()) sentence.relate("subject", subject.head(), verb->base);
  if (object) sentence.relate("object", verb->base, object->head());
  if (receiver) sentence.relate("receiver", verb->base, receiver->head());
  if (place) sentence.relate("place", verb->base, place->head());
}

void Clause::write_fr_question(Sentence& sentence) const {
  if (question == Question::none) return;
  if (wh_ >= 0) sentence.fr(wh_fr[static_cast<size_t>(question)], {wh_});
  sentence.fr("est-ce", {helper_});
  sentence.fr("que", {helper_});
}

// Words before the verb they belong to: me, te, le, la, nous, les, leur, se.
void Clause::write_clitic(Sentence& sentence) const {
  if (verb->reflexive) sentence.fr(reflexives[subject.agreement.person], {main_});
  if (pronoun) sentence.fr(pronoun->fr, {pronoun_});
  if (to_whom) sentence.fr(to_whom->fr_indirect, {pronoun_});
}

void Clause::write_fr_verb(Sentence& sentence) const {
  const auto person = static_cast<size_t>(subject.agreement.person);
  const bool modal_verb = tense == Tense::future || tense == Tense::want || tense == Tense::can;
  const bool compound = tense == Tense::past || tense == Tense::perfect;
  const Positions light = light_helper_ ? Positions{helper_} : Positions{};
  const Positions doing =
      light_helper_ && tense != Tense::future && (tense != Tense::present || simple_present()) ? light : Positions{};
  if (not_ >= 0) sentence.fr("ne", {not_}, doing);
  if (!modal_verb) write_clitic(sentence);
  if (tense == Tense::present) {
    Positions possible = doing.empty() || question != Question::none ? light : Positions{};
    possible.push_back(particle_);
    sentence.fr(verb->forms[person], {main_}, possible);
  }
  if (compound) sentence.fr(verb->etre ? etre_forms[person] : avoir_forms[person], {helper_ >= 0 ? helper_ : main_});
  if (tense == Tense::future) sentence.fr(aller_forms[person], {finite_}, light);
  if (tense == Tense::want)
    sentence.fr(vouloir_forms[person], {finite_}, question != Question::none ? light : Positions{});
  if (tense == Tense::can) sentence.fr(pouvoir_forms[person], {finite_});
  if (not_ >= 0) sentence.fr(polarity == Polarity::never ? "jamais" : "pas", {not_}, doing);
  if (adverb_ >= 0) sentence.fr(adverbs_fr[static_cast<size_t>(adverb)], {adverb_});
  if (compound) {
    const Agreement agreement = verb->etre ? subject.agreement
                                : pronoun  ? pronoun->agreement
                                           : gap.value_or(Agreement{});
    sentence.fr(participle_form(*verb, agreement), {main_}, {particle_});
  }
  if (modal_verb) {
    write_clitic(sentence);
    sentence.fr(verb->infinitive, {main_}, {to_, particle_});
  }
}

void Clause::write_fr(Sentence& sentence) const {
  write_fr_question(sentence);
  if (writes_subject) subject.write_fr(sentence);
  write_fr_verb(sentence);
  if (object) object->write_fr(sentence);
  if (receiver) {
    sentence.fr("à", {to_receiver_});
    receiver->write_fr(sentence);
  }
  if (place) place->write_fr(sentence);
  if (time) sentence.fr_phrase(*time, time_);
}

void Copula::write_en(Sentence& sentence) {
  check(adjective || profession || place || !state_en.empty() || !years_en.empty(),
        "[en-fr] there is no predicate for \"", subject.head(), "\"");
  if (asks) be_ = sentence.en(be_form(subject.agreement));
  if (writes_subject) subject.write_en(sentence);
  if (!asks) be_ = sentence.en(be_form(subject.agreement));
  if (negated) not_ = sentence.en("not");
  if (very) very_ = sentence.en("very");
  const Word head = subject.head();
  if (adjective) {
    predicate_ = sentence.en(than ? adjective->comparative : adjective->en);
    if (!head.empty()) sentence.relate("adjective", adjective->en, head);
  } else if (!state_en.empty()) {
    predicate_ = sentence.en(state_en);
    if (!head.empty()) sentence.relate("state", state_en, head);
  } else if (!years_en.empty()) {
    predicate_ = sentence.en(years_en);
    sentence.en("years");
    sentence.en("old");
    if (!head.empty()) sentence.relate("age", years_en, head);
  } else if (profession) {
    const bool vowel = Word("aeiou").find(profession->en[0]) != Word::npos;
    if (!subject.agreement.plural) sentence.en(vowel ? "an" : "a");
    predicate_ = sentence.en(subject.agreement.plural ? profession->en_plural : profession->en);
    if (!head.empty()) sentence.relate("profession", profession->en, head);
  }
  if (than) {
    than_ = sentence.en("than");
    than->write_en(sentence);
  }
  if (place) {
    place->write_en(sentence);
    if (!head.empty()) sentence.relate("location", place->head(), head);
  }
}

void Copula::write_fr(Sentence& sentence) const {
  const auto person = static_cast<size_t>(subject.agreement.person);
  if (asks) {
    sentence.fr("est-ce", {be_});
    sentence.fr("que", {be_});
  }
  if (writes_subject) subject.write_fr(sentence);
  if (negated) sentence.fr("ne", {not_});
  const bool has = !state_en.empty() || !years_en.empty();
  sentence.fr(has ? avoir_forms[person] : etre_forms[person], {be_});
  if (negated) sentence.fr("pas", {not_});
  if (very) sentence.fr("très", {very_});
  if (than) sentence.fr("plus", {predicate_});
  if (adjective) sentence.fr(form(*adjective, subject.agreement), {predicate_});
  if (!state_en.empty()) sentence.fr(state_fr, {predicate_});
  if (!years_en.empty()) {
    sentence.fr(years_fr, {predicate_});
    sentence.fr("ans", {predicate_ + 1}, {predicate_ + 2});
  }
  if (profession) {
    const Positions article = subject.agreement.plural ? Positions{} : Positions{predicate_ - 1};
    sentence.fr(subject.agreement.plural ? profession->fr_plural : profession->fr, {predicate_}, article);
  }
  if (than) {
    sentence.fr("que", {than_});
    than->write_fr(sentence);
  }
  if (place) place->write_fr(sentence);
}

}  // namespace qkv::en_fr
