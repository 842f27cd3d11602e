// Marian's translation models (OPUS-MT) as Hugging Face folders have them.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/tasks/pretrained/model_json.h"
#include "qkv/tasks/translation/config.h"
#include "qkv/tasks/translation/model.h"

namespace QKV_API qkv {

/// What config.json and generation_config.json say.
struct MarianConfig {
  TranslationConfig translation;  // model and decoding
  VocabularySizes words;
  int64_t positions = 0;  // tokens that the model reads or writes, </s> included
  int32_t start = 0, end = 0, pad = 0;
  std::vector<int32_t> never;  // tokens that are never written
};
MarianConfig read_marian_config(const std::string& folder);

/// The model of a folder with its weights.
std::unique_ptr<TranslationModel> open_marian_model(const std::string& folder, const MarianConfig& config);

}  // namespace qkv
