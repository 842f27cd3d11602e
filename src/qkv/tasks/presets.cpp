// Presets by name.
#include "qkv/tasks/presets.h"

#include "qkv/core/check.h"
#include "qkv/core/suggest.h"

namespace qkv {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const EmbeddedPreset& preset : embedded_presets()) names.emplace_back(preset.name);
  return names;
}

std::string preset_text(const std::string& name) {
  for (const EmbeddedPreset& preset : embedded_presets())
    if (preset.name == name) return preset.yaml;
  throw Error(tr("unknown preset \"{name}\": expected one of {preset_names}", "name"_a = name,
                 "preset_names"_a = listed(preset_names())),
              did_you_mean(name, preset_names()));
}

std::string preset_path(const std::string& name) { return text("presets/", name, ".yaml"); }

TranslationConfig translation_preset(const std::string& name) {
  TranslationConfig config;
  config.parse(preset_text(name), preset_path(name));
  config.preset = name;
  return config;
}

bool is_book_preset(const std::string& name) { return name.starts_with("d2l-"); }

}  // namespace qkv
