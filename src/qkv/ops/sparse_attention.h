// Attention in which every query sees a list of keys, given as runs: time and memory grow with the number of pairs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Keys begin, begin + step, ... below end.
struct KeyRun {
  int32_t begin = 0, end = 0, step = 1;
  int64_t count() const { return end > begin ? (end - begin + step - 1) / step : 0; }
};

/// The keys of every query, the same for all heads. The runs of a query do not overlap.
struct KeyRuns {
  int64_t batch = 1, queries = 0;  // batch: 1, or B
  std::vector<KeyRun> runs = {};
  std::vector<int64_t> first = {0};  // per (batch row, query): its first run; then the number of runs

  /// Adds the runs of the next query.
  void add(const std::vector<KeyRun>& of_query);
  /// Calls f(key) for the keys of query i of batch row b, in the order of the runs.
  template <class F>
  void each(int64_t b, int64_t i, F&& f) const {
    const auto row = static_cast<size_t>((batch == 1 ? 0 : b) * queries + i);
    for (int64_t r = first[row]; r < first[row + 1]; ++r) {
      const KeyRun& run = runs[static_cast<size_t>(r)];
      for (int32_t j = run.begin; j < run.end; j += run.step) f(j);
    }
  }
  /// The number of query-key pairs of a batch of that size.
  int64_t pairs(int64_t rows) const;
  /// 1 where a query sees a key, else 0: (batch, 1, queries, keys).
  Tensor dense(int64_t keys) const;
};

/// softmax(scale q . k) v over the keys of the runs; a query without keys gives 0. q (B, Lq, H, D), k and v (B, Lk, Hk,
/// D), H a multiple of Hk -> (B, Lq, H, D)
Tensor sparse_attention(const Tensor& q, const Tensor& k, const Tensor& v, std::shared_ptr<const KeyRuns> runs,
                        float scale);

}  // namespace qkv
