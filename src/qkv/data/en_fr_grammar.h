// The grammar of the English-French corpus: random sentences that make sense.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "qkv/core/rng.h"
#include "qkv/data/en_fr_clause.h"

namespace qkv::en_fr {

/// Draws from one stream in order.
class Dice {
 public:
  explicit Dice(const Rng& rng) : rng_(rng) {}
  size_t below(size_t n) { return static_cast<size_t>(rng_.below(n, next_++)); }
  bool percent(size_t chance) { return below(100) < chance; }
  template <class T>
  const T& pick(std::span<const T> from) {
    return from[below(from.size())];
  }
  template <class T>
  T pick(std::initializer_list<T> from) {
    return from.begin()[below(from.size())];
  }

 private:
  Rng rng_;
  uint64_t next_ = 0;
};

/// Chooses the phrases: who, what, where, when.
class Chooser {
 public:
  explicit Chooser(Dice& dice) : dice_(dice) {}

  NounPhrase pronoun();
  NounPhrase named();
  /// A subject of one of these classes (person, animal, things); with `maybe` it may be indefinite (a boy, two dogs).
  enum class Known { yes, maybe };
  NounPhrase subject(uint32_t classes, Known known = Known::yes);
  /// Someone or something definite: the, this, my, a name.
  NounPhrase definite(uint32_t classes);
  /// The object of the clause's verb; depends on its subject, tense and polarity.
  NounPhrase object(const Clause& clause);
  /// False for combinations nobody would say: men in dresses, the boy who sees the boy.
  bool suits(const Clause& clause, const Noun& object) const;
  /// A noun of these classes with "the" as determiner.
  NounPhrase noun(uint32_t classes, bool may_be_plural = true);
  void describe(NounPhrase& phrase, size_t percent);
  Place somewhere(uint32_t classes);
  Place destination(Place::Role role);
  Place position();
  /// An adjective for the subject of to be.
  const Adjective* predicate(const NounPhrase& subject);
  /// An object pronoun for a clause: never the subject itself, and no him or her where French would hide the gender.
  const ObjectPronoun* object_pronoun(const Clause& clause);
  Dice& dice() { return dice_; }

 private:
  Determiner possessive(const NounPhrase& subject);
  void choose_object_determiner(NounPhrase& phrase, const Clause& clause);
  Dice& dice_;
};

/// A sentence of the grammar, or nothing if no draw gave one with 3 to 16 words per side.
std::optional<AlignedPair> draw_sentence(const Rng& rng, bool reverse);

}  // namespace qkv::en_fr
