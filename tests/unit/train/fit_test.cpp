// Training: the same bits at any thread count and after a kill, no allocation after warm-up, and what it refuses.
#include "qkv/train/fit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "counting_new.h"
#include "programs/toy_task.h"
#include "qkv/io/safetensors.h"
#include "qkv/train/checkpoint.h"
#include "qkv/train/metrics.h"
#include "qkv/train/progress.h"
#include "support/files.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

struct TemporaryFolder {
  fs::path path = fs::temp_directory_path() / ("qkv-fit-" + std::to_string(::getpid()));
  TemporaryFolder() { fs::create_directories(path); }
  ~TemporaryFolder() { fs::remove_all(path); }
};

std::vector<float> trained(int thread_count, int64_t epochs) {
  set_threads(thread_count);
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  fit(all, adam, {.epochs = epochs, .rate = constant_rate(0.01f), .clip = 1, .seed = 3}, tests::ToyTask{model});
  return {all.flat().data().begin(), all.flat().data().end()};
}

// Starts toy_fit; kills it after that many milliseconds unless they are negative. Returns true if it ended on its own.
bool run_toy_fit(const fs::path& folder, int thread_count, int kill_after_ms) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string checkpoint = folder / "last.safetensors", metrics = folder / "metrics.jsonl",
                      count = std::to_string(thread_count);
    std::freopen("/dev/null", "w", stdout);
    ::execl(QKV_TOY_FIT, "toy_fit", checkpoint.c_str(), metrics.c_str(), count.c_str(), nullptr);
    ::_exit(127);
  }
  if (kill_after_ms >= 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kill_after_ms));
    ::kill(child, SIGKILL);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) {
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  return WIFEXITED(status);
}

using qkv_test::error_of;

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST(Fit, OneTwoAndEightThreadsGiveTheSameBitsAfterTwoHundredSteps) {
  const auto one = trained(1, 40);
  EXPECT_EQ(one, trained(2, 40));
  EXPECT_EQ(one, trained(8, 40));
  set_threads(2);
}

TEST(Fit, LossFalls) {
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  const auto first = fit(all, adam, {.epochs = 1, .rate = constant_rate(0.01f)}, tests::ToyTask{model});
  const auto later = fit(all, adam, {.epochs = 30, .rate = constant_rate(0.01f)}, tests::ToyTask{model});
  EXPECT_LT(later.progress.epoch_loss, 0.8 * first.progress.epoch_loss);
}

TEST(Fit, KilledAtRandomMomentsAndResumedItEndsWithTheSameBits) {
  TemporaryFolder folder;
  const fs::path whole = folder.path / "whole", broken = folder.path / "broken";
  fs::create_directories(whole);
  fs::create_directories(broken);
  ASSERT_TRUE(run_toy_fit(whole, 2, -1));
  int kills = 0;
  const Rng moments(static_cast<uint64_t>(::getpid()));
  while (kills < 60 &&
         !run_toy_fit(broken, 1 + kills % 3, 5 + static_cast<int>(moments.below(60, static_cast<uint64_t>(kills)))))
    ++kills;
  if (kills == 60) {
    ASSERT_TRUE(run_toy_fit(broken, 2, -1));
  }
  EXPECT_GE(kills, 1) << "the program ended before it could be killed once";
  const SafetensorsFile a((whole / "last.safetensors").string()), b((broken / "last.safetensors").string());
  EXPECT_EQ(a.metadata(), b.metadata());
  EXPECT_EQ(contents(whole / "last.safetensors"), contents(broken / "last.safetensors"));
  // Every step appears in the metrics once, in order.
  int64_t lines = 0, expected_step = 1;
  std::ifstream metrics(broken / "metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    ++lines;
    if (line.find("\"kind\":\"step\"") == std::string::npos) continue;
    EXPECT_NE(line.find("\"step\":" + std::to_string(expected_step) + ","), std::string::npos) << line;
    ++expected_step;
  }
  EXPECT_EQ(expected_step, 201);
  EXPECT_EQ(lines, 240);
  for (const auto& file : fs::directory_iterator(whole))
    EXPECT_TRUE(file.path().extension() == ".safetensors" || file.path().extension() == ".jsonl") << file.path();
}

TEST(Fit, AfterWarmUpAStepCallsNoOperatorNewAndMissesNoPool) {
  set_threads(2);
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  Shards shards(all);
  const tests::ToyTask task{model};
  qkv::Run run{.training = true, .rng = Rng(3)};
  const auto one_step = [&](int64_t step) {
    const auto batch = task.batch(step / 5, step % 5);
    run.rng = run.rng.at_step(static_cast<uint64_t>(step));
    shards.gradients(100, 100, run, [&](int64_t b, int64_t e, const qkv::Run& r) { return task.loss(batch, b, e, r); });
    adam.step(all, shards.gradient(), 0.01f, clip_factor(norm(shards.gradient()), 1));
  };
  for (int64_t step = 0; step < 50; ++step) one_step(step);
  const int64_t news = tests::operator_new_calls(), misses = shards.pool_misses() + Pool::of_thread().misses(),
                bytes = Pool::of_thread().bytes();
  for (int64_t step = 50; step < 150; ++step) one_step(step);
  EXPECT_EQ(tests::operator_new_calls(), news);
  EXPECT_EQ(shards.pool_misses() + Pool::of_thread().misses(), misses);
  EXPECT_EQ(Pool::of_thread().bytes(), bytes);
}

TEST(Fit, AStopRequestSavesAndTheRunCanBeResumed) {
  TemporaryFolder folder;
  const std::string file = folder.path / "last.safetensors";
  const FitOptions plain{.epochs = 4, .rate = constant_rate(0.01f), .seed = 3};
  const auto train = [&](FitOptions options) {
    tests::ToyModel model(Rng(1));
    Parameters all = flatten(model);
    Adam adam;
    const FitResult result = fit(all, adam, options, tests::ToyTask{model});
    return std::pair{result, std::vector<float>(all.flat().data().begin(), all.flat().data().end())};
  };
  std::atomic<bool> stop{true};
  FitOptions with = plain;
  with.checkpoint = file;
  with.stop = &stop;
  int stops = 0;
  for (auto r = train(with); r.first.interrupted && stops < 100; r = train(with)) ++stops;
  EXPECT_EQ(stops, 20);  // stops after every step, including the last
  with.stop = nullptr;
  EXPECT_EQ(train(with).second, train(plain).second);
}

TEST(Fit, ALongEpochIsSavedByTheClock) {
  TemporaryFolder folder;
  const std::string file = folder.path / "last.safetensors";
  struct Fails : Observer {
    void step(const Progress& p) override { check(p.step != 4, "as if killed"); }
  } fails;
  const auto train = [](const FitOptions& options, std::span<Observer* const> observers = {}) {
    tests::ToyModel model(Rng(1));
    Parameters all = flatten(model);
    Adam adam;
    const FitResult result = fit(all, adam, options, tests::ToyTask{model}, observers);
    return std::pair{result.progress.steps_here,
                     std::vector<float>(all.flat().data().begin(), all.flat().data().end())};
  };
  FitOptions options{.epochs = 2, .rate = constant_rate(0.01f), .seed = 3, .checkpoint = file};
  Observer* observers[] = {&fails};
  options.checkpoint_seconds = 3600;
  EXPECT_EQ(error_of([&] { train(options, observers); }), "as if killed");
  EXPECT_FALSE(fs::exists(file));
  options.checkpoint_seconds = 1e-9;
  EXPECT_EQ(error_of([&] { train(options, observers); }), "as if killed");
  const Checkpoint middle = load_checkpoint(file);
  const int64_t step = middle.integer("step");
  EXPECT_TRUE(step >= 1 && step <= 3) << step << ": the first step is saved; how long that took may put off the next";
  EXPECT_EQ(middle.integer("epoch"), 0) << "an epoch has five steps";
  const auto resumed = train(options);
  EXPECT_EQ(resumed.first, 10 - step);
  options.checkpoint.clear();
  EXPECT_EQ(resumed.second, train(options).second);
}

TEST(Fit, RefusesACheckpointOfAnotherModelOrSeed) {
  TemporaryFolder folder;
  const std::string file = folder.path / "last.safetensors";
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  Sgd sgd({.momentum = 0.9f});
  const tests::ToyTask task{model};
  fit(all, adam, {.epochs = 1, .seed = 3, .checkpoint = file}, task);
  EXPECT_EQ(error_of([&] { fit(all, adam, {.epochs = 2, .seed = 4, .checkpoint = file}, task); }),
            file + ": was trained with seed 3, not 4");
  EXPECT_EQ(error_of([&] { fit(all, sgd, {.epochs = 2, .seed = 3, .checkpoint = file}, task); }),
            file +
                ": has no tensor \"sgd.velocity.first.weight\": it is a checkpoint of a different "
                "model or optimizer");
}

TEST(Fit, ARefusedCheckpointLeavesModelAndOptimizerAsTheyWere) {
  TemporaryFolder folder;
  const std::string file = folder.path / "last.safetensors";
  tests::ToyModel trained_model(Rng(1)), fresh(Rng(2));
  Parameters all = flatten(trained_model), others = flatten(fresh);
  Adam adam;
  Sgd sgd({.momentum = 0.9f});
  fit(all, adam, {.epochs = 1, .seed = 3, .checkpoint = file}, tests::ToyTask{trained_model});
  const std::vector<float> before(others.flat().data().begin(), others.flat().data().end());
  EXPECT_NE(error_of([&] { fit(others, sgd, {.epochs = 2, .seed = 3, .checkpoint = file}, tests::ToyTask{fresh}); }),
            "no error");
  EXPECT_EQ(std::vector<float>(others.flat().data().begin(), others.flat().data().end()), before);
  EXPECT_EQ(sgd.updates(), 0);
}

namespace {
// The toy task with another number of batches.
struct OtherBatches : tests::ToyTask {
  int64_t count;
  OtherBatches(const tests::ToyModel& model, int64_t batches) : ToyTask{model}, count(batches) {}
  int64_t batches() const { return count; }
};
}  // namespace

TEST(Fit, RefusesBeforeTheFirstStepWhatCannotEndWell) {
  TemporaryFolder folder;
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  int64_t steps = 0;
  struct Counter : Observer {
    int64_t& steps;
    explicit Counter(int64_t& s) : steps(s) {}
    void step(const Progress&) override { ++steps; }
  } counter(steps);
  Observer* observers[] = {&counter};
  const auto error = [&](const FitOptions& options, int64_t batches = 5) {
    return error_of([&] { fit(all, adam, options, OtherBatches(model, batches), observers); });
  };
  const std::string nowhere = folder.path / "none" / "last.safetensors",
                    below = folder.path / "text" / "last.safetensors";
  std::ofstream(folder.path / "text") << "text";
  EXPECT_EQ(error({.epochs = -1}), "[fit] epochs must be 0 or more, got -1");
  EXPECT_EQ(error({.epochs = 1}, 0), "[fit] the task has no batches: there is nothing to learn from");
  EXPECT_EQ(error({.clip = -1}), "[fit] the limit of the gradient norm must be 0 (none) or more, got -1");
  EXPECT_EQ(error({.shards = ShardPolicy::number(0)}),
            "[fit] a batch must be cut into 1 to 1024 shards of 1 or more rows, got 0 and 1");
  EXPECT_EQ(error({.checkpoint_every = -1}),
            "[fit] steps between checkpoints must be 0 (by the clock) or more, got -1");
  EXPECT_EQ(error({.rate = constant_rate(-0.5f)}), "[fit] step 1: the learning rate is -0.5, expected 0 or more");
  EXPECT_EQ(error({.rate = constant_rate(NAN)}), "[fit] step 1: the learning rate is nan, expected 0 or more");
  EXPECT_EQ(error({.checkpoint = nowhere}), "cannot write " + nowhere + ": No such file or directory");
  EXPECT_EQ(error({.checkpoint = below}), "cannot write " + below + ": Not a directory");
  EXPECT_EQ(error({.checkpoint = folder.path}), folder.path.string() + " is a directory, expected a file");
  EXPECT_EQ(error({.checkpoint = folder.path / "text"}).substr(0, (folder.path / "text").string().size() + 2),
            (folder.path / "text").string() + ": ");
  MetricsFile metrics((folder.path / "none" / "metrics.jsonl").string());
  Observer* with_metrics[] = {&metrics, &counter};
  EXPECT_EQ(error_of([&] { fit(all, adam, {}, tests::ToyTask{model}, with_metrics); }),
            "cannot write " + (folder.path / "none" / "metrics.jsonl").string() + ": No such file or directory");
  EXPECT_EQ(steps, 0);
  EXPECT_EQ(error({.epochs = 0}), "no error");
  EXPECT_EQ(steps, 0);
}

TEST(Fit, ACheckpointOfOtherUpdatesIsRefused) {
  TemporaryFolder folder;
  const std::string file = folder.path / "last.safetensors";
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  fit(all, adam, {.epochs = 2, .checkpoint = file}, tests::ToyTask{model});
  EXPECT_EQ(
      error_of([&] { fit(all, adam, {.epochs = 3, .accumulate = 5, .checkpoint = file}, tests::ToyTask{model}); }),
      file + ": has made 10 updates in 2 epochs and 0 batches, which does not fit 5 batches per update");
}

TEST(Fit, ResumesInTheMiddleOfAnEpochUnlessTheDataDiffers) {
  TemporaryFolder folder;
  const std::string file = folder.path / "last.safetensors";
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  std::atomic<bool> stop{false};
  struct StopAfterFour : Observer {
    std::atomic<bool>& stop;
    explicit StopAfterFour(std::atomic<bool>& s) : stop(s) {}
    void step(const Progress& p) override { stop = p.step == 4; }
  } four(stop);
  Observer* observers[] = {&four};
  EXPECT_TRUE(
      fit(all, adam, {.epochs = 2, .checkpoint = file, .stop = &stop}, tests::ToyTask{model}, observers).interrupted);
  EXPECT_EQ(error_of([&] { fit(all, adam, {.epochs = 2, .checkpoint = file}, OtherBatches(model, 3)); }),
            file + ": is at epoch 0, batch 4, step 4, but an epoch has 3 batches: it was trained on different data");
  const Progress p = fit(all, adam, {.epochs = 1, .checkpoint = file}, tests::ToyTask{model}).progress;
  EXPECT_EQ(p.count, 5 * p.count_here) << "the speed is of what this process did, not of the whole epoch";
}

TEST(Optimizers, RefuseOptionsThatMakeNoSense) {
  tests::ToyModel model(Rng(1));
  const Parameters all = flatten(model);
  EXPECT_EQ(error_of([&] { Sgd({.momentum = 1}); }), "[sgd] momentum must be in [0, 1), got 1");
  EXPECT_EQ(error_of([&] { Sgd({.l2 = -1}); }), "[sgd] weight decay must be 0 or more and finite, got -1");
  EXPECT_EQ(error_of([&] { Adam({.beta1 = 1}); }), "[adam] betas must be in [0, 1), got 1 and 0.999");
  EXPECT_EQ(error_of([&] { Adam({.epsilon = 0}); }), "[adam] epsilon must be above 0, got 0");
  EXPECT_EQ(error_of([&] { Adam({.decay = -0.5f}); }),
            "[adam] weight decay must be 0 or more and finite, got l2 0 and decay -0.5");
  EXPECT_EQ(error_of([&] { Adam({.decay = INFINITY}); }),
            "[adam] weight decay must be 0 or more and finite, got l2 0 and decay inf");
  EXPECT_EQ(error_of([&] { ParameterAverage(1.0); }), "[average] decay must be in [0, 1), got 1");
  Adam adam;
  EXPECT_EQ(error_of([&] { adam.step(all, zeros({3}), 0.1f); }).substr(0, 35), "[adam] a gradient of 3 elements for");
  EXPECT_EQ(error_of([] { warmup_inverse_sqrt(1, 0); }), "[schedule] warm-up must be at least one step, got 0");
  EXPECT_EQ(error_of([] { cosine_rate(1, 10, 10); }),
            "[schedule] a cosine needs more total steps than warm-up steps, got 10 and 10");
  EXPECT_EQ(error_of([] { step_rate(1, 0, 0.5f); }), "[schedule] the rate must change every 1 or more steps, got 0");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // the memory of sanitizers grows
TEST(Fit, ResidentMemoryIsFlatOverAThousandSteps) {
  struct Memory : Observer {
    int64_t at_start = 0, at_end = 0;
    static int64_t resident() {
      int64_t whole = 0, pages = 0;
      std::ifstream("/proc/self/statm") >> whole >> pages;
      return pages * ::sysconf(_SC_PAGESIZE);
    }
    void step(const Progress& p) override {
      if (p.step == 200) at_start = resident();
      if (p.step == 1200) at_end = resident();
    }
  } memory;
  set_threads(2);
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam;
  Observer* observers[] = {&memory};
  fit(all, adam, {.epochs = 240, .rate = constant_rate(0.001f), .clip = 1, .seed = 3}, tests::ToyTask{model},
      observers);
  ASSERT_GT(memory.at_start, 0);
  EXPECT_LE(memory.at_end - memory.at_start, 300 << 10);
}
#endif

TEST(Fit, ALossThatIsNotFiniteNeverReachesTheWeights) {
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  tests::ToyTask task{model};
  task.x.mutable_ptr()[0] = std::numeric_limits<float>::quiet_NaN();
  Adam adam;
  EXPECT_THROW(fit(all, adam, {.epochs = 10, .rate = constant_rate(0.01f)}, task), Error);
  for (float w : all.flat().data()) ASSERT_TRUE(std::isfinite(w));
}

TEST(Progress, SaysWhatIsLeft) {
  const Progress p{.epoch = 3,
                   .epochs = 10,
                   .step = 120,
                   .steps = 400,
                   .batch = 40,
                   .batches = 40,
                   .epoch_loss = 0.12345,
                   .count = 98304,
                   .epoch_seconds = 1,
                   .seconds = 6,
                   .count_here = 98304,
                   .steps_here = 120};
  EXPECT_EQ(progress_head(p).in(Language::en), "epoch 3/10");
  EXPECT_EQ(progress_tail(p).in(Language::en), "step 120/400  loss 0.1235  98,304 tok/s  0:14 left");
  Progress done = p;
  done.epoch = 10;
  done.step = 400;
  EXPECT_EQ(progress_tail(done).in(Language::en), "step 400/400  loss 0.1235  98,304 tok/s  in 0:06");
  EXPECT_EQ(progress_line(p).in(Language::en), "epoch 3/10 step 120/400 loss 0.1235 98,304 tok/s");
  Progress open = p;
  open.epochs = 0, open.steps = 0;
  EXPECT_EQ(progress_line(open).in(Language::en), "epoch 3 step 120 loss 0.1235 98,304 tok/s")
      << "only the clock ends it";
  EXPECT_EQ(duration(3723), "1:02:03");
}

}  // namespace qkv
