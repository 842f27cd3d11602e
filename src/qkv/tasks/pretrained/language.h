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
  std::vector<int32_t> ends = {};   // tokens that end a text
  std::vector<int32_t> never = {};  // tokens that are never written
};

/// Opens a folder of an architecture that is a language model; others are refused, saying which command they are for.
PretrainedLanguage open_pretrained_language(const std::string& folder);

}  // namespace qkv
