// fit with a function: how its steps are divided into epochs, what the function is called with, and continuing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "qkv/nn/layers.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/train/fit.h"
#include "support/files.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

struct Trained {
  Progress progress;
  std::vector<float> weights;
  std::vector<int64_t> numbers;      // that the function was called with
  std::vector<int64_t> epoch_ends;   // steps at which on_epoch was called
  std::vector<int64_t> epoch_sizes;  // batches that it was told
};

Trained train(FitOptions options) {
  Linear model(3, 2, Rng(1));
  const Tensor x = normal({8, 3}, Rng(2)), y = normal({8, 2}, Rng(3));
  Trained out;
  options.on_epoch = [&](const Progress& p) {
    out.epoch_ends.push_back(p.step);
    out.epoch_sizes.push_back(p.batches);
  };
  Adam adam;
  out.progress = fit(model, adam, options, [&](int64_t number, const Run& run) {
                   out.numbers.push_back(number);
                   return squared_error(dropout(model(x), 0.2f, run), y + static_cast<float>(number));
                 }).progress;
  each_tensor(model, [&](const std::string&, Tensor& t) {
    out.weights.insert(out.weights.end(), t.data().begin(), t.data().end());
  });
  return out;
}

using Numbers = std::vector<int64_t>;

Numbers up_to(int64_t end) {
  Numbers out(static_cast<size_t>(end));
  std::iota(out.begin(), out.end(), int64_t{0});
  return out;
}

TEST(FitFunction, DividesItsStepsIntoTheEpochsThatWereAskedFor) {
  EXPECT_EQ(train({.epochs = 2, .steps = 10}).epoch_ends, (Numbers{5, 10}));
  EXPECT_EQ(train({.epochs = 3, .steps = 10}).epoch_ends, (Numbers{4, 7, 10}));
  EXPECT_EQ(train({.epochs = 5, .steps = 11}).epoch_ends, (Numbers{3, 5, 7, 9, 11}));
  EXPECT_EQ(train({.epochs = 3, .steps = 2}).epoch_ends, (Numbers{1, 2})) << "an epoch has at least one step";
  EXPECT_EQ(train({.epochs = 3}).epoch_ends, (Numbers{1, 2, 3}));
  EXPECT_EQ(train({.steps = 4}).epoch_ends, (Numbers{4}));
  for (const auto& [epochs, steps] : {std::pair{100, 150}, {10, 11}, {7, 7}, {1, 5}, {4, 12}}) {
    const Trained got = train({.epochs = epochs, .steps = steps});
    EXPECT_EQ(std::ssize(got.epoch_ends), epochs);
    EXPECT_EQ(got.epoch_ends.back(), steps);
    EXPECT_EQ(got.progress.epochs, epochs);
    EXPECT_EQ(got.progress.steps, steps);
    EXPECT_EQ(got.numbers, up_to(steps));
    EXPECT_EQ(std::accumulate(got.epoch_sizes.begin(), got.epoch_sizes.end(), int64_t{0}), steps);
    EXPECT_EQ(got.weights, train({.steps = steps}).weights) << "epochs do not change what is learnt";
  }
  EXPECT_TRUE(train({.epochs = 0, .steps = 3}).numbers.empty());
  EXPECT_TRUE(train({.epochs = 3, .steps = 0}).numbers.empty());
}

TEST(FitFunction, IsCalledWithTheNumberOfTheBatch) {
  EXPECT_EQ(train({.steps = 2, .accumulate = 5}).numbers, up_to(10));
  EXPECT_EQ(train({.epochs = 2, .steps = 3, .accumulate = 2}).numbers, up_to(6));
  EXPECT_EQ(train({.epochs = 2, .accumulate = 3}).numbers, up_to(6)) << "an epoch is one update";
  EXPECT_EQ(train({.epochs = 2, .accumulate = 3}).epoch_ends, (Numbers{1, 2}));
  EXPECT_EQ(qkv_test::error_of([] { train({.steps = 2, .accumulate = 0}); }),
            "[fit] accumulate, the batches per update, must be 1 or more, got 0");
}

TEST(FitFunction, ACheckpointContinuesWithOtherLimits) {
  const fs::path folder = fs::temp_directory_path() / ("qkv-function-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string file = folder / "checkpoint";
  const std::vector<float> whole = train({.epochs = 3, .steps = 11, .accumulate = 2}).weights;
  const FitOptions more[] = {{.steps = 11},
                             {.epochs = 11},
                             {.epochs = 3, .steps = 11},
                             {.epochs = 4, .steps = 11},
                             {.steps = 11, .seconds = 1000},
                             {.epochs = 11, .seconds = 1000}};
  for (const FitOptions& before : {FitOptions{.steps = 5}, FitOptions{.epochs = 5}, FitOptions{.epochs = 2, .steps = 5},
                                   FitOptions{.steps = 5, .seconds = 1000}})
    for (FitOptions after : more) {
      fs::remove(file);
      FitOptions first = before;
      first.checkpoint = after.checkpoint = file;
      first.accumulate = after.accumulate = 2;
      EXPECT_EQ(train(first).progress.steps_here, 5);
      const Trained rest = train(after);
      EXPECT_EQ(rest.progress.steps_here, 6);
      EXPECT_EQ(rest.numbers.front(), 10);
      EXPECT_EQ(rest.weights, whole);
      EXPECT_EQ(rest.epoch_ends.back(), 11);
      EXPECT_EQ(train(after).progress.steps_here, 0);
      EXPECT_EQ(train(first).progress.steps_here, 0) << "fewer steps than were made";
    }
  // By the clock: wherever it stopped, more steps continue there.
  fs::remove(file);
  const int64_t made = train({.seconds = 0.01, .checkpoint = file}).progress.step;
  ASSERT_GT(made, 0);
  EXPECT_GT(train({.seconds = 0.01, .checkpoint = file}).progress.step, made);
  EXPECT_GT(train({.steps = 1'000'000, .seconds = 0.01, .checkpoint = file}).progress.step, made + 1);
  EXPECT_GT(train({.steps = 1'000'010, .seconds = 0.01, .checkpoint = file}).progress.step, made + 2);
  fs::remove_all(folder);
}

TEST(FitFunction, TheLossOfAnEpochSurvivesAPause) {
  const fs::path folder = fs::temp_directory_path() / ("qkv-pause-" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const std::string file = folder / "checkpoint";
  const double loss = train({.epochs = 2, .steps = 9}).progress.epoch_loss;
  std::atomic<bool> stop = false;
  train({.epochs = 2, .steps = 9, .checkpoint = file, .stop = &stop, .on_step = [&](const Progress& p) {
           stop = p.step == 7;
         }});
  EXPECT_EQ(train({.epochs = 2, .steps = 9, .checkpoint = file}).progress.epoch_loss, loss);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace qkv
