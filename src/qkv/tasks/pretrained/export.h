// Runs and pretrained folders as folders that other programs load.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/names.h"
#include "qkv/tasks/pretrained/folder.h"

namespace QKV_API qkv {

/// hf: a folder of Hugging Face, as `transformers` loads it.
enum class ExportFormat { hf };
constexpr std::array<std::string_view, 1> names(ExportFormat) { return {"hf"}; }

struct Exported {
  Architecture architecture = Architecture::marian;
  int64_t tensors = 0, parameters = 0;
  std::vector<std::string> left_out;  // tensors of a pretrained folder with which we do not compute
};

/// Writes config.json, generation_config.json, the tokenizer's files and the weights in float32, which are those of the
/// model bit by bit. A model that has something for which the format has no place is refused, naming it. The folder
/// must not exist; config.json is written last.
Exported export_model(const std::string& model, const std::string& folder, ExportFormat format = ExportFormat::hf);

}  // namespace qkv
