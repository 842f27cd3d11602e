// Notes about what a model lacks: words that it does not know, and its end.
#pragma once

#include <span>
#include <string>

#include "qkv/data/tokenizer.h"

namespace qkv::cli {

/// A word that the model does not know is read as <unk>, and what comes of it may look like a translation: said, on
/// standard error, for the first lines.
class UnknownWords {
 public:
  explicit UnknownWords(bool quiet) : quiet_(quiet) {}
  /// ids: of the sentence, as the tokenizer encodes it, with or without <eos>. where: "line 3".
  void note(const Tokenizer& tokenizer, const std::string& sentence, std::span<const int32_t> ids,
            const std::string& where);

 private:
  bool quiet_;
  int notes_ = 0;
};

/// Unless quiet: that a run has no model yet, and which weights are used in its place.
void note_unfinished(const std::string& folder, bool quiet);

}  // namespace qkv::cli
