// The projections of multi-head attention.
#include "qkv/attention/multi_head.h"

#include "qkv/core/check.h"
#include "qkv/ops/elementwise.h"

namespace qkv {

MultiHead::MultiHead(const MultiHeadOptions& o, const Rng& rng)
    : heads(o.heads), key_heads(o.key_heads > 0 ? o.key_heads : o.heads), dropout(o.dropout) {
  check(o.heads > 0 && o.width > 0 && (o.head_width > 0 || o.width % o.heads == 0), "[multi_head] a width of ", o.width,
        " is not divisible by ", o.heads, " heads");
  check(heads % key_heads == 0, "[multi_head] ", heads, " heads are not a multiple of ", key_heads, " key heads");
  const int64_t head = o.head_width > 0 ? o.head_width : o.width / o.heads, all = o.heads * head;
  const auto given = [&](int64_t width) { return width > 0 ? width : o.width; };
  to_q = Linear(given(o.query_width), all, rng.at("to_q"), o.bias);
  to_k = Linear(given(o.key_width), key_heads * head, rng.at("to_k"), o.bias);
  to_v = Linear(given(o.value_width), key_heads * head, rng.at("to_v"), o.bias);
  to_out = Linear(all, o.width, rng.at("to_out"), o.bias);
  scorer = o.own_scorer ? o.own_scorer({head, head, head}, rng.at("scorer"))
                        : make_scorer(o.scorer, {head, head, head}, rng.at("scorer"));
  positions = AttentionPositions(o.positions, heads, head, o.max_distance, o.rotation);
  kind = LongAttention(o.kind, head, rng.at("kind"));
  check(kind.exact() || (scorer.as<ScaledDot>() && !positions.biases()), "[multi_head] ", name_of(o.kind.kind),
        " attention needs scaled-dot scores and positions that add nothing to them");
}

Tensor MultiHead::cheaper(const Tensor& queries, const KeyValues& projected, const Mask& mask, const Run& run,
                          int64_t query_offset) const {
  const Tensor q = positions.placed(apart(to_q(queries), heads), query_offset);
  if (run.probe) run.probe->values(run.path, projected.v.detached());
  return to_out(together(gated(kind(q, apart(projected.k, key_heads), apart(projected.v, key_heads), mask, run))));
}

Tensor MultiHead::gated(const Tensor& found) const { return gates.defined() ? mul(found, gates) : found; }

KeyValues MultiHead::project(const Tensor& keys, const Tensor& values, int64_t key_offset) const {
  const Tensor k = to_k(keys);
  return {positions.turns() ? together(positions.placed(apart(k, key_heads), key_offset)) : k, to_v(values)};
}

}  // namespace qkv
