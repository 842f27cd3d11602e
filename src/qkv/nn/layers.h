// Small layers to build models from. A layer is a struct of its parameters; calling it runs it.
#pragma once

#include <array>
#include <string_view>
#include <variant>

#include "qkv/core/api.h"
#include "qkv/nn/module.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/norm.h"
#include "qkv/tensor/run.h"

namespace QKV_API qkv {

/// y = activation(x weight^T + bias), (..., in) -> (..., out). Initialised as in PyTorch: U(+-1/sqrt(in)) for both.
struct Linear {
  enum class Bias { yes, no };

  Tensor weight;  // (out, in)
  Tensor bias;    // (out), or absent

  Linear() = default;
  Linear(int64_t in, int64_t out, const Rng& rng, Bias with_bias = Bias::yes);
  Tensor operator()(const Tensor& x, Activation activation = Activation::none) const {
    return linear(x, weight, bias, activation);
  }
  void visit(auto&& f) {
    f("weight", weight);
    f("bias", bias);
  }
};

/// Rows of a table by id, (...) -> (..., width). Initialised from N(0, 1).
struct Embedding {
  Tensor weight;  // (count, width)

  Embedding() = default;
  Embedding(int64_t count, int64_t width, const Rng& rng);
  Tensor operator()(const Ids& ids) const;
  void visit(auto&& f) { f("weight", weight); }
};

/// Normalises the last axis to mean 0 and variance 1, then applies gamma y + beta.
struct LayerNorm {
  Tensor gamma, beta;    // (width); without a bias, beta is a constant 0
  float eps = kNormEps;  // added to the variance

  LayerNorm() = default;
  explicit LayerNorm(int64_t width, Linear::Bias with_bias = Linear::Bias::yes, float eps = kNormEps);
  Tensor operator()(const Tensor& x) const;
  /// layer_norm(x + dropout(y)) in one pass: the book's AddNorm.
  Tensor operator()(const Tensor& x, const Tensor& y, float dropout_rate, const Run& run) const;
  void visit(auto&& f) {
    f("gamma", gamma);
    f("beta", beta);
  }
};

/// Divides the last axis by its root mean square, then gamma y (Zhang and Sennrich, 2019).
struct RmsNorm {
  Tensor gamma;          // (width)
  float eps = kNormEps;  // added to the mean square

  RmsNorm() = default;
  explicit RmsNorm(int64_t width, float eps = kNormEps);
  Tensor operator()(const Tensor& x) const;
  /// rms_norm(x + dropout(y)).
  Tensor operator()(const Tensor& x, const Tensor& y, float dropout_rate, const Run& run) const;
  void visit(auto&& f) { f("gamma", gamma); }
};

/// What a norm divides by: the deviation from the mean, or the root mean square.
enum class NormKind { layer, rms };
constexpr std::array<std::string_view, 2> names(NormKind) { return {"layer", "rms"}; }

/// A norm of either kind, as a configuration names it.
class Norm {
 public:
  Norm() = default;
  /// `with_bias` is for layer norm; RMS norm has none.
  Norm(NormKind kind, int64_t width, Linear::Bias with_bias, float eps);
  Tensor operator()(const Tensor& x) const;
  /// The norm of x + dropout(y).
  Tensor operator()(const Tensor& x, const Tensor& y, float dropout_rate, const Run& run) const;
  /// Null for another kind.
  template <class Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&kind_);
  }
  void visit(auto&& f) {
    std::visit([&](auto& norm) { norm.visit(f); }, kind_);
  }

 private:
  std::variant<LayerNorm, RmsNorm> kind_;
};

/// Zeroes elements with that probability in training and scales the others up; nothing otherwise.
struct Dropout {
  float rate = 0;

  Tensor operator()(const Tensor& x, const Run& run) const;
  void visit(auto&&) {}
};

/// Two linear layers with an activation between, the same at every position: the book's PositionWiseFFN.
struct FeedForward {
  Linear first, second;
  Activation activation = Activation::relu;

  FeedForward() = default;
  FeedForward(int64_t width, int64_t hidden, int64_t out, const Rng& rng, Activation between = Activation::relu,
              Linear::Bias with_bias = Linear::Bias::yes);
  Tensor operator()(const Tensor& x) const { return second(hidden(x)); }
  /// What `second` reads.
  Tensor hidden(const Tensor& x) const { return first(x, activation); }
  void visit(auto&& f) {
    f("first", first);
    f("second", second);
  }
};

/// down(activation(gate(x)) * up(x)), the same at every position: with silu, SwiGLU (Shazeer, 2020).
struct GatedFeedForward {
  Linear gate, up, down;
  Activation activation = Activation::silu;

  GatedFeedForward() = default;
  GatedFeedForward(int64_t width, int64_t hidden, int64_t out, const Rng& rng, Activation between = Activation::silu,
                   Linear::Bias with_bias = Linear::Bias::no);
  Tensor operator()(const Tensor& x) const { return down(hidden(x)); }
  /// What `down` reads.
  Tensor hidden(const Tensor& x) const;
  void visit(auto&& f) {
    f("gate", gate);
    f("up", up);
    f("down", down);
  }
};

/// Whether the hidden values of a feed-forward network are multiplied by a gate.
enum class FeedForwardKind { plain, gated };
constexpr std::array<std::string_view, 2> names(FeedForwardKind) { return {"plain", "gated"}; }

/// A feed-forward network of either kind, as a configuration names it.
class AnyFeedForward {
 public:
  AnyFeedForward() = default;
  AnyFeedForward(FeedForwardKind kind, int64_t width, int64_t hidden, int64_t out, const Rng& rng, Activation between,
                 Linear::Bias with_bias);
  Tensor operator()(const Tensor& x) const;
  /// The same in two parts, for dropout between them.
  Tensor hidden(const Tensor& x) const;
  const Linear& last() const;
  /// Null for another kind.
  template <class Kind>
  const Kind* as() const {
    return std::get_if<Kind>(&kind_);
  }
  void visit(auto&& f) {
    std::visit([&](auto& network) { network.visit(f); }, kind_);
  }

 private:
  std::variant<FeedForward, GatedFeedForward> kind_;
};

}  // namespace qkv
