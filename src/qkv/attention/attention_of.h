// What a model attends to: the weights of all its attentions, by path.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "qkv/attention/weights.h"
#include "qkv/core/api.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/run.h"

namespace QKV_API qkv {

/// The weights of every attention by its path, such as "encoder.0.self"; "" is the path of a model that is one
/// attention.
using AttentionWeights = std::map<std::string, Weights, std::less<>>;

namespace detail {

class WeightsByPath : public Probe {
 public:
  void attention(std::string_view path, const Weights& weights) override {
    all.insert_or_assign(std::string(path), weights);
  }
  AttentionWeights all;
};

}  // namespace detail

/// Runs the model, without dropout, and returns what its attentions attended to. The model is called as
/// model(inputs..., run) or else as model.features(inputs..., run); a function of (run) works for anything else. Of an
/// attention that is computed several times, the last.
///
///   const AttentionWeights seen = attention_of(encoder, ids, lens);
///   const Tensor map = seen.at("1.self").head(0, 3);  // layer 1, sentence 0, head 3: (n, n)
template <class Model, class... Inputs>
AttentionWeights attention_of(const Model& model, const Inputs&... inputs) {
  detail::WeightsByPath probe;
  const Run run{.probe = &probe};
  if constexpr (requires { model(inputs..., run); }) {
    model(inputs..., run);
  } else {
    static_assert(
        requires { model.features(inputs..., run); },
        "attention_of(model, inputs...) needs model(inputs..., run) or model.features(inputs..., run)");
    model.features(inputs..., run);
  }
  return std::move(probe.all);
}

}  // namespace qkv
