// Layers: how they are initialised and which op they call.
#include "qkv/nn/layers.h"

#include "qkv/nn/init.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/norm.h"

namespace qkv {

Linear::Linear(int64_t in, int64_t out, const Rng& rng, Bias with_bias)
    : weight(parameter(fan_in_uniform({out, in}, in, rng.at("weight")))) {
  if (with_bias == Bias::yes) bias = parameter(fan_in_uniform({out}, in, rng.at("bias")));
}

Embedding::Embedding(int64_t count, int64_t width, const Rng& rng)
    : weight(parameter(normal({count, width}, rng.at("weight")))) {}
Tensor Embedding::operator()(const Ids& ids) const { return embedding(weight, ids); }

LayerNorm::LayerNorm(int64_t width, Linear::Bias with_bias, float epsilon)
    : gamma(parameter(ones({width}))), beta(zeros({width})), eps(epsilon) {
  if (with_bias == Linear::Bias::yes) beta = parameter(beta);
}
Tensor LayerNorm::operator()(const Tensor& x) const { return layer_norm(x, gamma, beta, eps); }
Tensor LayerNorm::operator()(const Tensor& x, const Tensor& y, float dropout_rate, const Run& run) const {
  return residual_layer_norm(x, y, gamma, beta, dropout_rate, run, eps);
}

RmsNorm::RmsNorm(int64_t width, float epsilon) : gamma(parameter(ones({width}))), eps(epsilon) {}
Tensor RmsNorm::operator()(const Tensor& x) const { return rms_norm(x, gamma, eps); }
Tensor RmsNorm::operator()(const Tensor& x, const Tensor& y, float dropout_rate, const Run& run) const {
  return rms_norm(add(x, dropout(y, dropout_rate, run)), gamma, eps);
}

Norm::Norm(NormKind kind, int64_t width, Linear::Bias with_bias, float eps) {
  if (kind == NormKind::layer)
    kind_ = LayerNorm(width, with_bias, eps);
  else
    kind_ = RmsNorm(width, eps);
}
Tensor Norm::operator()(const Tensor& x) const {
  return std::visit([&](const auto& norm) { return norm(x); }, kind_);
}
Tensor Norm::operator()(const Tensor& x, const Tensor& y, float dropout_rate, const Run& run) const {
  return std::visit([&](const auto& norm) { return norm(x, y, dropout_rate, run); }, kind_);
}

Tensor Dropout::operator()(const Tensor& x, const Run& run) const { return dropout(x, rate, run); }

FeedForward::FeedForward(int64_t width, int64_t hidden, int64_t out, const Rng& rng, Activation between,
                         Linear::Bias with_bias)
    : first(width, hidden, rng.at("first"), with_bias),
      second(hidden, out, rng.at("second"), with_bias),
      activation(between) {}

GatedFeedForward::GatedFeedForward(int64_t width, int64_t hidden, int64_t out, const Rng& rng, Activation between,
                                   Linear::Bias with_bias)
    : gate(width, hidden, rng.at("gate"), with_bias),
      up(width, hidden, rng.at("up"), with_bias),
      down(hidden, out, rng.at("down"), with_bias),
      activation(between) {}
Tensor GatedFeedForward::hidden(const Tensor& x) const { return mul(gate(x, activation), up(x)); }

AnyFeedForward::AnyFeedForward(FeedForwardKind kind, int64_t width, int64_t hidden, int64_t out, const Rng& rng,
                               Activation between, Linear::Bias with_bias) {
  if (kind == FeedForwardKind::plain)
    kind_ = FeedForward(width, hidden, out, rng, between, with_bias);
  else
    kind_ = GatedFeedForward(width, hidden, out, rng, between, with_bias);
}
Tensor AnyFeedForward::operator()(const Tensor& x) const {
  return std::visit([&](const auto& network) { return network(x); }, kind_);
}
Tensor AnyFeedForward::hidden(const Tensor& x) const {
  return std::visit([&](const auto& network) { return network.hidden(x); }, kind_);
}
const Linear& AnyFeedForward::last() const {
  const auto* plain = as<FeedForward>();
  return plain ? plain->second : as<GatedFeedForward>()->down;
}

}  // namespace qkv
