// A pretrained folder as a translation model with its tokenizers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tasks/translation/data.h"
#include "qkv/tasks/translation/model.h"

namespace QKV_API qkv {

struct PretrainedTranslation {
  TranslationConfig config;
  Tokenizers tokenizers;
  std::unique_ptr<TranslationModel> model;
  int64_t positions = 0;            // the most tokens of a text, <eos> included
  std::vector<int32_t> never = {};  // tokens that are never written
};

/// Opens a folder of an architecture that translates; others are refused, saying which command they are for.
PretrainedTranslation open_pretrained_translation(const std::string& folder);

}  // namespace qkv
