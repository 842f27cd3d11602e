// Notes about unknown words and unfinished models.
#pragma once

#include <span>
#include <string>

#include "qkv/data/tokenizer.h"

namespace qkv::cli {

/// The model reads an unknown word as <unk>, and the output may still look like a translation. So the first lines with
/// unknown words are noted on standard error.
class UnknownWords {
 public:
  explicit UnknownWords(bool quiet) : quiet_(quiet) {}
  /// ids: the sentence as the tokenizer encodes it, with or without <eos>. where: "line 3".
  void note(const Tokenizer& tokenizer, const std::string& sentence, std::span<const int32_t> ids,
            const std::string& where);

 private:
  bool quiet_;
  int notes_ = 0;
};

/// Unless quiet: notes that a run has no model yet, and which weights are used instead.
void note_unfinished(const std::string& folder, bool quiet);

}  // namespace qkv::cli
