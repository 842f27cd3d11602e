// A pretrained folder as a language model with its tokenizer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/text_tokenizer.h"
#include "qkv/models/language_model.h"
#include "qkv/tasks/language/config.h"

namespace QKV_API qkv {

struct PretrainedLanguage {
  LanguageConfig config;
  TextTokenizer tokenizer;
  std::unique_ptr<LanguageModel> model;
};

/// What a folder says of its model, and how it is trained further.
LanguageConfig read_pretrained_language_config(const std::string& folder);
/// The tokenizer of a run or of a pretrained folder.
TextTokenizer open_text_tokenizer(const std::string& folder);

/// Opens a folder of an architecture that is a language model; others are refused, saying which command they are for.
PretrainedLanguage open_pretrained_language(const std::string& folder);

}  // namespace qkv
