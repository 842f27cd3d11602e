// Settings of a pretrained language model, and those of generation_config.json, which all architectures share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tasks/language/config.h"
#include "qkv/tasks/pretrained/model_json.h"

namespace QKV_API qkv {

/// What the files of a folder say.
struct LanguageSettings {
  LanguageConfig config;            // model and decoding
  int64_t words = 0;                // rows of the embedding
  std::vector<int32_t> ends = {};   // tokens that end a text
  std::vector<int32_t> never = {};  // tokens that are never written
};

/// Decoding, ends and never, from generation_config.json where there is one, else from config.json. Without do_sample
/// the likeliest token is taken, as transformers does.
void read_generation(const std::string& folder, const ModelJson& config, LanguageSettings& settings);

}  // namespace qkv
