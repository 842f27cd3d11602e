// Training: epochs of batches, gradients, clipping, updates, checkpoints, observers. The whole loop is `fit` below.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/ops/elementwise.h"
#include "qkv/train/checkpoint.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/schedule.h"
#include "qkv/train/shards.h"

namespace qkv {

/// What an observer is told. Losses are sum / count as the task counts them (for text: per target token).
struct Progress {
  int64_t epoch = 0, epochs = 0;    // epoch under way, from 1
  int64_t step = 0, steps = 0;      // updates done, and in all
  int64_t batch = 0, batches = 0;   // of this epoch
  double batch_loss = 0, epoch_loss = 0;
  double rate = 0, gradient_norm = 0;
  double count = 0;                 // tokens (or rows) of this epoch so far
  double epoch_seconds = 0, seconds = 0;  // of this process
  double count_here = 0;            // of `count`, done by this process in those seconds of the epoch
  int64_t steps_here = 0;           // updates done by this process
  std::optional<double> valid_loss = {};  // of this epoch, where a companion validates
  double per_second() const { return epoch_seconds > 0 ? count_here / epoch_seconds : 0; }
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void started(const Progress&) {}       // once, after a checkpoint was read if there was one
  virtual void step(const Progress&) {}          // after every update
  virtual void epoch(const Progress&) {}         // after every epoch
  virtual void finished(const Progress&) {}      // at the end, also of an interrupted run
};

/// Goes through training beside the weights: validates, averages, ends it early. What it must remember is saved with the weights.
class Companion {
 public:
  virtual ~Companion() = default;
  /// After an epoch, before observers hear of it. True ends the training here.
  virtual bool after_epoch(Progress&) { return false; }
  /// Its own counters and tensors; names begin with "companion.".
  virtual void save(Checkpoint&) const {}
  /// The checkpoint is on the disk.
  virtual void saved() const {}
  virtual void restore(const Checkpoint&) {}
  /// Asked after restore() when it had ended the training before: true takes that back.
  virtual bool goes_on() const { return false; }
};

struct FitOptions {
  int64_t epochs = 1;
  Schedule rate = constant_rate(1e-3f);
  int64_t accumulate = 1;             // batches of an update; an epoch's last update takes what is left
  double clip = 0;                    // limit of the global gradient norm; 0: none
  uint64_t seed = 0;                  // of dropout; the task's own order of batches is its own affair
  int64_t shard_rows = -1;            // of a shard; -1: by the sizes of model and batch (see Shards)
  std::string checkpoint = {};        // file; it is read if it exists. Empty: none
  int64_t checkpoint_every = 0;       // steps; 0: by the clock
  double checkpoint_seconds = 0;      // since the last checkpoint, wherever in an epoch that is, and 20 times what it took; 0: at every epoch's end
  Companion* companion = nullptr;
  const std::atomic<bool>* stop = nullptr;  // set by a signal handler: save and return
};

struct FitResult {
  Progress progress;
  bool interrupted = false;
  bool ended_early = false;  // by the companion, now or before the checkpoint
};

namespace detail {

/// Where a run stands; with the weights and the optimizer's state it is all that a checkpoint holds.
struct FitState {
  int64_t epoch = 0, batch = 0, step = 0;
  double loss_sum = 0, count = 0;  // of the epoch so far
  bool ended = false;              // by the companion
};
/// Refuses, before any work is done, what cannot end well: options that make no sense, a task without batches, a checkpoint that
/// could not be written.
void check_start(const FitOptions& options, int64_t batches);
/// Reads the checkpoint if there is one; the model and the optimizer change only if all of it fits.
bool restore(const FitOptions& options, const Parameters& parameters, Optimizer& optimizer, int64_t batches, FitState& state);
/// Writes the checkpoint; the old one stays where a number of the new one is not finite.
void save(const FitOptions& options, const Parameters& parameters, const Optimizer& optimizer, const FitState& state);
void check_finite(const BatchLoss& loss, double gradient_norm, int64_t step);
void check_rate(double rate, int64_t step);
/// After the update that made `step` of them: fails where a weight is NaN or infinite, before anybody keeps it.
void check_weights(const Parameters& parameters, int64_t step);

/// The gradient, left in shards, and the loss of some batches of a task as of one.
template <class Task, class Batch>
BatchLoss gradients(Shards& shards, const Task& task, const std::vector<Batch>& batches, const Run& run) {
  BatchLoss all;
  for (size_t b = 0; b < batches.size(); ++b) {
    const Batch& batch = batches[b];
    float share = 1;
    if constexpr (requires { task.share(batch, std::span<const Batch>(batches)); })
      if (batches.size() > 1) share = static_cast<float>(task.share(batch, std::span<const Batch>(batches)));
    const auto loss = [&](int64_t begin, int64_t end, const Run& r) {
      Loss out = task.loss(batch, begin, end, r);
      if (share != 1) out.objective = scale(out.objective, share);
      return out;
    };
    const BatchPart part = batches.size() == 1 ? BatchPart::alone : b == 0 ? BatchPart::first : BatchPart::added;
    const BatchLoss one = shards.gradients(task.rows(batch), run, loss, part);
    all.sum += one.sum, all.count += one.count;
  }
  return all;
}

}  // namespace detail

/// Updates in an epoch of so many batches.
inline int64_t updates_of(int64_t batches, int64_t accumulate) { return (batches + accumulate - 1) / accumulate; }

/// Trains the model that `task` knows. A Task has
///   int64_t batches() const;                                          // in an epoch
///   Batch batch(int64_t epoch, int64_t index) const;                  // a pure function of both
///   int64_t rows(const Batch&) const;
///   Loss loss(const Batch&, int64_t begin, int64_t end, const Run&) const;  // of those rows, recorded
/// and, where an objective is a mean over its batch and not a sum,
///   double share(const Batch&, std::span<const Batch> of) const;      // what it is multiplied with in the mean over all those batches
/// Checkpoints are made between updates, never between the batches of one. A run that is killed and started again ends with the same bits.
template <class Task>
FitResult fit(const Parameters& parameters, Optimizer& optimizer, const Task& task, const FitOptions& options,
              std::span<Observer* const> observers = {}) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); };
  detail::FitState at;
  detail::check_start(options, task.batches());
  detail::restore(options, parameters, optimizer, task.batches(), at);
  Shards shards(parameters, options.shard_rows);
  Run run{.training = true, .rng = Rng(options.seed).at("fit")};

  FitResult result;
  Progress& p = result.progress;
  p.epochs = options.epochs, p.batches = task.batches(), p.steps = p.epochs * updates_of(p.batches, options.accumulate);
  p.epoch = std::min(at.epoch + 1, p.epochs), p.step = at.step, p.batch = at.batch;
  for (Observer* o : observers) o->started(p);

  std::vector<decltype(task.batch(0, 0))> batches;  // of an update
  const auto start = Clock::now();
  auto saved = start;
  double save_seconds = 0;  // of the last checkpoint
  for (; at.epoch < options.epochs && !result.interrupted && !at.ended; ++at.epoch, at.batch = 0, at.loss_sum = at.count = 0) {
    auto epoch_start = Clock::now();
    const double count_before = at.count;
    p.epoch = at.epoch + 1;
    p.valid_loss.reset();
    while (at.batch < p.batches) {
      batches.clear();
      for (int64_t b = 0; b < std::min(options.accumulate, p.batches - at.batch); ++b) batches.push_back(task.batch(at.epoch, at.batch + b));
      run.rng = run.rng.at_step(static_cast<uint64_t>(at.step));
      const BatchLoss loss = detail::gradients(shards, task, batches, run);
      p.gradient_norm = norm(shards.gradient());
      detail::check_finite(loss, p.gradient_norm, at.step);
      p.rate = options.rate(at.step);
      detail::check_rate(p.rate, at.step);
      optimizer.step(parameters, shards.gradient(), static_cast<float>(p.rate), clip_factor(p.gradient_norm, options.clip));

      ++at.step, at.batch += std::ssize(batches), ++p.steps_here;
      detail::check_weights(parameters, at.step);
      at.loss_sum += loss.sum, at.count += loss.count;
      p.step = at.step, p.batch = at.batch, p.count = at.count, p.count_here = at.count - count_before;
      p.batch_loss = loss.sum / std::max(loss.count, 1.0), p.epoch_loss = at.loss_sum / std::max(at.count, 1.0);
      p.epoch_seconds = since(epoch_start), p.seconds = since(start);
      const bool epoch_done = at.batch == p.batches;
      for (Observer* o : observers) o->step(p);
      if (epoch_done) {
        at.ended = options.companion && options.companion->after_epoch(p);
        for (Observer* o : observers) o->epoch(p);
      }
      result.interrupted = options.stop && options.stop->load();
      const bool due = options.checkpoint_every > 0     ? at.step % options.checkpoint_every == 0
                       : options.checkpoint_seconds > 0 ? since(saved) >= std::max(options.checkpoint_seconds, 20 * save_seconds)
                                                        : epoch_done;
      if (due || result.interrupted || at.ended || (epoch_done && p.epoch == p.epochs)) {
        const bool ended = at.ended;
        const auto save_start = Clock::now();
        detail::save(options, parameters, optimizer,
                     epoch_done ? detail::FitState{.epoch = at.epoch + 1, .step = at.step, .ended = ended} : at);
        saved = Clock::now();
        save_seconds = since(save_start);
        epoch_start += saved - save_start;  // the speed of an epoch is that of its training
      }
      if (result.interrupted) break;
    }
  }
  result.ended_early = at.ended;
  for (Observer* o : observers) o->finished(p);
  return result;
}

}  // namespace qkv
