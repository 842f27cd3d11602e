// Draws whole sentences of the English-French grammar: one function per construction.
#pragma once

#include <functional>

#include "qkv/data/en_fr_grammar.h"

namespace qkv::en_fr {

class Speaker {
 public:
  explicit Speaker(Dice& dice) : dice_(dice), choose_(dice) {}
  /// One sentence, or nothing if the drawn words do not go together.
  std::optional<AlignedPair> speak(bool reverse);

 private:
  // Parts.
  const Verb& draw_verb(const std::function<bool(const Verb&)>& fits);
  Tense draw_tense(const Verb& verb);
  void draw_time(Clause& clause);
  void draw_polarity(Clause& clause);
  void complete(Clause& clause, bool with_place);
  Clause draw_clause(const NounPhrase& subject, bool short_one);
  Clause draw_clause(const NounPhrase& subject, const Verb& verb, Tense tense, Polarity polarity);
  Copula draw_copula(const NounPhrase& subject);
  NounPhrase draw_actor(Chooser::Known known = Chooser::Known::yes) {
    return choose_.subject(dice_.percent(80) ? person : animal, known);
  }
  void write(auto& clause) {
    clause.write_en(sentence_);
    clause.write_fr(sentence_);
  }
  /// A word that is the same on both sides.
  void mark(Word word) { sentence_.fr(word, {sentence_.en(word)}); }
  enum class Weather { any, cold, hot };
  void weather(Weather kind);
  void join(Word en, Word fr, Word fr_second = "");

  // Sentences. False if the draw makes no sense.
  bool statement();
  bool moving();
  bool opening();
  bool with_pronoun();
  bool giving();
  bool yes_no();
  bool wh_question();
  bool where_is();
  bool describing();
  bool comparing();
  bool aging();
  bool locating();
  bool professing();
  bool there_is();
  bool relative_subject();
  bool relative_object();
  bool compound();
  bool reason();
  bool thinking();
  bool weather_alone();

  Dice& dice_;
  Chooser choose_;
  Sentence sentence_;
};

}  // namespace qkv::en_fr
