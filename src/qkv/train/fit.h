// Training: epochs of batches, gradients, clipping, updates, checkpoints, observers. The whole loop is `fit` below.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/train/callback.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/rank_steps.h"
#include "qkv/train/schedule.h"
#include "qkv/train/shards.h"
#include "qkv/train/task.h"

namespace QKV_API qkv {

struct FitOptions {
  // Training ends at the first limit that is reached; without any, after one epoch.
  std::optional<int64_t> epochs = {};
  std::optional<int64_t> steps = {};   // updates in all
  std::optional<double> seconds = {};  // of this process
  Schedule rate = constant_rate(1e-3f);
  int64_t accumulate = 1;                  // batches per update; an epoch's last update takes the rest
  double clip = 0;                         // limit of the global gradient norm; 0: none
  uint64_t seed = 0;                       // of dropout; the task decides the order of batches
  std::optional<ShardPolicy> shards = {};  // how a batch is split; absent: by the size of the model
  std::string checkpoint = {};             // file, which is read if it exists; empty: none
  int64_t checkpoint_every = 0;            // in steps; 0: by time
  double checkpoint_seconds =
      0;  // at least this long, and 20 times as long as saving took, between checkpoints; 0: after each epoch
  std::vector<Callback*> callbacks = {};
  Ranks* ranks = nullptr;                              // that share the training; null: this process alone
  const std::atomic<bool>* stop = nullptr;             // set by another thread or a signal: save and return
  std::function<void(const Progress&)> on_step = {};   // after every update
  std::function<void(const Progress&)> on_epoch = {};  // after every epoch
};

struct FitResult {
  Progress progress;
  bool interrupted = false;
  bool ended_early = false;  // by a callback, now or in an earlier process
};

namespace detail {

/// The position of a run; a checkpoint consists of it, the weights and the optimizer's state.
struct FitState {
  int64_t epoch = 0, batch = 0, step = 0;
  BatchLoss loss = {};  // of the epoch so far
  bool ended = false;   // by a callback
};
/// Refuses, before any work is done: invalid options, a task without batches, a checkpoint that cannot be written.
void check_start(const FitOptions& options, int64_t batches);
/// Reads the checkpoint if there is one; the model and the optimizer change only if everything fits. A function
/// continues after as many updates as were made, however they were divided into epochs.
bool restore(const FitOptions& options, const Parameters& parameters, Optimizer& optimizer, int64_t batches,
             const FunctionEpochs* epochs, FitState& state);
/// Writes the checkpoint; if a number is not finite, it throws and the old checkpoint stays.
void save(const FitOptions& options, const Parameters& parameters, const Optimizer& optimizer, const FitState& state);

/// Epochs and updates after which training ends; kNoLimit where it does not.
inline constexpr int64_t kNoLimit = INT64_MAX;
struct Limits {
  int64_t epochs, steps;
};
Limits limits_of(const FitOptions& options);
FunctionEpochs epochs_of_function(const FitOptions& options);

/// The gradient, left in shards, and the loss of some batches of a task as of one.
template <TrainingTask Task>
BatchLoss gradients(Shards& shards, const Task& task, const std::vector<BatchOf<Task>>& batches, const Run& run) {
  const double divisor = divisor_of(task, std::span(batches));
  shards.begin(std::ssize(batches));
  for (const auto& batch : batches) {
    const auto loss = [&](int64_t begin, int64_t end, const Run& r) { return task.loss(batch, begin, end, r); };
    const BatchLoss sum = shards.add(task.rows(batch), divisor, run, loss);
    check_count(
        sum.count, count_of(task, batch), requires { task.count(batch); } ? "count()" : "rows()");
  }
  return shards.finish();
}

/// The same where ranks share the batches: of this rank's shards, then summed over all ranks.
template <TrainingTask Task>
BatchLoss shared_gradients(RankSteps& ranks, Shards& shards, const Task& task,
                           const std::vector<BatchOf<Task>>& batches, const Run& run, int64_t step, bool stops) {
  const double divisor = divisor_of(task, std::span(batches));
  double count = 0;
  std::vector<int64_t> rows;
  for (const auto& batch : batches) {
    rows.push_back(task.rows(batch));
    count += count_of(task, batch);
  }
  ranks.begin(shards, rows, step);
  for (size_t b = 0; b < batches.size(); ++b)
    shards.add(rows[b], divisor, run,
               [&](int64_t begin, int64_t end, const Run& r) { return task.loss(batches[b], begin, end, r); });
  const BatchLoss loss = ranks.finish(shards, stops);
  check_count(
      loss.count, count, requires { task.count(batches[0]); } ? "count()" : "rows()");
  return loss;
}

/// Fails where the losses of the first update that this process makes depend on parameters outside the model, or, if it
/// is the first update of all, where the gradient is zero: nothing, or not all, would be trained.
void check_first_gradient(const Parameters& parameters, const Shards& shards, int64_t step);

/// What an update was made with.
struct Update {
  double gradient_norm = 0, rate = 0, weight_norm = 0;
};
/// Makes update number `step`, from 0. Throws if loss, gradient or rate is not finite, with unchanged weights; or if a
/// weight is not finite afterwards, before it is saved anywhere.
Update update(const Parameters& parameters, Optimizer& optimizer, const Tensor& gradient, const BatchLoss& loss,
              const FitOptions& options, int64_t step);

using Clock = std::chrono::steady_clock;

/// When a checkpoint is due, and how long the last one took.
class CheckpointClock {
 public:
  explicit CheckpointClock(const FitOptions& options) : options_(options) {}
  bool due(int64_t step, bool epoch_done) const;
  /// Calls save and returns the time it took.
  template <class Save>
  Clock::duration time(const Save& save) {
    const auto start = Clock::now();
    save();
    saved_ = Clock::now();
    took_ = saved_ - start;
    return took_;
  }

 private:
  const FitOptions& options_;
  Clock::time_point saved_ = Clock::now();
  Clock::duration took_ = {};
};

/// Maintains the progress that observers receive.
class ProgressMeter {
 public:
  ProgressMeter(Progress& progress, const FitOptions& options, int64_t batches, const FunctionEpochs* epochs,
                const FitState& at);
  void begin_epoch(const FitState& at);
  void count(const FitState& at, const BatchLoss& loss, const Update& update);
  /// Excludes a pause, so that the speed of an epoch is that of training alone.
  void leave_out(Clock::duration pause) { epoch_start_ += pause; }

 private:
  Progress& progress_;
  const FunctionEpochs* epochs_;  // null: every epoch has as many batches
  Clock::time_point start_ = Clock::now(), epoch_start_ = start_;
  double count_before_ = 0;  // of the epoch, counted by earlier processes
};

}  // namespace detail

/// Updates in an epoch of `batches` batches.
inline int64_t updates_of(int64_t batches, int64_t accumulate) { return (batches + accumulate - 1) / accumulate; }

/// Trains the model that `task` knows, whose parameters these are. Checkpoints are made between updates, never between
/// the batches of one. A run that is killed and started again ends with the same bits.
template <TrainingTask Task>
FitResult fit(const Parameters& parameters, Optimizer& optimizer, const FitOptions& options, const Task& task,
              std::span<Observer* const> observers = {}) {
  detail::FitState at;
  detail::check_start(options, task.batches());
  optimizer.begin(parameters);
  const detail::FunctionEpochs* epochs = detail::function_epochs(task);
  detail::restore(options, parameters, optimizer, task.batches(), epochs, at);
  Shards shards(parameters, options.shards.value_or(ShardPolicy::automatic(parameters.count())));
  std::optional<RankSteps> ranks;
  if (options.ranks && options.ranks->size() > 1) ranks.emplace(*options.ranks, parameters);
  Callbacks callbacks(options.callbacks);
  Run run{.training = true, .rng = Rng(options.seed).at("fit")};

  FitResult result;
  Progress& p = result.progress;
  if constexpr (requires { task.counted(); }) p.counted = task.counted();
  detail::ProgressMeter meter(p, options, task.batches(), epochs, at);
  if (ranks) ranks->report(p);
  for (Observer* o : observers) o->started(p);

  detail::CheckpointClock clock(options);
  const detail::Limits limits = detail::limits_of(options);
  std::vector<BatchOf<Task>> batches;  // of an update
  const auto done = [&] {
    return at.ended || at.epoch >= limits.epochs || at.step >= limits.steps ||
           (options.seconds && p.seconds >= *options.seconds);
  };
  while (!done() && !result.interrupted) {
    if (p.steps_here == 0 || at.batch == 0) meter.begin_epoch(at);
    const int64_t end = at.batch + std::min(options.accumulate, p.batches - at.batch);
    batches.clear();
    for (int64_t b = at.batch; b < end; ++b) batches.push_back(task.batch(at.epoch, b));

    run.rng = run.rng.at_step(static_cast<uint64_t>(at.step));
    const bool asked = options.stop && options.stop->load();
    const BatchLoss loss = ranks ? detail::shared_gradients(*ranks, shards, task, batches, run, at.step, asked)
                                 : detail::gradients(shards, task, batches, run);
    if (p.steps_here == 0) detail::check_first_gradient(parameters, shards, at.step);
    const detail::Update update = detail::update(parameters, optimizer, shards.gradient(), loss, options, at.step);

    at.step += 1;
    at.batch = end;
    at.loss.add(loss);
    meter.count(at, loss, update);
    if (ranks) {
      ranks->updated(update.weight_norm, p.seconds);
      ranks->report(p);
      if (options.seconds) p.seconds = ranks->seconds();  // all end after the same update
    }
    for (Observer* o : observers) o->step(p);
    if (options.on_step) options.on_step(p);

    const bool epoch_done = at.batch == p.batches;
    if (epoch_done) {
      callbacks.after_epoch(p);
      for (Observer* o : observers) o->epoch(p);
      if (options.on_epoch) options.on_epoch(p);
      at = {.epoch = at.epoch + 1, .step = at.step, .ended = callbacks.ends_training()};
    }
    result.interrupted = ranks ? ranks->stops() : options.stop && options.stop->load();
    if (done() || result.interrupted || clock.due(at.step, epoch_done))
      meter.leave_out(clock.time([&] { detail::save(options, parameters, optimizer, at); }));
  }
  result.ended_early = at.ended;
  for (Observer* o : observers) o->finished(p);
  return result;
}

/// Flattens the model and trains it. What the loss is computed from must be this model, not a copy made before.
template <Module M, TrainingTask Task>
FitResult fit(M& model, Optimizer& optimizer, const FitOptions& options, const Task& task,
              std::span<Observer* const> observers = {}) {
  const Parameters parameters = flatten(model);
  return fit(parameters, optimizer, options, task, observers);
}

/// The same with a function that computes the loss: fit(model, adam, {.steps = 100}, [&](int64_t step, const Run& run)
/// { return loss; }). With both `steps` and `epochs`, the steps are divided into that many epochs, the first ones a
/// step longer if they cannot all be equal; with epochs alone, an epoch is one update. A checkpoint can be continued
/// with more steps, epochs or seconds.
template <Module M, LossFunction F>
FitResult fit(M& model, Optimizer& optimizer, const FitOptions& options, const F& loss,
              std::span<Observer* const> observers = {}) {
  return fit(model, optimizer, options, detail::FunctionTask<F>{loss, detail::epochs_of_function(options)}, observers);
}

}  // namespace qkv
