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
};

/// What a folder says of its model, and how it is trained further.
TranslationConfig read_pretrained_translation_config(const std::string& folder);
/// Its tokenizers, which must fit its config.json.
Tokenizers open_pretrained_tokenizers(const std::string& folder);

/// Opens a folder of an architecture that translates; others are refused, saying which command they are for.
PretrainedTranslation open_pretrained_translation(const std::string& folder);

}  // namespace qkv
