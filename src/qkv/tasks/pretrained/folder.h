// Folders of pretrained models as a model hub has them: which architecture a folder holds, and what it is for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/names.h"
#include "qkv/tasks/kinds.h"

namespace QKV_API qkv {

/// What model_type of config.json may be.
enum class Architecture { marian, llama, gpt2, bert, roberta, xlm_roberta, vit };
constexpr std::array<std::string_view, 7> names(Architecture) {
  return {"marian", "llama", "gpt2", "bert", "roberta", "xlm-roberta", "vit"};
}

/// Whether the folder has a config.json, or is one of llama2.c or CTranslate2, and is not a run.
bool is_pretrained_folder(const std::string& folder);
/// Whether it has llama2.c's model.bin and tokenizer.bin, and no config.json.
bool is_llama2c_folder(const std::string& folder);
/// Whether it has CTranslate2's model.bin and shared_vocabulary.json.
bool is_ctranslate2_folder(const std::string& folder);
/// The architecture of such a folder; an unknown one is refused with the list of those that are known.
Architecture architecture_of(const std::string& folder);
/// What the architecture is for.
TaskKind task_of(Architecture architecture);
/// The licence that the model card (README.md) names in its header; "" if it names none.
std::string licence_of(const std::string& folder);

}  // namespace qkv
