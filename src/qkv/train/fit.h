// Training: epochs of batches, gradients, clipping, updates, checkpoints, observers. The whole loop is `fit` below.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/ops/elementwise.h"
#include "qkv/train/callback.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/reducer.h"
#include "qkv/train/schedule.h"
#include "qkv/train/shards.h"

namespace qkv {

struct FitOptions {
  int64_t epochs = 1;
  Schedule rate = constant_rate(1e-3f);
  int64_t accumulate = 1;                  // batches of an update; an epoch's last update takes what is left
  double clip = 0;                         // limit of the global gradient norm; 0: none
  uint64_t seed = 0;                       // of dropout; the order of batches is the task's
  std::optional<ShardPolicy> shards = {};  // how a batch is cut; none: by the size of the model
  std::string checkpoint = {};             // file; it is read if it exists. Empty: none
  int64_t checkpoint_every = 0;            // steps; 0: by the clock
  double checkpoint_seconds =
      0;  // since the last checkpoint, wherever in an epoch that is, and 20 times what it took; 0: at every epoch's end
  std::vector<Callback*> callbacks = {};
  Reducer* reducer = nullptr;               // null: the gradient of this process is the whole one
  const std::atomic<bool>* stop = nullptr;  // set by another thread or a signal: save and return
};

struct FitResult {
  Progress progress;
  bool interrupted = false;
  bool ended_early = false;  // by a callback, now or before the checkpoint
};

namespace detail {

/// Where a run stands; with the weights and the optimizer's state it is all that a checkpoint holds.
struct FitState {
  int64_t epoch = 0, batch = 0, step = 0;
  BatchLoss loss = {};  // of the epoch so far
  bool ended = false;   // by a callback
};
/// Refuses, before any work is done, what cannot end well: options that make no sense, a task without batches, a
/// checkpoint that could not be written.
void check_start(const FitOptions& options, int64_t batches);
/// Reads the checkpoint if there is one; the model and the optimizer change only if all of it fits.
bool restore(const FitOptions& options, const Parameters& parameters, Optimizer& optimizer, int64_t batches,
             FitState& state);
/// Writes the checkpoint; the old one stays where a number of the new one is not finite.
void save(const FitOptions& options, const Parameters& parameters, const Optimizer& optimizer, const FitState& state);

/// The gradient, left in shards, and the loss of some batches of a task as of one.
template <class Task, class Batch>
BatchLoss gradients(Shards& shards, const Task& task, const std::vector<Batch>& batches, const Run& run) {
  shards.begin(std::ssize(batches));
  for (const Batch& batch : batches) {
    float share = 1;
    if constexpr (requires { task.share(batch, std::span<const Batch>(batches)); })
      if (batches.size() > 1) share = static_cast<float>(task.share(batch, std::span<const Batch>(batches)));
    const auto loss = [&](int64_t begin, int64_t end, const Run& r) {
      Loss out = task.loss(batch, begin, end, r);
      if (share != 1) out.objective = scale(out.objective, share);
      return out;
    };
    shards.add(task.rows(batch), run, loss);
  }
  return shards.finish();
}

/// What an update was made with.
struct Update {
  double gradient_norm = 0, rate = 0;
};
/// Update number `step`, from 0. Fails where loss, gradient or rate are not finite, with the weights as they were; and
/// where a weight is not finite afterwards, before anybody keeps it.
Update update(const Parameters& parameters, Optimizer& optimizer, const Tensor& gradient, const BatchLoss& loss,
              const FitOptions& options, int64_t step);

using Clock = std::chrono::steady_clock;

/// When a checkpoint is due, and how long the last one took.
class CheckpointClock {
 public:
  explicit CheckpointClock(const FitOptions& options) : options_(options) {}
  bool due(int64_t step, bool epoch_done) const;
  /// Calls save; the time that it took.
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

/// Keeps what observers are told.
class ProgressMeter {
 public:
  ProgressMeter(Progress& progress, const FitOptions& options, int64_t batches, const FitState& at);
  void begin_epoch(const FitState& at);
  void count(const FitState& at, const BatchLoss& loss, const Update& update);
  /// The speed of an epoch is that of its training alone.
  void leave_out(Clock::duration pause) { epoch_start_ += pause; }

 private:
  Progress& progress_;
  Clock::time_point start_ = Clock::now(), epoch_start_ = start_;
  double count_before_ = 0;  // of the epoch, by processes before this one
};

}  // namespace detail

/// Updates in an epoch of so many batches.
inline int64_t updates_of(int64_t batches, int64_t accumulate) { return (batches + accumulate - 1) / accumulate; }

/// Trains the model that `task` knows. A Task has
///   int64_t batches() const;                                          // in an epoch
///   Batch batch(int64_t epoch, int64_t index) const;                  // a pure function of both
///   int64_t rows(const Batch&) const;
///   Loss loss(const Batch&, int64_t begin, int64_t end, const Run&) const;  // of those rows, recorded
/// and, where an objective is a mean over its batch and not a sum,
///   double share(const Batch&, std::span<const Batch> of) const;      // what it is multiplied with in the mean over
///   all those batches
/// Checkpoints are made between updates, never between the batches of one. A run that is killed and started again ends
/// with the same bits.
template <class Task>
FitResult fit(const Parameters& parameters, Optimizer& optimizer, const Task& task, const FitOptions& options,
              std::span<Observer* const> observers = {}) {
  detail::FitState at;
  detail::check_start(options, task.batches());
  detail::restore(options, parameters, optimizer, task.batches(), at);
  Shards shards(parameters, options.shards.value_or(ShardPolicy::automatic(parameters.count())));
  Callbacks callbacks(options.callbacks);
  Run run{.training = true, .rng = Rng(options.seed).at("fit")};

  FitResult result;
  Progress& p = result.progress;
  detail::ProgressMeter meter(p, options, task.batches(), at);
  for (Observer* o : observers) o->started(p);

  detail::CheckpointClock clock(options);
  std::vector<decltype(task.batch(0, 0))> batches;  // of an update
  while (at.epoch < options.epochs && !at.ended && !result.interrupted) {
    meter.begin_epoch(at);
    bool epoch_done = false;
    while (!epoch_done && !result.interrupted) {
      const int64_t end = at.batch + std::min(options.accumulate, p.batches - at.batch);
      batches.clear();
      for (int64_t b = at.batch; b < end; ++b) batches.push_back(task.batch(at.epoch, b));

      run.rng = run.rng.at_step(static_cast<uint64_t>(at.step));
      BatchLoss loss = detail::gradients(shards, task, batches, run);
      if (options.reducer) options.reducer->reduce(shards.gradient(), loss);
      const detail::Update update = detail::update(parameters, optimizer, shards.gradient(), loss, options, at.step);

      at.step += 1;
      at.batch = end;
      at.loss.add(loss);
      meter.count(at, loss, update);
      for (Observer* o : observers) o->step(p);

      epoch_done = at.batch == p.batches;
      if (epoch_done) {
        callbacks.after_epoch(p);
        for (Observer* o : observers) o->epoch(p);
        at = {.epoch = at.epoch + 1, .step = at.step, .ended = callbacks.ends_training()};
      }
      result.interrupted = options.stop && options.stop->load();
      const bool last = at.ended || at.epoch == options.epochs || result.interrupted;
      if (last || clock.due(at.step, epoch_done))
        meter.leave_out(clock.time([&] { detail::save(options, parameters, optimizer, at); }));
    }
  }
  result.ended_early = at.ended;
  for (Observer* o : observers) o->finished(p);
  return result;
}

}  // namespace qkv
