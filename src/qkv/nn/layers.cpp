// Layers: how they are initialised and which op they call.
#include "qkv/nn/layers.h"

#include "qkv/nn/init.h"
#include "qkv/ops/dropout.h"
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

RmsNorm::RmsNorm(int64_t width) : gamma(parameter(ones({width}))) {}
Tensor RmsNorm::operator()(const Tensor& x) const { return rms_norm(x, gamma); }

Tensor Dropout::operator()(const Tensor& x, const Run& run) const { return dropout(x, rate, run); }

FeedForward::FeedForward(int64_t width, int64_t hidden, int64_t out, const Rng& rng, Activation between,
                         Linear::Bias with_bias)
    : first(width, hidden, rng.at("first"), with_bias),
      second(hidden, out, rng.at("second"), with_bias),
      activation(between) {}

}  // namespace qkv
