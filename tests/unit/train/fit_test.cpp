// Training: the same bits at any thread count and after a kill, no allocation after warm-up, and what it refuses.
#include "qkv/train/fit.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

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
  Adam adam(all);
  fit(all, adam, tests::ToyTask{model}, {.epochs = epochs, .rate = constant_rate(0.01f), .clip = 1, .seed = 3});
  return {all.flat().data().begin(), all.flat().data().end()};
}

// Starts toy_fit; kills it after that many milliseconds unless they are negative. Returns true if it ended by itself.
bool run_toy_fit(const fs::path& folder, int thread_count, int kill_after_ms) {
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string checkpoint = folder / "last.safetensors", metrics = folder / "metrics.jsonl", count = std::to_string(thread_count);
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
  Adam adam(all);
  const auto first = fit(all, adam, tests::ToyTask{model}, {.epochs = 1, .rate = constant_rate(0.01f)});
  const auto later = fit(all, adam, tests::ToyTask{model}, {.epochs = 30, .rate = constant_rate(0.01f)});
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
  while (kills < 60 && !run_toy_fit(broken, 1 + kills % 3, 5 + static_cast<int>(moments.below(60, static_cast<uint64_t>(kills))))) ++kills;
  if (kills == 60) { ASSERT_TRUE(run_toy_fit(broken, 2, -1)); }
  EXPECT_GE(kills, 1) << "the program ended before it could be killed once";
  const SafetensorsFile a((whole / "last.safetensors").string()), b((broken / "last.safetensors").string());
  EXPECT_EQ(a.metadata(), b.metadata());
  EXPECT_EQ(contents(whole / "last.safetensors"), contents(broken / "last.safetensors"));
  // Every step stands in the metrics once, in order.
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
  for (const auto& file : fs::directory_iterator(whole)) EXPECT_TRUE(file.path().extension() == ".safetensors" || file.path().extension() == ".jsonl") << file.path();
}

TEST(Fit, AfterWarmUpAStepCallsNoOperatorNewAndMissesNoPool) {
  set_threads(2);
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam(all);
  Shards shards(all);
  const tests::ToyTask task{model};
  qkv::Run run{.training = true, .rng = Rng(3)};
  const auto one_step = [&](int64_t step) {
    const auto batch = task.batch(step / 5, step % 5);
    run.rng = run.rng.at_step(static_cast<uint64_t>(step));
    shards.gradients(100, run, [&](int64_t b, int64_t e, const qkv::Run& r) { return task.loss(batch, b, e, r); });
    adam.step(all, shards.gradient(), 0.01f, clip_factor(norm(shards.gradient()), 1));
  };
  for (int64_t step = 0; step < 50; ++step) one_step(step);
  const int64_t news = tests::operator_new_calls(), misses = shards.pool_misses() + Pool::of_thread().misses(), bytes = Pool::of_thread().bytes();
  for (int64_t step = 50; step < 150; ++step) one_step(step);
  EXPECT_EQ(tests::operator_new_calls(), news);
  EXPECT_EQ(shards.pool_misses() + Pool::of_thread().misses(), misses);
  EXPECT_EQ(Pool::of_thread().bytes(), bytes);
}

TEST(Fit, AStopRequestSavesAndAResumedRunGoesOn) {
  TemporaryFolder folder;
  const std::string file = folder.path / "last.safetensors";
  const FitOptions plain{.epochs = 4, .rate = constant_rate(0.01f), .seed = 3};
  const auto train = [&](FitOptions options) {
    tests::ToyModel model(Rng(1));
    Parameters all = flatten(model);
    Adam adam(all);
    const FitResult result = fit(all, adam, tests::ToyTask{model}, options);
    return std::pair{result, std::vector<float>(all.flat().data().begin(), all.flat().data().end())};
  };
  std::atomic<bool> stop{true};
  FitOptions with = plain;
  with.checkpoint = file;
  with.stop = &stop;
  int stops = 0;
  for (auto r = train(with); r.first.interrupted && stops < 100; r = train(with)) ++stops;
  EXPECT_EQ(stops, 20);  // stops after every step, the last of them included
  with.stop = nullptr;
  EXPECT_EQ(train(with).second, train(plain).second);
}

TEST(Fit, RefusesACheckpointOfAnotherModelOrSeed) {
  TemporaryFolder folder;
  const std::string file = folder.path / "last.safetensors";
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  Adam adam(all);
  Sgd sgd(all, {.momentum = 0.9f});
  const tests::ToyTask task{model};
  fit(all, adam, task, {.epochs = 1, .seed = 3, .checkpoint = file});
  const auto message = [&](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([&] { fit(all, adam, task, {.epochs = 2, .seed = 4, .checkpoint = file}); }), file + ": was trained with seed 3, not 4");
  EXPECT_EQ(message([&] { fit(all, sgd, task, {.epochs = 2, .seed = 3, .checkpoint = file}); }),
            file + ": has no tensor \"sgd.velocity.first.weight\": it is a checkpoint of another model or optimizer");
}

TEST(Fit, ALossThatIsNotFiniteNeverReachesTheWeights) {
  tests::ToyModel model(Rng(1));
  Parameters all = flatten(model);
  tests::ToyTask task{model};
  task.x.mutable_ptr()[0] = std::numeric_limits<float>::quiet_NaN();
  Adam adam(all);
  EXPECT_THROW(fit(all, adam, task, {.epochs = 10, .rate = constant_rate(0.01f)}), Error);
  for (float w : all.flat().data()) ASSERT_TRUE(std::isfinite(w));
}

TEST(Progress, FitsItsColumnsAndSaysWhatIsLeft) {
  const Progress p{.epoch = 3, .epochs = 10, .step = 120, .steps = 400, .batch = 40, .batches = 40, .epoch_loss = 0.12345, .count = 98304,
                   .epoch_seconds = 1, .seconds = 6, .steps_here = 120};
  EXPECT_EQ(progress_bar(p, 100), "epoch 3/10 [#########---------------------] step 120/400  loss 0.1235  98,304 tok/s  0:14 left");
  EXPECT_LT(progress_bar(p, 40).size(), 40u);
  EXPECT_EQ(progress_line(p), "epoch 3/10 step 120/400 loss 0.1235 98304 tok/s");
  EXPECT_EQ(duration(3723), "1:02:03");
}

}  // namespace qkv
