// The kinds of attention, and the weights that each has in effect.
#include "qkv/attention/long_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/attention/attend.h"
#include "qkv/attention/edits.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/check.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

Tensor outer(const Tensor& x) { return permute(x, {0, 2, 1, 3}); }

// Key and value heads repeated, so that there are as many as query heads.
Tensor for_all_heads(const Tensor& x, int64_t heads) {
  return x.size(2) == heads ? x : repeat_interleave(x, heads / x.size(2), 2);
}

// No key after the last that a causal mask shows to any query.
Tensor up_to_last(const Tensor& x, const PlainMask& mask, int64_t queries) {
  if (!mask.offset || queries + *mask.offset >= x.size(1)) return x;
  return slice(x, 1, 0, std::max<int64_t>(0, queries + *mask.offset));
}

}  // namespace

LongAttention::LongAttention(const AttentionKindOptions& o, int64_t head_width, const Rng& rng) : options_(o) {
  switch (o.kind) {
    case AttentionKind::exact:
      break;
    case AttentionKind::window:
    case AttentionKind::dilated:
    case AttentionKind::block_sparse:
      form_ = KeyPattern(o);
      break;
    case AttentionKind::linear:
      form_ = LinearAttention{};
      break;
    case AttentionKind::performer:
      form_ = RandomFeatures(o.features, head_width, o.seed);
      break;
    case AttentionKind::linformer:
      form_ = LowRank(o.rank, o.positions, rng.at("linformer"));
      break;
    case AttentionKind::nystrom:
      form_ = Nystrom{o.landmarks};
      break;
  }
}

// A window without global tokens that begins at the first token is an interval per row, which the tiles of the exact
// kernel skip to.
Tensor LongAttention::pooled(const Tensor& q, const Tensor& k, const Tensor& v, const PlainMask& mask) const {
  const int64_t heads = q.size(2);
  if (const KeyPattern* pattern = this->pattern()) {
    if (options_.kind == AttentionKind::window && options_.global_tokens == 0 && mask.offset.value_or(0) == 0)
      return attend(ScaledDot{}, q, k, v,
                    mask.mask() & Mask::window(options_.window, mask.offset ? 0 : options_.window), {},
                    {.axis = HeadAxis::inner})
          .output;
    const auto runs = std::make_shared<const KeyRuns>(pattern->runs(q.size(1), k.size(1), mask));
    return sparse_attention(q, k, v, runs, 1 / std::sqrt(static_cast<float>(q.size(3))));
  }
  const Tensor keys = up_to_last(for_all_heads(k, heads), mask, q.size(1)),
               values = up_to_last(for_all_heads(v, heads), mask, q.size(1));
  if (const auto* linear = std::get_if<LinearAttention>(&form_))
    return outer((*linear)(outer(q), outer(keys), outer(values), mask));
  if (const auto* random = std::get_if<RandomFeatures>(&form_))
    return outer((*random)(outer(q), outer(keys), outer(values), mask));
  if (const auto* low_rank = std::get_if<LowRank>(&form_)) return (*low_rank)(q, keys, values, mask);
  return std::get<Nystrom>(form_)(q, keys, values, mask);
}

// (B, H, Lq, Lk)
Tensor LongAttention::weights(const Tensor& q, const Tensor& k, const PlainMask& mask) const {
  const int64_t keys = k.size(1);
  if (const KeyPattern* pattern = this->pattern())
    return attend(ScaledDot{}, q, k, k, Mask::keep(pattern->runs(q.size(1), keys, mask).dense(keys)), {},
                  {.axis = HeadAxis::inner})
        .weights.matrix();
  return outer(pooled(q, k, tile(reshape(eye(keys), {1, keys, 1, keys}), {q.size(0), 1, k.size(2), 1}), mask));
}

Tensor LongAttention::operator()(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask,
                                 const Run& run) const {
  const std::optional<PlainMask> plain = mask.plain();
  require(plain.has_value(), "[attention] {kind} takes a causal mask and lengths, but nothing else is hidden or added",
          "kind"_a = options_.kind);
  if (!run.probe) return pooled(q, k, v, *plain);
  const bool edits = run.probe->edits(run.path);
  check(!edits || !Tape::current(), "[attend] the attention at ", run.path, " is edited: it has no gradient");
  Tensor alpha;
  {
    const TapePause pause;
    alpha = weights(q.detached(), k.detached(), *plain);
    if (edits) {
      Tensor logs = Tensor::empty(alpha.shape());
      std::transform(alpha.ptr(), alpha.ptr() + alpha.numel(), logs.mutable_ptr(),
                     [](float w) { return w > 0 ? std::log(w) : -std::numeric_limits<float>::infinity(); });
      const AttentionPlan plan = mask.plan("attend", {alpha.size(0), alpha.size(1), alpha.size(2), alpha.size(3)});
      EditableWeights all{logs, plan, run.first_queries, alpha};
      run.probe->edit(run.path, all);
    }
    run.probe->attention(run.path, Weights(alpha));
  }
  if (!edits) return pooled(q, k, v, *plain);
  return outer(matmul(alpha, outer(for_all_heads(v, q.size(2)))));
}

}  // namespace qkv
