// Checkpoints: saved values are loaded unchanged, and a failed write loses nothing.
#include "qkv/train/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "qkv/io/safetensors.h"
#include "support/files.h"

using namespace qkv;
using qkv_test::error_of;
using qkv_test::file_bytes;
using qkv_test::TempFolder;

namespace {

Checkpoint at_step(int64_t step, const Shape& shape) {
  Checkpoint out;
  out.tensors["encoder.weight"] = full(shape, static_cast<float>(step));
  out.tensors["adam.m.encoder.weight"] = zeros(shape);
  out.set("step", step);
  out.counters["note"] = "two\nlines";
  return out;
}

/// While it exists, files of this process cannot grow beyond `bytes`: write() then fails with "File too large", as on a
/// full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    check(setrlimit(RLIMIT_FSIZE, &limit) == 0, "no file size limit");
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace

TEST(Checkpoint, ComesBackWithItsCounters) {
  TempFolder folder;
  const std::string path = folder / "last.safetensors";
  const Checkpoint saved = at_step(7, {2, 3});
  save_checkpoint(path, saved);
  const Checkpoint loaded = load_checkpoint(path);
  EXPECT_EQ(loaded.counters, saved.counters);
  EXPECT_EQ(loaded.integer("step"), 7);
  ASSERT_EQ(loaded.tensors.size(), 2u);
  EXPECT_EQ(loaded.tensors.at("encoder.weight").shape(), Shape({2, 3}));
  EXPECT_EQ(loaded.tensors.at("encoder.weight").data()[5], 7.f);
  EXPECT_EQ(loaded.tensors.at("adam.m.encoder.weight").data()[0], 0.f);
}

TEST(Checkpoint, NamesACounterThatIsMissingOrNoNumber) {
  Checkpoint checkpoint = at_step(7, {1});
  EXPECT_EQ(error_of([&] { (void)checkpoint.integer("epoch"); }), "the checkpoint has no counter \"epoch\"");
  checkpoint.counters["epoch"] = "3x";
  EXPECT_EQ(error_of([&] { (void)checkpoint.integer("epoch"); }),
            "the checkpoint's counter \"epoch\" is \"3x\", expected a whole number");
  checkpoint.counters["epoch"] = "9223372036854775808";
  EXPECT_EQ(error_of([&] { (void)checkpoint.integer("epoch"); }),
            "the checkpoint's counter \"epoch\" is \"9223372036854775808\", expected a whole number");
  checkpoint.set("epoch", INT64_MIN);
  EXPECT_EQ(checkpoint.integer("epoch"), INT64_MIN);
}

TEST(Checkpoint, IsToldFromPlainWeights) {
  TempFolder folder;
  const std::string path = folder / "model.safetensors";
  write_safetensors(path, std::map<std::string, Tensor>{{"w", ones({1})}});
  EXPECT_EQ(error_of([&] { load_checkpoint(path); }),
            path + ": not a checkpoint, its metadata has no \"qkv.checkpoint\"");
  write_safetensors(path, std::map<std::string, Tensor>{{"w", ones({1})}}, {{"qkv.checkpoint", "2"}});
  EXPECT_EQ(error_of([&] { load_checkpoint(path); }), path + ": a checkpoint of version 2, expected 1");
}

TEST(Checkpoint, TheOldOneSurvivesAFullDisk) {
  TempFolder folder;
  const std::string path = folder / "last.safetensors";
  save_checkpoint(path, at_step(1, {10}));
  const std::string before = file_bytes(path);
  for (const rlim_t limit : {0, 100, 4096, 300000}) {  // in the length, in the header, in either tensor
    const FileSizeLimit full(limit);
    EXPECT_EQ(error_of([&] { save_checkpoint(path, at_step(2, {50000})); }),
              "cannot write " + path + ": File too large");
  }
  EXPECT_EQ(file_bytes(path), before);
  EXPECT_EQ(load_checkpoint(path).integer("step"), 1);
  EXPECT_EQ(folder.count(), 1) << "a temporary was left";
  save_checkpoint(path, at_step(2, {50000}));
  EXPECT_EQ(load_checkpoint(path).integer("step"), 2);
}
