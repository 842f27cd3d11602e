// Weights: what an attention attended to, recomputed exactly from what forward kept. They cost nothing until used.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "qkv/attention/scorer.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

struct KeyWeight {
  int64_t key;
  float weight;
};

/// The weights alpha (B, H, Lq, Lk) of an attention, before dropout, as the book stores them. A row costs O(Lk D);
/// nothing is recorded.
class Weights {
 public:
  Weights() = default;
  Weights(Lowered scores, AttentionPlan plan, Tensor lse);
  /// The weights of an attention that computed the whole matrix.
  explicit Weights(const Tensor& matrix);

  /// (B, H, Lq, Lk).
  const Shape& shape() const { return shape_; }

  /// The weights of query i of (b, h): (Lk), exactly 0 for keys that are not seen, all 0 if none is.
  Tensor row(int64_t b, int64_t h, int64_t i) const;
  void row(int64_t b, int64_t h, int64_t i, float* weights) const;
  /// The whole matrix, (B, H, Lq, Lk); refused if it takes more than `limit` bytes.
  static constexpr int64_t kMatrixBytes = int64_t{1} << 28;
  Tensor matrix(int64_t limit = kMatrixBytes) const;
  /// The `count` keys of query i with the largest weights, largest first, earlier keys first among equals; fewer if
  /// there are fewer keys.
  std::vector<KeyWeight> top_k(int64_t b, int64_t h, int64_t i, int64_t count) const;
  /// -sum alpha log alpha of every row, in nats: (B, H, Lq). e^entropy is the effective number of keys.
  Tensor entropy() const;
  /// The total weight that each key receives from all queries: (B, H, Lk).
  Tensor column_mass() const;

 private:
  struct Kept {
    Lowered scores;
    AttentionPlan plan;
    Tensor lse;
  };
  void check_row(int64_t b, int64_t h, int64_t i) const;
  double row_cost() const;

  std::variant<Tensor, Kept> source_;
  Shape shape_{0, 0, 0, 0};
};

}  // namespace qkv
