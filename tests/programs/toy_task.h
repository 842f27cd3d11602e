// A small training task with everything that could break "same seed, same bits": shuffling, dropout, shards, a short
// last batch.
#pragma once

#include <algorithm>

#include "qkv/nn/layers.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/shape.h"
#include "qkv/train/fit.h"

namespace qkv::tests {

/// 12 -> 24 -> relu -> dropout -> layer norm -> 7 classes.
struct ToyModel {
  Linear first, second;
  LayerNorm norm;

  explicit ToyModel(const Rng& rng) : first(12, 24, rng.at("first")), second(24, 7, rng.at("second")), norm(24) {}
  Tensor operator()(const Tensor& x, const Run& run) const {
    return second(norm(dropout(first(x, Activation::relu), 0.2f, run.at("dropout"))));
  }
  void visit(auto&& f) {
    f("first", first);
    f("second", second);
    f("norm", norm);
  }
};

struct ToyBatch {
  Tensor x;     // (B, 12)
  Ids targets;  // (B)
};

/// 500 rows in batches of 100: 3 shards of 32 and one of 4 each.
struct ToyTask {
  const ToyModel& model;
  Tensor x = normal({500, 12}, Rng(5).at("x"));

  int64_t batches() const { return 5; }
  ToyBatch batch(int64_t epoch, int64_t index) const {
    ToyBatch b{Tensor::empty({100, 12}), Ids::empty({100})};
    const Rng order = Rng(6).at(static_cast<uint64_t>(epoch));
    for (int64_t i = 0; i < 100; ++i) {
      const int64_t row = static_cast<int64_t>(order.below(500, static_cast<uint64_t>(index * 100 + i)));
      const float* from = x.ptr() + row * 12;
      std::copy_n(from, 12, b.x.mutable_ptr() + i * 12);
      b.targets.mutable_ptr()[i] = static_cast<int32_t>(std::max_element(from, from + 7) - from);
    }
    return b;
  }
  int64_t rows(const ToyBatch& b) const { return b.x.size(0); }
  Loss loss(const ToyBatch& b, int64_t begin, int64_t end, const Run& run) const {
    const int64_t n = end - begin;
    const Tensor logits = model(b.x.part(begin * 12, {n, 12}), run);
    const Tensor sum = cross_entropy(logits, b.targets.part(begin, {n}), {.reduction = Reduction::sum});
    return {sum, static_cast<double>(n)};
  }
};

}  // namespace qkv::tests
