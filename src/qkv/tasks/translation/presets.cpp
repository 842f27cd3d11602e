// Presets by name.
#include "qkv/tasks/translation/presets.h"

#include "qkv/core/check.h"
#include "qkv/core/suggest.h"

namespace qkv {

std::vector<std::string> translation_presets() {
  std::vector<std::string> names;
  for (const EmbeddedPreset& preset : embedded_presets()) names.emplace_back(preset.name);
  return names;
}

TranslationConfig translation_preset(const std::string& name) {
  for (const EmbeddedPreset& preset : embedded_presets()) {
    if (preset.name != name) continue;
    TranslationConfig config;
    config.parse(preset.yaml, text("presets/", name, ".yaml"));
    config.preset = name;
    return config;
  }
  throw Error(tr("unknown preset \"{name}\": expected one of {translation_presets}", "name"_a = name,
                 "translation_presets"_a = listed(translation_presets())),
              did_you_mean(name, translation_presets()));
}

bool is_book_preset(const std::string& name) { return name.starts_with("d2l-"); }

}  // namespace qkv
