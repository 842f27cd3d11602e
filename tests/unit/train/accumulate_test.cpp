// Several batches in one update: the gradient is that of all their rows, to the bit if the shards are the same, and
// training resumes.
#include <gtest/gtest.h>

#include <filesystem>

#include "programs/toy_task.h"
#include "qkv/core/parallel.h"
#include "support/files.h"

namespace qkv {
namespace {

// The toy task's batches of 100 rows split into batches of `size`.
struct CutTask {
  tests::ToyTask toy;
  int64_t size;

  int64_t batches() const { return 5 * 100 / size; }
  tests::ToyBatch batch(int64_t epoch, int64_t index) const {
    const int64_t parts = 100 / size;
    const tests::ToyBatch whole = toy.batch(epoch, index / parts);
    return {whole.x.part(index % parts * size * 12, {size, 12}), whole.targets.part(index % parts * size, {size})};
  }
  int64_t rows(const tests::ToyBatch& b) const { return toy.rows(b); }
  Loss loss(const tests::ToyBatch& b, int64_t begin, int64_t end, const Run& run) const {
    return toy.loss(b, begin, end, run);
  }
};

struct Trained {
  FitResult result;
  std::vector<float> weights;
};

Trained train(int64_t size, const FitOptions& options, std::span<Observer* const> observers = {}) {
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  const FitResult result = fit(all, adam, options, CutTask{{model}, size}, observers);
  return {result, {all.flat().data().begin(), all.flat().data().end()}};
}

FitOptions options_of(int64_t accumulate) {
  return {.epochs = 6,
          .rate = constant_rate(0.01f),
          .accumulate = accumulate,
          .clip = 1,
          .seed = 3,
          .shards = ShardPolicy{.most = 1000, .least_rows = 25}};
}

TEST(Accumulate, BatchesOfOneShardAreTheShardsOfOneBatchToTheBit) {
  const Trained whole = train(100, options_of(1));
  for (const int count : {1, 2, 8}) {
    set_threads(count);
    const Trained parts = train(25, options_of(4));
    EXPECT_EQ(parts.weights, whole.weights) << count;
    EXPECT_EQ(parts.result.progress.step, 30);
    EXPECT_EQ(parts.result.progress.steps, 30);
    EXPECT_EQ(parts.result.progress.batches, 20);
    EXPECT_EQ(parts.result.progress.epoch_loss, whole.result.progress.epoch_loss);
  }
  set_threads(2);
  EXPECT_EQ(train(50, options_of(2)).weights, whole.weights);
  EXPECT_NE(train(25, options_of(1)).weights, whole.weights);
}

TEST(Accumulate, AnEpochsLastUpdateTakesWhatIsLeft) {
  struct Batches : Observer {
    std::vector<int64_t> seen;
    void step(const Progress& p) override { seen.push_back(p.batch); }
  } batches;
  Observer* observers[] = {&batches};
  FitOptions options = options_of(3);
  options.epochs = 2;
  const Trained run = train(50, options, observers);
  EXPECT_EQ(batches.seen, (std::vector<int64_t>{3, 6, 9, 10, 3, 6, 9, 10}));
  EXPECT_EQ(run.result.progress.steps, 8);
  FitOptions all = options_of(1000000);  // more than there are: one update per epoch
  EXPECT_EQ(train(50, all).result.progress.step, 6);
}

TEST(Accumulate, ResumesAfterAStopBetweenAnyTwoUpdates) {
  qkv_test::TempFolder folder;
  const Trained whole = train(25, options_of(3));
  FitOptions options = options_of(3);
  options.checkpoint = folder / "last.safetensors";
  std::atomic<bool> stop{true};  // after every update
  options.stop = &stop;
  Trained last;
  int starts = 0;
  do last = train(25, options), ++starts;
  while (last.result.interrupted && starts < 100);
  // 7 updates per epoch, each in a separate process; the last one is also told to stop, and the next has nothing to do.
  EXPECT_EQ(starts, 43);
  EXPECT_EQ(last.weights, whole.weights);
  EXPECT_EQ(last.result.progress.step, 42);
}

TEST(Accumulate, ACheckpointInTheMiddleOfAnUpdateIsRefused) {
  qkv_test::TempFolder folder;
  FitOptions options = options_of(3);
  options.checkpoint = folder / "last.safetensors";
  std::atomic<bool> stop{true};
  options.stop = &stop;
  EXPECT_TRUE(train(25, options).result.interrupted);
  options.accumulate = 2;
  EXPECT_EQ(qkv_test::error_of([&] { train(25, options); }),
            options.checkpoint + ": is at batch 3, which is not a multiple of the 2 batches per update");
  options.accumulate = 0;
  EXPECT_EQ(qkv_test::error_of([&] { train(25, options); }),
            "[fit] accumulate, the batches per update, must be 1 or more, got 0");
}

}  // namespace
}  // namespace qkv
