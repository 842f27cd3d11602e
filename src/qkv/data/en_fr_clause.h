// Clauses of the English-French corpus: a verb with its subject, objects and adverbials, or to be with a predicate.
#pragma once

#include <optional>

#include "qkv/data/en_fr_phrase.h"

namespace qkv::en_fr {

enum class Tense { present, past, perfect, future, want, can };
enum class Polarity { affirmative, negative, never };
enum class Question { none, yes_no, where, why, what };
enum class Adverb { none, often, always };

/// The French participle in agreement: vu, vue, vus, vues.
std::string participle_form(const Verb& verb, const Agreement& agreement);
/// am, are, is.
Word be_form(const Agreement& agreement);

/// Subject, verb, objects, place and time.
struct Clause {
  NounPhrase subject;
  const Verb* verb = nullptr;
  Tense tense = Tense::present;
  Polarity polarity = Polarity::affirmative;
  Adverb adverb = Adverb::none;
  Question question = Question::none;
  std::optional<NounPhrase> object;        // a book
  const ObjectPronoun* pronoun = nullptr;  // sees him
  std::optional<NounPhrase> receiver;      // to the girl
  const ObjectPronoun* to_whom = nullptr;  // gives me
  std::optional<Agreement> gap;            // the object is the noun before "that": its agreement
  std::optional<Place> place;
  const Time* time = nullptr;
  bool habit = false;          // `time` says how often
  bool writes_subject = true;  // false after "who" of a relative clause

  void write_en(Sentence& sentence);
  void write_fr(Sentence& sentence) const;
  bool simple_present() const {
    return verb->aspect == Aspect::simple || habit || adverb != Adverb::none || polarity == Polarity::never;
  }

 private:
  Word helper() const;
  void write_en_verb(Sentence& sentence, bool has_helper);
  void write_en_complements(Sentence& sentence);
  void write_fr_question(Sentence& sentence) const;
  void write_fr_verb(Sentence& sentence) const;
  void write_clitic(Sentence& sentence) const;
  void relate(Sentence& sentence) const;
  int wh_ = -1, helper_ = -1, not_ = -1, adverb_ = -1, finite_ = -1, to_ = -1, main_ = -1, particle_ = -1,
      pronoun_ = -1, to_receiver_ = -1, time_ = -1;
  bool light_helper_ = false;  // do, or the be of a progressive: French has no word for it
};

/// Subject, to be, and a predicate: an adjective, a state (in French with avoir: "a faim"), an age, a place or a
/// profession.
struct Copula {
  NounPhrase subject;
  bool negated = false, very = false, asks = false;
  const Adjective* adjective = nullptr;
  Word state_en = "", state_fr = "";
  Word years_en = "", years_fr = "";
  const Noun* profession = nullptr;
  std::optional<Place> place;
  std::optional<NounPhrase> than;  // taller than
  bool writes_subject = true;

  void write_en(Sentence& sentence);
  void write_fr(Sentence& sentence) const;

 private:
  int be_ = -1, not_ = -1, very_ = -1, predicate_ = -1, than_ = -1;
};

}  // namespace qkv::en_fr
