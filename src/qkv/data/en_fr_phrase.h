// Noun phrases and places of the English-French corpus: their meaning, and how to write it in both languages.
#pragma once

#include <memory>
#include <vector>

#include "qkv/data/en_fr_sentence.h"

namespace qkv::en_fr {

enum class Determiner { the, a, some, this_one, my, your, his, her, our, their, generic, two, three, four, five, six };

/// What a verb or an adjective agrees with. `person` counts je, tu, il, nous, ils.
struct Agreement {
  int person = 2;
  Gender gender = Gender::masculine;
  bool plural = false;
};

struct NounPhrase {
  enum class Kind { pronoun, name, noun, pair, who };
  Kind kind = Kind::pronoun;
  Agreement agreement;
  const Noun* noun = nullptr;
  const Name* name = nullptr;  // the person, or the owner of the noun
  Determiner determiner = Determiner::the;
  const Adjective *before = nullptr, *after = nullptr;
  bool negated = false;          // an indefinite object of a negated verb: de
  std::vector<NounPhrase> pair;  // this one and that one

  /// Writes the English words and remembers their positions; then the French ones.
  void write_en(Sentence& sentence);
  void write_fr(Sentence& sentence) const;
  /// The head word, for the relations that decide the split; "" for pronouns.
  Word head() const;
  uint32_t classes() const;

 private:
  void write_fr_determiner(Sentence& sentence) const;
  int determiner_en_ = -1, before_en_ = -1, after_en_ = -1, noun_en_ = -1, owner_en_ = -1, and_en_ = -1;
};

Word form(const Adjective& adjective, const Agreement& agreement);

/// An object pronoun: me, you, him, her, us, them.
struct ObjectPronoun {
  Word en, fr, fr_indirect;
  Agreement agreement;
};
std::span<const ObjectPronoun> object_pronouns();

/// Where: a noun of place, a town, home, or a position ("under the table").
struct Place {
  enum class Role { where, to, from };
  Role role = Role::where;
  const Noun* noun = nullptr;
  const Town* town = nullptr;
  Word en_preposition = "", fr_preposition = "";  // of a position; "in front of" is three words
  void write_en(Sentence& sentence);
  void write_fr(Sentence& sentence) const;
  Word head() const { return noun ? noun->en : town ? town->en : Word("home"); }

 private:
  int start_ = -1, article_ = -1, noun_en_ = -1;
};

}  // namespace qkv::en_fr
