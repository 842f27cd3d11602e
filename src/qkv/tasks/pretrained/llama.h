// Llama-like language models as Hugging Face folders have them: RMS norms, rotary positions, a gated feed-forward
// network, shared key heads.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/models/language_model.h"
#include "qkv/tasks/pretrained/language_settings.h"
#include "qkv/tasks/pretrained/weight_table.h"

namespace QKV_API qkv {

/// What config.json and generation_config.json say.
LanguageSettings read_llama_settings(const std::string& folder);

/// The model of a folder with its weights.
/// The names of weights in Llama folders; `tied`: the output layer is the embedding.
WeightTable llama_table(bool tied);

std::unique_ptr<LanguageModel> open_llama_model(const std::string& folder, const LanguageSettings& settings);

}  // namespace qkv
