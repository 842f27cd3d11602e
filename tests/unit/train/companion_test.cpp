// A companion of fit: ends training early, is saved with it, and comes back with it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "programs/toy_task.h"
#include "qkv/train/fit.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// Counts epochs, keeps the sum of the first weight after each, and ends training after a number of them.
class Counter : public Companion {
 public:
  Counter(const Parameters& all, int64_t end) : all_(all), end_(end) {}
  bool after_epoch(Progress& p) override {
    ++epochs;
    p.valid_loss = 1.0 / static_cast<double>(epochs);
    sum = Tensor({1}, {sum.item() + all_.flat().ptr()[0]});
    return epochs == end_;
  }
  void save(Checkpoint& out) const override { out.set("companion.epochs", epochs), out.tensors["companion.sum"] = sum; }
  void saved() const override { saved_steps.push_back(load_checkpoint(file).integer("step")); }
  void restore(const Checkpoint& in) override { epochs = in.integer("companion.epochs"), sum = in.tensors.at("companion.sum").copied(); }
  int64_t epochs = 0;
  Tensor sum = zeros({1});
  std::string file;
  mutable std::vector<int64_t> saved_steps;  // of the file, whenever it was said to be on the disk

 private:
  const Parameters& all_;
  int64_t end_;
};

struct Outcome {
  std::vector<float> weights;
  float sum;
  int64_t epochs;
  FitResult result;
  std::vector<int64_t> saved_steps;
};

Outcome train(const std::string& checkpoint, int64_t epochs, int64_t end, double checkpoint_seconds = 0, const std::atomic<bool>* stop = nullptr) {
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam(all);
  Counter counter(all, end);
  counter.file = checkpoint;
  const FitResult r = fit(all, adam, tests::ToyTask{model},
                          {.epochs = epochs, .rate = constant_rate(0.01f), .seed = 3, .checkpoint = checkpoint,
                           .checkpoint_seconds = checkpoint_seconds, .companion = &counter, .stop = stop});
  return {{all.flat().data().begin(), all.flat().data().end()}, counter.sum.item(), counter.epochs, r, counter.saved_steps};
}

class CompanionTest : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file() const { return folder_ / "last.safetensors"; }
  fs::path folder_ = fs::temp_directory_path() / ("qkv-companion-" + std::to_string(::getpid()));
};

TEST_F(CompanionTest, EndsTrainingEarlyAndForGood) {
  const Outcome first = train(file(), 10, 3);
  EXPECT_TRUE(first.result.ended_early);
  EXPECT_EQ(first.epochs, 3);
  EXPECT_EQ(first.result.progress.epoch, 3);
  EXPECT_EQ(first.result.progress.valid_loss, 1.0 / 3);
  ASSERT_FALSE(first.saved_steps.empty());
  EXPECT_EQ(first.saved_steps.back(), first.result.progress.step) << "told before it was on the disk";
  const Outcome again = train(file(), 10, 3);
  EXPECT_TRUE(again.result.ended_early);
  EXPECT_EQ(again.result.progress.steps_here, 0);
  EXPECT_EQ(again.weights, first.weights);
}

TEST_F(CompanionTest, ComesBackWithTheCheckpointBitForBit) {
  const Outcome whole = train("", 6, 100);
  train(file(), 2, 100);
  const Outcome resumed = train(file(), 6, 100);
  EXPECT_EQ(resumed.weights, whole.weights);
  EXPECT_EQ(resumed.sum, whole.sum);
  EXPECT_EQ(resumed.epochs, 6);
}

TEST_F(CompanionTest, SavesAtTheEndWhateverTheClockSays) {
  train(file(), 4, 100, 3600);
  EXPECT_TRUE(fs::exists(file()));
  EXPECT_EQ(load_checkpoint(file()).integer("epoch"), 4);
}

TEST_F(CompanionTest, AnInterruptSavesWhateverTheClockSays) {
  const std::atomic<bool> stop = true;
  const Outcome cut = train(file(), 4, 100, 3600, &stop);
  EXPECT_TRUE(cut.result.interrupted);
  EXPECT_EQ(load_checkpoint(file()).integer("step"), 1);
  EXPECT_EQ(train(file(), 4, 100).weights, train("", 4, 100).weights);
}

}  // namespace
}  // namespace qkv
