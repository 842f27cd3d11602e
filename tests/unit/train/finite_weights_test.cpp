// Weights that are not finite are never saved: the update that makes them ends the training.
#include <gtest/gtest.h>

#include <cmath>

#include "programs/toy_task.h"
#include "qkv/train/fit.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

// A rate that spoils the weights in one step.
Schedule spoils_step(int64_t last) {
  return [=](int64_t step) { return step == last ? 1e38f : 0.01f; };
}

struct StepCount : Observer {
  int64_t steps = 0;
  void step(const Progress&) override { ++steps; }
};

}  // namespace

TEST(FiniteWeights, TheVeryLastUpdateIsLookedAtToo) {
  tests::ToyModel model(Rng(1));
  const Parameters all = flatten(model);
  Adam adam({.decay = 10});
  const std::string error =
      error_of([&] { fit(all, adam, {.epochs = 1, .rate = spoils_step(4)}, tests::ToyTask{model}); });
  EXPECT_EQ(error, "[fit] step 5: the update made weights that are not finite; they were not written to any file");
}

TEST(FiniteWeights, TheOldCheckpointStaysAndNoObserverIsToldOfTheStep) {
  const qkv_test::TempFolder folder;
  const std::string file = folder / "last.safetensors";
  const auto train = [&](Schedule rate, int64_t epochs, StepCount& count) {
    tests::ToyModel model(Rng(1));
    const Parameters all = flatten(model);
    Adam adam({.decay = 10});
    Observer* observers[] = {&count};
    fit(all, adam, {.epochs = epochs, .rate = std::move(rate), .checkpoint = file, .checkpoint_every = 1},
        tests::ToyTask{model}, observers);
  };
  StepCount first, second;
  train(constant_rate(0.01f), 1, first);
  const std::string before = qkv_test::file_bytes(file);
  EXPECT_EQ(error_of([&] { train(spoils_step(5), 2, second); }),
            "[fit] step 6: the update made weights that are not finite; they were not written to any file");
  EXPECT_EQ(first.steps, 5);
  EXPECT_EQ(second.steps, 0);
  EXPECT_EQ(qkv_test::file_bytes(file), before);
  train(constant_rate(0.01f), 2, second);
  EXPECT_EQ(second.steps, 5) << "the old checkpoint can be resumed from";
}

TEST(FiniteWeights, ACallbacksMeanOrAnOptimizersStateIsLookedAtBeforeItIsWritten) {
  const qkv_test::TempFolder folder;
  const std::string file = folder / "last.safetensors";
  struct Mean : Callback {
    void save(Checkpoint& out) const override { out.tensors["companion.mean"] = Tensor({2}, {1, INFINITY}); }
  } mean;
  tests::ToyModel model(Rng(1));
  const Parameters all = flatten(model);
  Adam adam;
  EXPECT_EQ(
      error_of([&] { fit(all, adam, {.epochs = 1, .checkpoint = file, .callbacks = {&mean}}, tests::ToyTask{model}); }),
      "[fit] step 5: \"companion.mean\" has values that are not finite; no checkpoint was written");
  EXPECT_EQ(folder.count(), 0);
  adam.state()[1].tensor.mutable_ptr()[0] = INFINITY;  // of the squared gradients: its weight just stands still
  EXPECT_EQ(error_of([&] { fit(all, adam, {.epochs = 1, .checkpoint = file}, tests::ToyTask{model}); }),
            "[fit] step 5: \"adam.v.first.weight\" has values that are not finite; no checkpoint was written");
  EXPECT_EQ(folder.count(), 0);
}

}  // namespace qkv
