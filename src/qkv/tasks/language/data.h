// From the data block of a configuration to a text, its tokenizer and its ids.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tasks/language/config.h"

namespace QKV_API qkv {

struct LanguageText {
  std::string train, valid;                   // valid may be empty
  TextTokenizer tokenizer;                    // made from the training text
  std::vector<int32_t> train_ids, valid_ids;  // a run moves them into its task
};

/// Reads the text that the configuration names. With a tokenizer folder, the tokenizer is read from there instead of
/// being made.
LanguageText read_language_text(const LanguageDataConfig& config, const std::string& tokenizer_folder = "");

/// The ids of a text; a line that is too long for the tokenizer is an error, which `name` begins.
std::vector<int32_t> encode_text(const TextTokenizer& tokenizer, const std::string& text, const Text& name);

}  // namespace qkv
