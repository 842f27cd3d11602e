// Predefined configurations: the files of presets/, which are embedded in the program.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tasks/translation/config.h"

namespace QKV_API qkv {

struct EmbeddedPreset {
  const char *name, *yaml;
};
/// In alphabetical order.
std::span<const EmbeddedPreset> embedded_presets();

/// The names of the presets of all tasks.
std::vector<std::string> preset_names();
/// The YAML text of a preset. Fails with a suggestion for a name that does not exist.
std::string preset_text(const std::string& name);
/// Its name in error messages: "presets/transformer.yaml".
std::string preset_path(const std::string& name);
/// A preset of the task by name.
TranslationConfig translation_preset(const std::string& name);
/// True for the book's presets, which end with the book's line and its four sentences.
bool is_book_preset(const std::string& name);

}  // namespace qkv
