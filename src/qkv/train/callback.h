// Observers, which only watch a training, and callbacks, which take part in it and are saved with it.
#pragma once

#include <optional>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/train/checkpoint.h"

namespace QKV_API qkv {

/// What the losses of a training are counted in, for its speed.
enum class Counted { tokens, images, texts };

/// The progress of a training. Losses are sum / count as the task counts them (for text: per target token).
struct Progress {
  int64_t epoch = 0, epochs = 0;   // epoch under way, from 1; `epochs` and `steps` are 0 if only the clock ends it
  int64_t step = 0, steps = 0;     // updates done, and in all
  int64_t batch = 0, batches = 0;  // of this epoch
  double batch_loss = 0, epoch_loss = 0;
  double rate = 0, gradient_norm = 0;
  double count = 0;                           // tokens (or rows) of this epoch so far
  double epoch_seconds = 0, seconds = 0;      // of this process
  double count_here = 0;                      // the part of `count` done by this process, in epoch_seconds
  int64_t steps_here = 0;                     // updates done by this process
  std::optional<double> valid_loss = {};      // of this epoch, if a callback validates,
  std::optional<double> valid_accuracy = {};  // and measures how often the model is right
  Counted counted = Counted::tokens;
  int ranks = 1;             // that share the training; `count` and losses are those of all
  int slowest_rank = 0;      // the one that computes longest,
  double slowest_share = 1;  // and the share of its time; the rest is communication and waiting
  double per_second() const { return epoch_seconds > 0 ? count_here / epoch_seconds : 0; }
};

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void note(const Text&) {}          // about the settings, before the start
  virtual void started(const Progress&) {}   // once, after the checkpoint was read, if there is one
  virtual void step(const Progress&) {}      // after every update
  virtual void epoch(const Progress&) {}     // after every epoch
  virtual void finished(const Progress&) {}  // at the end, even if interrupted
};

/// Takes part in a training: validates, averages, ends it early. Its state is saved with the weights.
class Callback {
 public:
  virtual ~Callback() = default;
  /// Called after an epoch, before observers.
  virtual void after_epoch(Progress&) {}
  /// Whether training should end here. Called after every epoch, and again when an ended training is resumed: a setting
  /// may have changed so that it can continue.
  virtual bool ends_training() const { return false; }
  /// Saves its counters and tensors; their names begin with kCallbackPrefix.
  virtual void save(Checkpoint&) const {}
  /// Called when the checkpoint has been written.
  virtual void saved() const {}
  virtual void restore(const Checkpoint&) {}
};

/// Several callbacks as one; they are called in order.
class Callbacks : public Callback {
 public:
  explicit Callbacks(std::vector<Callback*> list) : list_(std::move(list)) {}
  void after_epoch(Progress& p) override;
  bool ends_training() const override;
  void save(Checkpoint& out) const override;
  void saved() const override;
  void restore(const Checkpoint& in) override;

 private:
  std::vector<Callback*> list_;
};

}  // namespace qkv
