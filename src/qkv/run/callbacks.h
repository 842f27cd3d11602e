// The callbacks of a run's training: validation, the best weights, averages, snapshots of attention, and the record of
// configuration and data.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "qkv/core/api.h"
#include "qkv/io/array.h"
#include "qkv/nn/module.h"
#include "qkv/train/callback.h"
#include "qkv/train/optimizer.h"

namespace QKV_API qkv {

/// Keeps a folder consistent with its checkpoint. config.yaml, whose settings may have changed since the last start, is
/// written just before the first checkpoint made with it. The model of a shorter training that now continues is
/// removed. A checkpoint of different data is refused.
class RunRecord : public Callback {
 public:
  /// In memory (an empty folder name) it only compares the data.
  RunRecord(std::string folder, std::string config, int64_t data_fingerprint)
      : folder_(std::move(folder)), config_(std::move(config)), data_(data_fingerprint) {}
  void save(Checkpoint& out) const override;
  void saved() const override;
  void restore(const Checkpoint& in) override;

 private:
  std::string folder_, config_;
  int64_t data_;
  mutable bool written_ = false;
};

/// What validation measures: the loss, and for a classifier the share of right answers.
struct Validated {
  Validated(double mean_loss, std::optional<double> right = {}) : loss(mean_loss), accuracy(right) {}
  double loss;
  std::optional<double> accuracy;
};

/// Measures a loss after every epoch; ends training after `patience` epochs without a better one (0: never).
class Validation : public Callback {
 public:
  Validation(std::function<Validated()> measure, int64_t patience)
      : measure_(std::move(measure)), patience_(patience) {}
  void after_epoch(Progress& p) override;
  bool ends_training() const override { return patience_ > 0 && waited_ >= patience_; }
  void save(Checkpoint& out) const override;
  void restore(const Checkpoint& in) override;
  /// The lowest loss so far, infinite before the first epoch; and whether the last epoch has it.
  double best() const { return best_; }
  bool improved() const { return waited_ == 0; }

 private:
  std::function<Validated()> measure_;
  int64_t patience_, waited_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

/// Keeps the weights with the best validation loss, in memory and in the checkpoint; calls `improved` whenever there
/// are better ones.
class BestWeights : public Callback {
 public:
  BestWeights(const Parameters& parameters, const Validation& validation, bool keep, std::function<void()> improved)
      : parameters_(parameters), validation_(validation), keep_(keep), improved_(std::move(improved)) {}
  void after_epoch(Progress& p) override;
  void save(Checkpoint& out) const override;
  void restore(const Checkpoint& in) override;
  /// Undefined before the first epoch, and if `keep` is false.
  const Tensor& weights() const { return weights_; }

 private:
  const Parameters& parameters_;
  const Validation& validation_;
  bool keep_;
  std::function<void()> improved_;
  Tensor weights_;
};

/// Averages the weights after epochs: of all epochs into a running mean, or from `first_epoch` on into a plain mean. A
/// running mean is the final model of the run, so it replaces the weights while the inner callbacks are called.
class WeightAverage : public Callbacks {
 public:
  struct Options {
    double decay = 0;         // of a running mean; 0: a plain mean
    int64_t first_epoch = 1;  // for a plain mean
  };
  WeightAverage(const Parameters& parameters, const Options& options, std::vector<Callback*> within)
      : Callbacks(std::move(within)), parameters_(parameters), options_(options), average_(options.decay) {}
  void after_epoch(Progress& p) override;
  void save(Checkpoint& out) const override;
  void restore(const Checkpoint& in) override;
  bool is_running() const { return options_.decay > 0; }
  /// Undefined before the first averaged epoch.
  const Tensor& weights() const { return average_.average(); }

 private:
  void swap_weights();

  const Parameters& parameters_;
  Options options_;
  ParameterAverage average_;
};

/// Writes attention maps to attention/epoch_0002.npz and so on, every `every` epochs.
class AttentionSnapshots : public Callback {
 public:
  using Maps = std::map<std::string, Array>;
  AttentionSnapshots(std::string folder, int64_t every, std::function<Maps()> maps)
      : folder_(std::move(folder)), every_(every), maps_(std::move(maps)) {}
  void after_epoch(Progress& p) override;

 private:
  std::string folder_;
  int64_t every_;
  std::function<Maps()> maps_;
};

}  // namespace qkv
