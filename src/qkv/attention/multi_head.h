// Multi-head attention: H attentions side by side on projections of the same queries, keys and values.
#pragma once

#include "qkv/attention/any_scorer.h"
#include "qkv/attention/attend.h"
#include "qkv/attention/attention_positions.h"
#include "qkv/attention/long_attention.h"
#include "qkv/core/api.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/probe.h"

namespace QKV_API qkv {

struct MultiHeadOptions {
  int64_t width = 0;  // of the output, and of all query heads together unless head_width is given
  int64_t heads = 1;
  int64_t head_width = 0;  // 0: width / heads; more or fewer heads of this width are possible, as after pruning
  int64_t key_heads = 0;   // heads of keys and values, each read by heads / key_heads query heads; 0: as many as heads
  int64_t query_width = 0, key_width = 0, value_width = 0;  // widths of the inputs; 0: width
  ScorerKind scorer = ScorerKind::scaled_dot;
  ScorerMaker own_scorer = {};  // a scorer of your own instead
  Linear::Bias bias = Linear::Bias::no;
  float dropout = 0;                            // of the weights
  PositionKind positions = PositionKind::none;  // relative, rotary and alibi act here; the others are ignored
  int64_t max_distance = 32;                    // for relative: larger distances count as this one
  Rotation rotation = {};                       // for rotary
  AttentionKindOptions kind = {};               // anything but exact needs scaled_dot and positions without biases
};

/// Keys and values after projection, as a decoder caches them.
struct KeyValues {
  Tensor k, v;  // (B, L, key_heads D)
};

/// to_out(concat over h of attend(to_q(queries)_h, to_k(keys)_h, to_v(values)_h)): head h owns columns h D ... (h + 1)
/// D - 1 of the projections, D the width of a head, which are read in place.
struct MultiHead {
  int64_t heads = 1, key_heads = 1;
  float dropout = 0;
  Linear to_q, to_k, to_v, to_out;
  AnyScorer scorer;
  AttentionPositions positions;
  LongAttention kind;
  Tensor
      gates;  // (1 or B, 1, H, 1) or absent: what a head found is multiplied by its gate. Not a parameter of the module

  MultiHead() = default;
  MultiHead(const MultiHeadOptions& options, const Rng& rng);

  /// queries (B, n, query_width), keys (B, m, key_width), values (B, m, value_width) -> (B, n, width). The probe gets
  /// the weights (B, H, n, m) and the projected values.
  Tensor operator()(const Tensor& queries, const Tensor& keys, const Tensor& values, const Mask& mask,
                    const Run& run) const {
    return (*this)(queries, project(keys, values), mask, run);
  }
  /// Query i is at position query_offset + i, key j at j.
  Tensor operator()(const Tensor& queries, const KeyValues& projected, const Mask& mask, const Run& run,
                    int64_t query_offset = 0) const {
    return kind.exact() ? with(scorer, queries, projected, mask, run, query_offset)
                        : cheaper(queries, projected, mask, run, query_offset);
  }
  /// The same with your own scorer.
  template <Scorer S>
  Tensor with(const S& any, const Tensor& queries, const KeyValues& projected, const Mask& mask, const Run& run,
              int64_t query_offset = 0) const {
    const Tensor q = positions.placed(apart(to_q(queries), heads), query_offset);
    if (run.probe) run.probe->values(run.path, projected.v.detached());
    return to_out(together(gated(attend(any, q, apart(projected.k, key_heads), apart(projected.v, key_heads),
                                        positions.onto(mask, q.size(1), projected.k.size(1), query_offset), run,
                                        {.dropout = dropout, .axis = HeadAxis::inner})
                                     .output)));
  }
  /// Key j is at position key_offset + j.
  KeyValues project(const Tensor& keys, const Tensor& values, int64_t key_offset = 0) const;

  void visit(auto&& f) {
    f("to_q", to_q);
    f("to_k", to_k);
    f("to_v", to_v);
    f("to_out", to_out);
    f("scorer", scorer);
    f("relative", positions);
    f("kind", kind);
  }

 private:
  // With the attention kind instead of attend.
  Tensor cheaper(const Tensor& queries, const KeyValues& projected, const Mask& mask, const Run& run,
                 int64_t query_offset) const;
  Tensor gated(const Tensor& found) const;
  // (B, L, H D) <-> (B, L, H, D): no element moves.
  static Tensor apart(const Tensor& x, int64_t count) {
    return reshape(x, {x.size(0), x.size(1), count, x.size(2) / count});
  }
  static Tensor together(const Tensor& x) { return reshape(x, {x.size(0), x.size(1), x.size(2) * x.size(3)}); }
};

}  // namespace qkv
