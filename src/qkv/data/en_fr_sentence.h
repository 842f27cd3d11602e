// A sentence pair under construction: English words, French words, and which came from which.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "qkv/data/en_fr.h"
#include "qkv/data/en_fr_lexicon.h"

namespace qkv::en_fr {

/// Positions of English words; -1 means that there is no such word.
using Positions = std::vector<int>;

class Sentence {
 public:
  /// Appends an English word and returns its position.
  int en(Word word);
  /// Appends a French word with the English words it translates.
  void fr(Word word, const Positions& sure, const Positions& possible = {});
  /// Appends the French side of a phrase whose English side begins at `start`.
  void fr_phrase(const Time& phrase, int start);
  int en_phrase(Word words);

  /// Records that two words are used together; these pairs decide the part of the split.
  void relate(Word relation, Word first, Word second);

  size_t en_size() const { return en_.size(); }
  /// Elides, contracts, and puts the links in order. The sentence cannot be used afterwards.
  AlignedPair finish(bool reverse);

 private:
  struct French {
    std::string word;
    Positions sure, possible;
  };
  void elide();
  void contract();
  std::vector<std::string> en_;
  std::vector<French> fr_;
  CorpusPart part_ = CorpusPart::train;
};

}  // namespace qkv::en_fr
