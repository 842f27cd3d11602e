// Marian's translation models (OPUS-MT) as Hugging Face folders have them.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/tasks/pretrained/model_json.h"
#include "qkv/tasks/pretrained/weight_table.h"
#include "qkv/tasks/translation/config.h"
#include "qkv/tasks/translation/model.h"

namespace QKV_API qkv {

/// What config.json and generation_config.json say.
struct MarianConfig {
  TranslationConfig translation;  // model and decoding, and how it is trained further
  VocabularySizes words;
  int32_t start = 0, end = 0, pad = 0;
};
MarianConfig read_marian_config(const std::string& folder);

/// The names of weights in Marian folders.
WeightTable marian_table();

/// The model of a folder with its weights.
std::unique_ptr<TranslationModel> open_marian_model(const std::string& folder, const MarianConfig& config);

}  // namespace qkv
