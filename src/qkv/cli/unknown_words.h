// Notes about unknown words and unfinished models.
#pragma once

#include <span>
#include <string>

#include "qkv/cli/command.h"
#include "qkv/data/tokenizer.h"

namespace qkv::cli {

/// The model reads an unknown word as <unk>, and the output may still look like a translation. So the first lines with
/// unknown words are noted on standard error.
class UnknownWords {
 public:
  explicit UnknownWords(const Global& global) : global_(&global) {}
  /// ids: the sentence as the tokenizer encodes it, with or without <eos>. where: "line 3".
  void note(const Tokenizer& tokenizer, const std::string& sentence, std::span<const int32_t> ids, const Text& where);

 private:
  const Global* global_;
  int notes_ = 0;
};

/// Notes that a run has no model yet, and which weights are used instead.
void note_unfinished(const std::string& folder, const Global& global);

}  // namespace qkv::cli
