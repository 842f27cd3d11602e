// Clauses of the built-in corpus, one by one, with every link.
#include "qkv/data/en_fr_clause.h"

#include <gtest/gtest.h>

using namespace qkv;
using namespace qkv::en_fr;

namespace {

const ObjectPronoun* object_pronoun(Word en) {
  for (const ObjectPronoun& one : object_pronouns())
    if (one.en == en) return &one;
  return nullptr;
}

NounPhrase pronoun(int person, Gender gender = Gender::masculine) {
  NounPhrase phrase;
  phrase.agreement = {.person = person, .gender = gender, .plural = person > 2};
  return phrase;
}

NounPhrase phrase(Word en, Determiner determiner, bool plural = false) {
  NounPhrase made;
  made.kind = NounPhrase::Kind::noun;
  made.noun = &qkv::en_fr::noun(en);
  made.agreement = {.person = plural ? 4 : 2, .gender = made.noun->gender, .plural = plural};
  made.determiner = determiner;
  return made;
}

NounPhrase with(NounPhrase phrase, Word adjective) {
  const Adjective& found = qkv::en_fr::adjective(adjective);
  (found.position == Position::before ? phrase.before : phrase.after) = &found;
  return phrase;
}

Clause clause(const NounPhrase& subject, Word base, Tense tense, Polarity polarity = Polarity::affirmative) {
  Clause made;
  made.subject = subject;
  made.verb = &verb(base);
  made.tense = tense;
  made.polarity = polarity;
  return made;
}

std::string shown(auto said) {
  Sentence sentence;
  said.write_en(sentence);
  said.write_fr(sentence);
  const AlignedPair pair = sentence.finish(false);
  return pair.source + " | " + pair.target + " | " + pharaoh(pair);
}

constexpr Gender f = Gender::feminine;

}  // namespace

TEST(EnFrClause, SwapsTheAdjectiveAndWrapsTheVerbInTheNegation) {
  EXPECT_EQ(shown(clause(with(phrase("cat", Determiner::the), "black"), "sleep", Tense::present, Polarity::negative)),
            "the black cat is not sleeping | le chat noir ne dort pas | 0-0 1-2 2-1 3p4 4-3 4-5 5-4");
  Clause likes = clause(pronoun(2, f), "like", Tense::present, Polarity::negative);
  likes.object = phrase("apple", Determiner::generic, true);
  EXPECT_EQ(shown(likes), "she does not like apples | elle n' aime pas les pommes | 0-0 1p1 1p3 2-1 2-3 3-2 4p4 4-5");
}

TEST(EnFrClause, ElidesAndContracts) {
  Clause goes = clause(pronoun(3), "go", Tense::past);
  goes.place.emplace();
  goes.place->role = Place::Role::to;
  goes.place->noun = &qkv::en_fr::noun("market");
  EXPECT_EQ(shown(goes), "we went to the market | nous sommes allés au marché | 0-0 1-1 1-2 2-3 3-3 4-4");
  goes.place->noun = &qkv::en_fr::noun("hospital");
  EXPECT_EQ(shown(goes), "we went to the hospital | nous sommes allés à l' hôpital | 0-0 1-1 1-2 2-3 3-4 4-5");
  Clause drinks = clause(pronoun(0), "drink", Tense::present);
  drinks.object = phrase("milk", Determiner::some);
  EXPECT_EQ(shown(drinks), "i am drinking some milk | je bois du lait | 0-0 1p1 2-1 3-2 4-3");
  Clause talks = clause(pronoun(0), "talk", Tense::past);
  talks.receiver = phrase("student", Determiner::the, true);
  EXPECT_EQ(shown(talks), "i talked to the students | j' ai parlé aux étudiants | 0-0 1-1 1-2 2-3 3-3 4-4");
}

TEST(EnFrClause, ChoosesTheFormBeforeAVowelAndNotBeforeAnAspiratedH) {
  Clause sees = clause(pronoun(1), "see", Tense::present);
  sees.object = with(phrase("man", Determiner::this_one), "old");
  EXPECT_EQ(shown(sees), "you see this old man | tu vois ce vieil homme | 0-0 1-1 2-2 3-3 4-4");
  sees.object = with(phrase("hamster", Determiner::the), "beautiful");
  EXPECT_EQ(shown(sees), "you see the beautiful hamster | tu vois le beau hamster | 0-0 1-1 2-2 3-3 4-4");
  sees.object = with(phrase("tree", Determiner::the), "beautiful");
  EXPECT_EQ(shown(sees), "you see the beautiful tree | tu vois le bel arbre | 0-0 1-1 2-2 3-3 4-4");
  sees.object = with(phrase("tree", Determiner::some, true), "old");
  EXPECT_EQ(shown(sees), "you see some old trees | tu vois de vieux arbres | 0-0 1-1 2-2 3-3 4-4");
}

TEST(EnFrClause, PutsPronounsBeforeTheVerbAndAgreesTheParticiple) {
  Clause sees = clause(pronoun(0), "see", Tense::perfect, Polarity::never);
  sees.pronoun = object_pronoun("her");
  EXPECT_EQ(shown(sees), "i have never seen her | je ne l' ai jamais vue | 0-0 1-3 2-1 2-4 3-5 4-2");
  Clause waits = clause(pronoun(4), "wait", Tense::want);
  waits.pronoun = object_pronoun("us");
  EXPECT_EQ(shown(waits), "they want to wait for us | ils veulent nous attendre | 0-0 1-1 2p3 3-3 4p3 5-2");
  Clause rests = clause(phrase("girl", Determiner::the, true), "rest", Tense::past);
  EXPECT_EQ(shown(rests), "the girls rested | les filles se sont reposées | 0-0 1-1 2-2 2-3 2-4");
  Clause bought = clause(pronoun(2), "buy", Tense::past);
  bought.gap = Agreement{.person = 4, .gender = f, .plural = true};
  EXPECT_EQ(shown(bought), "he bought | il a achetées | 0-0 1-1 1-2");
}

TEST(EnFrClause, AsksWithEstCeQue) {
  Clause asks = clause(pronoun(2, f), "write", Tense::past);
  asks.question = Question::what;
  EXPECT_EQ(shown(asks), "what did she write | qu' est-ce qu' elle a écrit | 0-0 1-1 1-2 1-4 2-3 3-5");
  Clause can = clause(phrase("child", Determiner::my), "sing", Tense::can);
  can.question = Question::yes_no;
  EXPECT_EQ(shown(can), "can my child sing | est-ce que mon enfant peut chanter | 0-0 0-1 0-4 1-2 2-3 3-5");
}

TEST(EnFrClause, UsesDeAsDeterminerUnderANegation) {
  Clause has = clause(pronoun(0), "have", Tense::present, Polarity::negative);
  has.object = phrase("horse", Determiner::a);
  has.object->negated = true;
  EXPECT_EQ(shown(has), "i do not have a horse | je n' ai pas de cheval | 0-0 1p1 1p3 2-1 2-3 3-2 4-4 5-5");
  Clause drank = clause(pronoun(4), "drink", Tense::past, Polarity::negative);
  drank.object = phrase("water", Determiner::some);
  drank.object->negated = true;
  EXPECT_EQ(shown(drank), "they did not drink any water | ils n' ont pas bu d' eau | 0-0 1-2 2-1 2-3 3-4 4-5 5-6");
}

TEST(EnFrClause, UsesAvoirWhereEnglishUsesBe) {
  Copula hungry;
  hungry.subject = pronoun(0);
  hungry.state_en = "hungry";
  hungry.state_fr = "faim";
  hungry.very = true;
  EXPECT_EQ(shown(hungry), "i am very hungry | j' ai très faim | 0-0 1-1 2-2 3-3");
  Copula taller;
  taller.subject = phrase("girl", Determiner::the);
  taller.adjective = &qkv::en_fr::adjective("tall");
  taller.than = phrase("friend", Determiner::my);
  EXPECT_EQ(
      shown(taller),
      "the girl is taller than my friend | la fille est plus grande que mon ami | 0-0 1-1 2-2 3-3 3-4 4-5 5-6 6-7");
  Copula nurse;
  nurse.subject = pronoun(2, f);
  nurse.profession = &qkv::en_fr::noun("nurse");
  nurse.negated = true;
  EXPECT_EQ(shown(nurse), "she is not a nurse | elle n' est pas infirmière | 0-0 1-2 2-1 2-3 3p4 4-4");
}
