// The folder of a run of any task: its lock, what it refuses, and what it removes when.
#include "qkv/run/run_folder.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "qkv/core/check.h"
#include "support/files.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using qkv_test::error_of;

const std::vector<std::string> kOwn = {"words.txt", "mark.txt"};

void put(const std::string& path, const std::string& content = "x") {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << content;
}

// A folder as a run leaves it.
void put_run(const std::string& path) {
  for (const char* name : {"config.yaml", "model.safetensors", "checkpoints/last.safetensors", "words.txt", "mark.txt"})
    put(path + "/" + name);
}

struct Numbers {
  int64_t epochs = 2, width = 8, beam = 1;
  Settings settings() {
    Settings s;
    s.add("model", "width", {}, width);
    s.add("training", "epochs", {}, epochs);
    s.add("decoding", "beam", {}, beam);
    return s;
  }
};

TEST(RunFolder, BeginsWithItsMarkAndEndsWithItsConfiguration) {
  const qkv_test::TempFolder temp;
  const std::string path = temp / "run";
  RunFolder folder(path, ExistingRun::resume, kOwn);
  EXPECT_FALSE(fs::exists(path)) << "nothing is made before all else is known to work";
  EXPECT_FALSE(folder.holds_run());
  folder.begin(
      [&] {
        EXPECT_FALSE(fs::exists(path + "/config.yaml"));
        put(path + "/mark.txt");
      },
      "a: 1\n");
  EXPECT_EQ(qkv_test::file_bytes(path + "/config.yaml"), "a: 1\n");
  EXPECT_TRUE(fs::is_directory(path + "/checkpoints"));
  EXPECT_NE(
      error_of([&] { RunFolder(path, ExistingRun::resume, kOwn); }).find("another process is training in this folder"),
      std::string::npos);
  folder.unlock();
  const RunFolder again(path, ExistingRun::resume, kOwn);
  EXPECT_TRUE(again.holds_run());
  EXPECT_FALSE(again.resumes()) << "there is no checkpoint yet";
}

TEST(RunFolder, OfSomebodyElseIsLeftAlone) {
  const qkv_test::TempFolder temp;
  const std::string path = temp / "mine";
  put(path + "/train.log", "my own");
  for (const ExistingRun existing : {ExistingRun::resume, ExistingRun::discard})
    EXPECT_EQ(error_of([&] { RunFolder(path, existing, kOwn); }),
              path + ": has train.log, but is not a run: there is no mark.txt");
  EXPECT_EQ(qkv_test::file_bytes(path + "/train.log"), "my own");
  fs::remove(path + "/train.log");
  fs::create_directories(path + "/checkpoints");
  EXPECT_EQ(error_of([&] { RunFolder(path, ExistingRun::resume, kOwn); }), "no error")
      << "as a run leaves it that was cut off at once";
}

TEST(RunFolder, DiscardsARunOnlyWhenTheNewOneBegins) {
  const qkv_test::TempFolder temp;
  const std::string path = temp / "run";
  put_run(path);
  put(path + "/notes.txt", "my own");
  RunFolder folder(path, ExistingRun::discard, kOwn);
  EXPECT_FALSE(folder.holds_run());
  EXPECT_TRUE(fs::exists(path + "/model.safetensors"));
  folder.begin([] {}, "new");
  EXPECT_EQ(qkv_test::file_bytes(path + "/config.yaml"), "new");
  for (const char* name : {"model.safetensors", "checkpoints/last.safetensors", "words.txt"})
    EXPECT_FALSE(fs::exists(path + "/" + name)) << name;
  EXPECT_EQ(qkv_test::file_bytes(path + "/notes.txt"), "my own");
}

TEST(RunFolder, WithoutItsConfigurationIsNotResumed) {
  const qkv_test::TempFolder temp;
  const std::string path = temp / "run";
  put_run(path);
  fs::remove(path + "/config.yaml");
  EXPECT_EQ(error_of([&] { RunFolder(path, ExistingRun::resume, kOwn); }),
            path + ": has model.safetensors but no config.yaml: the rest of a run is missing");
}

TEST(RunFolder, ComparesSettingsByTheRulesOfResuming) {
  const qkv_test::TempFolder temp;
  const std::string path = temp / "run";
  put_run(path);
  const RunFolder folder(path, ExistingRun::resume, kOwn);
  EXPECT_TRUE(folder.resumes());
  const auto refused = [&](Numbers asked, const ResumeRules& rules) {
    Numbers saved;
    return error_of([&] { folder.check_settings(saved.settings(), asked.settings(), rules); });
  };
  const ResumeRules none{.may_change = {}};
  EXPECT_EQ(refused({}, none), "no error");
  EXPECT_EQ(refused({.width = 9}, none), path + "/config.yaml: model.width is 8, but 9 was requested");
  EXPECT_EQ(refused({.epochs = 1}, {.may_change = {}, .reasons = {{"training.epochs", verbatim("why")}}}),
            path + "/config.yaml: training.epochs is 2, but 1 was requested: why");
  EXPECT_EQ(refused({.epochs = 3}, {.may_change = {"training.epochs"}}), "no error");
  EXPECT_EQ(refused({.beam = 4}, {.may_change = {"decoding"}}), "no error");
  EXPECT_EQ(refused({.width = 9, .beam = 4}, {.may_change = {"decoding"}}),
            path + "/config.yaml: model.width is 8, but 9 was requested");
  fs::remove(path + "/checkpoints/last.safetensors");
  EXPECT_EQ(refused({}, none), path + ": has model.safetensors but no checkpoints/last.safetensors to resume from");
}

TEST(RunFolder, InMemoryHasNoFiles) {
  RunFolder folder("", ExistingRun::resume, kOwn);
  EXPECT_TRUE(folder.in_memory());
  EXPECT_EQ(folder.file("config.yaml"), "");
  folder.begin([] { FAIL() << "there is nowhere to write to"; }, "");
}

}  // namespace
}  // namespace qkv
