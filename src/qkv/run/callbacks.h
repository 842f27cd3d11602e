// What takes part in a run's training beside the weights, each a callback of its own: validation, the best weights,
// averages, snapshots of attention, and the record of what the run is.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <string>

#include "qkv/io/array.h"
#include "qkv/nn/module.h"
#include "qkv/train/callback.h"
#include "qkv/train/optimizer.h"

namespace qkv {

/// Keeps a folder true to its checkpoint. config.yaml, in which settings may have changed since the last start, is
/// written just before the first checkpoint that was made with it. The model of a shorter training that now continues
/// is removed. A checkpoint of other data is refused.
class RunRecord : public Callback {
 public:
  /// In memory (an empty folder) it only compares the data.
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

/// Measures a loss after every epoch; ends training after `patience` epochs without a better one (0: never).
class Validation : public Callback {
 public:
  Validation(std::function<double()> loss, int64_t patience) : loss_(std::move(loss)), patience_(patience) {}
  void after_epoch(Progress& p) override;
  bool ends_training() const override { return patience_ > 0 && waited_ >= patience_; }
  void save(Checkpoint& out) const override;
  void restore(const Checkpoint& in) override;
  /// The lowest loss so far, infinite before the first; and whether it is that of the last epoch.
  double best() const { return best_; }
  bool improved() const { return waited_ == 0; }

 private:
  std::function<double()> loss_;
  int64_t patience_, waited_ = 0;
  double best_ = std::numeric_limits<double>::infinity();
};

/// Keeps the weights with the best validation loss, in memory and with the checkpoint; calls `improved` whenever there
/// are better ones.
class BestWeights : public Callback {
 public:
  BestWeights(const Parameters& parameters, const Validation& validation, bool keep, std::function<void()> improved)
      : parameters_(parameters), validation_(validation), keep_(keep), improved_(std::move(improved)) {}
  void after_epoch(Progress& p) override;
  void save(Checkpoint& out) const override;
  void restore(const Checkpoint& in) override;
  /// Undefined before the first epoch, and where they are not to be kept.
  const Tensor& weights() const { return weights_; }

 private:
  const Parameters& parameters_;
  const Validation& validation_;
  bool keep_;
  std::function<void()> improved_;
  Tensor weights_;
};

/// Averages the weights after epochs: all of them into a running mean, or those after `first_epoch` into a plain one. A
/// running mean is the model that the run is for, so it stands in the place of the weights while the callbacks within
/// are called.
class WeightAverage : public Callbacks {
 public:
  struct Options {
    double decay = 0;         // of a running mean; 0: a plain one
    int64_t first_epoch = 1;  // of a plain mean
  };
  WeightAverage(const Parameters& parameters, const Options& options, std::vector<Callback*> within)
      : Callbacks(std::move(within)), parameters_(parameters), options_(options), average_(options.decay) {}
  void after_epoch(Progress& p) override;
  void save(Checkpoint& out) const override;
  void restore(const Checkpoint& in) override;
  bool is_running() const { return options_.decay > 0; }
  /// Undefined before the first epoch that counts.
  const Tensor& weights() const { return average_.average(); }

 private:
  void swap_weights();

  const Parameters& parameters_;
  Options options_;
  ParameterAverage average_;
};

/// Writes attention maps to attention/epoch_0002.npz and so on, after every so many epochs.
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
