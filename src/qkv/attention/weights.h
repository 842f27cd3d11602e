// Weights: what an attention attended to, recomputed exactly from what forward kept. They cost nothing until used.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "qkv/attention/scorer.h"
#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Fused: the kernel, for scorers that lower. Composed: plain ops on the whole matrix, for any scorer, in O(n^2)
/// memory; the definition of the fused path.
enum class AttendPath { fused, composed };

struct KeyWeight {
  int64_t key;
  float weight;
};

/// The weights alpha (B, H, Lq, Lk) of an attention, before dropout, as the book stores them. A row costs O(Lk D);
/// nothing is recorded.
class Weights {
 public:
  Weights() = default;
  Weights(Lowered scores, AttentionPlan plan, Tensor lse, int64_t empty_rows = 0);
  /// The weights of an attention that computed the whole matrix.
  explicit Weights(const Tensor& matrix, int64_t empty_rows = 0);

  /// (B, H, Lq, Lk).
  const Shape& shape() const { return shape_; }
  /// Number of queries that see no key: their output and weights are 0.
  int64_t empty_rows() const { return empty_rows_; }
  /// How attend computed them.
  AttendPath path() const { return std::holds_alternative<Tensor>(source_) ? AttendPath::composed : AttendPath::fused; }

  /// The weights of query i of (b, h): (Lk), exactly 0 for keys that are not seen, all 0 if none is.
  Tensor row(int64_t b, int64_t h, int64_t i) const;
  void row(int64_t b, int64_t h, int64_t i, float* weights) const;
  /// The weights of head h in batch row b, (Lq, Lk): to draw or to print.
  Tensor head(int64_t b, int64_t h) const;
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
  void check_size(const Shape& shape, int64_t limit) const;
  // Rows first, first + 1, ... of all (B, H, Lq) of them, as many as `out` has.
  void fill_rows(int64_t first, Tensor& out) const;
  double row_cost() const;

  std::variant<Tensor, Kept> source_;
  Shape shape_{0, 0, 0, 0};
  int64_t empty_rows_ = 0;
};

}  // namespace qkv
