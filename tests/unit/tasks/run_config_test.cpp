// One configuration for all tasks: kinds, presets, and the settings of a command line.
#include "qkv/tasks/run_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/tasks/presets.h"
#include "unit/tasks/translation_fixture.h"

namespace qkv {
namespace {

TEST(RunConfig, ACommandLineOffersTheSettingsOfAllKinds) {
  const std::vector<Setting> all = offered_settings();
  const auto named = [&](const std::string& name) { return std::ranges::find(all, name, &Setting::name); };
  for (const char* name : {"model.kind", "model.cell", "model.heads", "book.positions", "training.epochs"}) {
    ASSERT_NE(named(name), all.end()) << name;
    EXPECT_EQ(std::ranges::count(all, named(name)->flag, &Setting::flag), 1) << name;
  }
  EXPECT_EQ(named("book.positions")->flag, "--book-positions");
  EXPECT_TRUE(named("model.heads")->help.in(Language::en).starts_with("transformer"));
  EXPECT_EQ(named("model.hidden")->help.in(Language::en), "width of the states");
  EXPECT_NE(named("model.dropout")->help.in(Language::en).find("; transformer, language: "), std::string::npos);
  for (const char* word : {"none", "gaussian"})
    EXPECT_TRUE(std::ranges::count(named("model.attention")->choices, word)) << word;
}

TEST(RunConfig, EveryKindHasATaskAndItsDefaultsDumpAndReadBack) {
  for (const std::string& kind : all_kinds()) {
    RunConfig config = RunConfig::of_kind(kind, "--kind");
    EXPECT_EQ(config.kind(), kind);
    EXPECT_EQ(task_of(kind), config.task());
    const std::string dump = config.settings().dump();
    RunConfig back;
    back.parse(dump, "dump.yaml");
    EXPECT_EQ(back.kind(), kind);
    EXPECT_EQ(back.settings().dump(), dump);
    for (const std::string& source : config.sources()) EXPECT_TRUE(config.settings().has(source)) << source;
  }
  EXPECT_TRUE(error_of([] { RunConfig::of_kind("transformr", "--kind"); }).ends_with("did you mean \"transformer\"?"));
}

TEST(RunConfig, EveryPresetIsReadAsItsKind) {
  for (const std::string& name : preset_names()) {
    RunConfig config = RunConfig::preset(name);
    const auto kind = find_setting(preset_text(name), name, "model.kind");
    if (kind) {
      EXPECT_EQ(config.kind(), kind->value) << name;
    }
    std::visit([&](const auto& c) { EXPECT_EQ(c.preset, name); }, config.of);
  }
}

TEST(RunConfig, ASettingOfAnotherKindIsExplained) {
  RunConfig config = RunConfig::of_kind("seq2seq", "--kind");
  EXPECT_TRUE(
      error_of([&] { config.settings().find("model.ffn"); }).starts_with("model.ffn is a setting of transformer"));
}

}  // namespace
}  // namespace qkv
