// Optimizers over the flat parameters of a model.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/nn/module.h"

namespace QKV_API qkv {

/// Global L2 norm of a gradient, in fixed blocks: the same bits at any thread count.
double norm(const Tensor& gradient);

/// The factor of clipping: limit / norm if the norm is above the limit, else 1. A limit of 0 means none.
float clip_factor(double norm, double limit);

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Takes memory for a model of that layout, unless it has been done; fails for another model than before.
  virtual void begin(const Parameters& parameters) = 0;
  /// One update with that learning rate; the gradient, laid out like the parameters, is multiplied by gradient_scale on
  /// the fly.
  virtual void step(const Parameters& parameters, const Tensor& gradient, float rate, float gradient_scale = 1) = 0;
  /// The state to save: buffers laid out like the parameters, by name ("adam.m"), and the number of updates so far.
  virtual std::vector<NamedTensor> state() const = 0;
  int64_t updates() const { return updates_; }
  void set_updates(int64_t count) { updates_ = count; }

 protected:
  int64_t updates_ = 0;
};

struct SgdOptions {
  float momentum = 0;
  float l2 = 0;  // weight decay as a term of the loss
};

class Sgd : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options = {});
  void begin(const Parameters& parameters) override;
  void step(const Parameters& parameters, const Tensor& gradient, float rate, float gradient_scale = 1) override;
  std::vector<NamedTensor> state() const override;

 private:
  SgdOptions options_;
  Tensor velocity_;  // absent before the beginning, and without momentum
};

struct AdamOptions {
  float beta1 = 0.9f, beta2 = 0.999f, epsilon = 1e-8f;
  float l2 = 0;               // weight decay as a term of the loss (Adam)
  float decay = 0;            // decoupled weight decay (AdamW)
  bool decay_vectors = true;  // false: decay applies only to parameters with two or more axes, not to biases and norms
};

class Adam : public Optimizer {
 public:
  explicit Adam(const AdamOptions& options = {});
  void begin(const Parameters& parameters) override;
  void step(const Parameters& parameters, const Tensor& gradient, float rate, float gradient_scale = 1) override;
  std::vector<NamedTensor> state() const override;

 private:
  AdamOptions options_;
  Tensor m_, v_;  // running means of the gradient and of its square; absent before the beginning
  /// Neighbouring elements of the flat parameters that are decayed, or are not.
  struct Stretch {
    int64_t begin, end;
    bool decayed;
  };
  std::vector<Stretch> stretches_;
};

/// Adam with decoupled weight decay.
inline Adam adamw(float decay, AdamOptions options = {}) {
  options.decay = decay;
  return Adam(options);
}

/// Averages of parameters over steps or epochs: a plain mean, or an exponential one.
class ParameterAverage {
 public:
  /// decay 0: the mean of all values added; else average <- decay * average + (1 - decay) * values.
  explicit ParameterAverage(double decay = 0);
  void add(const Tensor& flat);
  const Tensor& average() const { return average_; }  // undefined before the first values
  int64_t count() const { return count_; }
  /// Restores an average of that many values.
  void restore(Tensor average, int64_t count);

 private:
  double decay_;
  int64_t count_ = 0;
  Tensor average_;
};

}  // namespace qkv
