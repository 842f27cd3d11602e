// A language of digits that a model learns in seconds, and folders for its runs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/tasks/translation/run.h"
#include "support/threads.h"

namespace qkv {

namespace fs = std::filesystem;

class TranslationRunTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(folder_);
    // Digits to words, reversed: a language that attention learns in seconds.
    const char* names[] = {"nul", "un", "deux", "trois", "quatre", "cinq"};
    std::ofstream out(pairs());
    for (int a = 0; a < 6; ++a)
      for (int b = 0; b < 6; ++b)
        for (int c = 0; c < 6; ++c)
          if ((a + b + c) % 2 == 0)
            out << a << ' ' << b << ' ' << c << '\t' << names[c] << ' ' << names[b] << ' ' << names[a] << '\n';
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string pairs() const { return folder_ / "pairs.tsv"; }
  std::string run_folder(const char* name = "run") const { return folder_ / name; }
  TranslationConfig config(int64_t epochs = 3) const {
    TranslationConfig c;
    c.data.pairs = pairs();
    c.data.tokenizer = TokenizerKind::spaces;
    c.data.valid_share = 0.1;
    c.seq2seq().embed = c.seq2seq().hidden = 24;
    c.training.epochs = epochs;
    c.training.rate = 0.01;
    c.training.checkpoint_seconds = 0;
    return c;
  }
  static std::vector<float> weights(const TranslationRun& run) {
    const auto data = run.model().parameters().flat().data();
    return {data.begin(), data.end()};
  }
  qkv_test::ThreadsScope threads_scope_;
  fs::path folder_ = fs::temp_directory_path() / ("qkv-translation-" + std::to_string(::getpid()));
};

inline std::string error_of(const auto& work) {
  try {
    work();
  } catch (const Error& e) {
    return e.hint().empty() ? e.what() : text(e.what(), " | ", e.hint().in(Language::en));
  }
  return "";
}

}  // namespace qkv
