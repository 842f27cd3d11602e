// GPT-2 as Hugging Face folders have it: layer norms before the sublayers, learned positions, fused and transposed
// projections, a tied output layer.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/models/language_model.h"
#include "qkv/tasks/pretrained/language_settings.h"
#include "qkv/tasks/pretrained/weight_table.h"

namespace QKV_API qkv {

/// What config.json and generation_config.json say.
LanguageSettings read_gpt2_settings(const std::string& folder);

/// The model of a folder with its weights.
/// The names of weights in GPT-2 folders. Those of the model with its output layer put one more name in front.
WeightTable gpt2_table(bool inside);

std::unique_ptr<LanguageModel> open_gpt2_model(const std::string& folder, const LanguageSettings& settings);

}  // namespace qkv
