// One configuration for all tasks, and the settings of all of them for a command line.
#include "qkv/tasks/run_config.h"

#include <algorithm>
#include <map>

#include "qkv/core/check.h"
#include "qkv/tasks/presets.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/language.h"
#include "qkv/tasks/pretrained/translation.h"
#include "qkv/tasks/pretrained/vit.h"

namespace qkv {
namespace {

using Tasks = decltype(RunConfig::of);

template <size_t i = 0>
RunConfig defaults_of(TaskKind task) {
  using Config = std::variant_alternative_t<i, Tasks>;
  static_assert(static_cast<size_t>(Config::kTask) == i, "the variant has the order of TaskKind");
  if (Config::kTask == task) return RunConfig(Config{});
  if constexpr (i + 1 < std::variant_size_v<Tasks>)
    return defaults_of<i + 1>(task);
  else
    return {};
}

// Keys of other kinds of models, which an error about an unknown key can explain.
void explain_other_kinds(Settings& settings, const RunConfig& config) {
  std::map<std::string, std::vector<std::string>> owners;
  for (const std::string& kind : all_kinds()) {
    RunConfig other = RunConfig::of_kind(kind, "");
    const Settings table = std::visit([](auto& c) { return c.settings(); }, other.of);
    for (const Setting& s : table.all())
      if (!settings.has(s.name())) owners[s.name()].push_back(kind);
  }
  for (const auto& [name, kinds] : owners)
    settings.explain(name, tr("a setting of {kind}, but model.kind is {actual}", "kind"_a = listed(kinds),
                              "actual"_a = config.kind()));
}

}  // namespace

RunConfig RunConfig::of_kind(const std::string& kind, const std::string& where) {
  const auto task = task_of(kind);
  if (!task) refuse_word(where, kind, all_kinds());
  RunConfig config = defaults_of(*task);
  std::visit([&](auto& c) { c.set_kind(kind); }, config.of);
  return config;
}

RunConfig RunConfig::preset(const std::string& name) {
  RunConfig config;
  config.parse(preset_text(name), preset_path(name));
  std::visit([&](auto& c) { c.preset = name; }, config.of);
  return config;
}

std::string RunConfig::kind() const {
  return std::visit([](const auto& c) { return std::string(c.kind_name()); }, of);
}
TrainingConfig& RunConfig::training() {
  return std::visit([](auto& c) -> TrainingConfig& { return c.training; }, of);
}
const TrainingConfig& RunConfig::training() const {
  return std::visit([](const auto& c) -> const TrainingConfig& { return c.training; }, of);
}
std::vector<std::string> RunConfig::sources() const {
  return std::visit([](const auto& c) { return c.sources(); }, of);
}
bool RunConfig::has_data() const {
  return std::visit([](const auto& c) { return c.has_data(); }, of);
}
void RunConfig::clear_files() {
  std::visit([](auto& c) { c.clear_files(); }, of);
}
void RunConfig::use_source(const std::string& setting) {
  std::visit([&](auto& c) { c.use_source(setting); }, of);
}

Settings RunConfig::settings() {
  Settings settings = std::visit([](auto& c) { return c.settings(); }, of);
  explain_other_kinds(settings, *this);
  return settings;
}

void RunConfig::read(const std::string& path) { parse(read_settings_text(path), path); }

void RunConfig::parse(const std::string& yaml, const std::string& name) {
  RunConfig next = *this;
  if (const auto kind = find_setting(yaml, name, "model.kind")) {
    RunConfig named = of_kind(kind->value, kind->where);
    if (named.task() != task()) next = std::move(named);
  }
  std::visit([&](auto& c) { c.parse(yaml, name); }, next.of);
  *this = std::move(next);
}

RunConfig read_folder_config(const std::string& folder) {
  if (is_pretrained_folder(folder)) {
    switch (run_task(folder)) {
      case TaskKind::translation:
        return RunConfig(read_pretrained_translation_config(folder));
      case TaskKind::language:
        return RunConfig(read_pretrained_language_config(folder));
      case TaskKind::vision:
        return RunConfig(read_pretrained_vision_config(folder));
      case TaskKind::encoding:
        return RunConfig(read_pretrained_encoding_config(folder));
    }
  }
  switch (const TaskKind task = run_task(folder)) {
    case TaskKind::translation:
      return RunConfig(read_run_config(run_config_path(folder, task)));
    case TaskKind::vision: {
      VisionConfig config;
      config.read(run_config_path(folder, task));
      return RunConfig(std::move(config));
    }
    case TaskKind::language:
      return RunConfig(read_language_config(run_config_path(folder, task)));
    case TaskKind::encoding:
      return RunConfig(read_encoding_config(run_config_path(folder, task)));
  }
  return {};
}

std::vector<std::string> all_kinds() {
  std::vector<std::string> all;
  for (size_t i = 0; i < std::variant_size_v<Tasks>; ++i) {
    const auto& kinds = facts_of(static_cast<TaskKind>(i)).kinds;
    all.insert(all.end(), kinds.begin(), kinds.end());
  }
  return all;
}

std::vector<Setting> offered_settings() {
  const std::vector<std::string> every_kind = all_kinds();
  std::vector<Setting> all;
  std::map<std::string, std::vector<std::pair<std::string, Text>>> said;            // name, kinds with their help
  std::map<std::string, std::map<std::string, std::vector<std::string>>> defaults;  // name, value, kinds
  for (const std::string& kind : every_kind) {
    RunConfig config = RunConfig::of_kind(kind, "");
    const Settings table = config.settings();
    for (const Setting& s : table.all()) {
      const auto known = std::ranges::find(all, s.name(), &Setting::name);
      if (known == all.end())
        all.push_back(s);
      else
        for (const std::string& word : s.choices)
          if (std::ranges::find(known->choices, word) == known->choices.end()) known->choices.push_back(word);
      said[s.name()].emplace_back(kind, s.help);
      defaults[s.name()][s.get()].push_back(kind);
    }
  }
  // Settings of one block stand together.
  const auto rank = [](const Setting& s) {
    constexpr std::string_view blocks[] = {"data", "model", "training", "book", "decoding"};
    return std::ranges::find(blocks, s.block) - std::begin(blocks);
  };
  std::ranges::stable_sort(all, {}, rank);
  // A setting that not every kind has, or that differs between kinds, names its kinds in the help.
  for (Setting& s : all) {
    std::vector<std::string> values;
    for (const auto& [value, kinds] : defaults[s.name()])
      values.push_back(defaults[s.name()].size() == 1 ? value : listed(kinds) + " " + value);
    s.get = [text = listed(values)] { return text; };  // the config that it read is gone
    // Kinds with the same help are named together.
    std::vector<std::pair<std::vector<std::string>, Text>> groups;
    for (const auto& [kind, help] : said[s.name()]) {
      const auto same = std::ranges::find_if(
          groups, [&, &h = help](const auto& g) { return g.second.in(Language::en) == h.in(Language::en); });
      if (same == groups.end())
        groups.push_back({{kind}, help});
      else
        same->first.push_back(kind);
    }
    if (groups.size() == 1 && groups[0].first.size() == every_kind.size()) continue;
    s.help = {};
    for (const auto& [kinds, help] : groups) {
      const Text named = tr("{kind}: {help}", "kind"_a = listed(kinds), "help"_a = help);
      s.help = s.help.empty() ? named : tr("{before}; {help}", "before"_a = s.help, "help"_a = named);
    }
  }
  return all;
}

}  // namespace qkv
