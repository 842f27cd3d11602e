// Attention plans: rows, the kernels' view, heads folded into the batch.
#include "qkv/ops/attention_plan.h"

#include <algorithm>
#include <cstring>

#include "qkv/kernels/attention.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/shape.h"

namespace qkv {
namespace {

// Distance between batch rows and heads of (1 or B, 1 or H, ...); 0 where the axis is shared.
int64_t batch_stride(const Shape& s) { return s[0] == 1 ? 0 : s.product(1, s.rank()); }
int64_t head_stride(const Shape& s) { return s[1] == 1 ? 0 : s.product(2, s.rank()); }

}  // namespace

PlanRow AttentionPlan::row(int64_t b, int64_t h, int64_t i, int64_t keys) const {
  PlanRow row{0, keys, nullptr, nullptr, nullptr};
  if (begin.defined()) {
    const int64_t at = (begin.size(0) == 1 ? 0 : b) * begin.size(1) + i;
    row.begin = begin.ptr()[at];
    row.end = end.ptr()[at];
  }
  if (keep.bytes) row.keep = keep.ptr() + b * batch_stride(keep.shape) + h * head_stride(keep.shape) + i * keys;
  if (bias.defined()) row.bias = bias.ptr() + b * batch_stride(bias.shape()) + h * head_stride(bias.shape()) + i * keys;
  if (relative.defined()) {
    const int64_t last_query = relative.size(2) - keys;
    row.relative =
        relative.ptr() + b * batch_stride(relative.shape()) + h * head_stride(relative.shape()) + last_query - i;
  }
  return row;
}

kernels::AttentionMask AttentionPlan::mask() const {
  kernels::AttentionMask mask;
  if (begin.defined()) {
    mask.begin = begin.ptr();
    mask.end = end.ptr();
    mask.interval_batch = begin.size(0) == 1 ? 0 : begin.size(1);
  }
  if (keep.bytes) {
    mask.keep = keep.ptr();
    mask.keep_batch = batch_stride(keep.shape);
    mask.keep_head = head_stride(keep.shape);
  }
  if (bias.defined()) {
    mask.bias = bias.ptr();
    mask.bias_batch = batch_stride(bias.shape());
    mask.bias_head = head_stride(bias.shape());
  }
  if (relative.defined()) {
    mask.relative = relative.ptr();
    mask.relative_batch = batch_stride(relative.shape());
    mask.relative_head = head_stride(relative.shape());
  }
  return mask;
}

AttentionPlan AttentionPlan::heads_as_batch(int64_t batch, int64_t heads) const {
  AttentionPlan out = *this;
  if (begin.defined() && begin.size(0) > 1) {
    const int64_t queries = begin.size(1);
    out.begin = Ids::empty({batch * heads, queries});
    out.end = Ids::empty({batch * heads, queries});
    for (int64_t row = 0; row < batch * heads; ++row) {
      std::copy_n(begin.ptr() + row / heads * queries, queries, out.begin.mutable_ptr() + row * queries);
      std::copy_n(end.ptr() + row / heads * queries, queries, out.end.mutable_ptr() + row * queries);
    }
  }
  if (keep.bytes && (keep.shape[0] > 1 || keep.shape[1] > 1)) {
    const int64_t square = keep.shape[2] * keep.shape[3];
    out.keep = {{batch * heads, 1, keep.shape[2], keep.shape[3]},
                Buffer::take(static_cast<size_t>(batch * heads * square))};
    auto* to = reinterpret_cast<uint8_t*>(out.keep.bytes.data());
    for (int64_t row = 0; row < batch * heads; ++row)
      std::memcpy(to + row * square,
                  keep.ptr() + row / heads * batch_stride(keep.shape) + row % heads * head_stride(keep.shape),
                  static_cast<size_t>(square));
  }
  if (bias.defined() && (bias.size(0) > 1 || bias.size(1) > 1)) {
    const int64_t queries = bias.size(2), keys = bias.size(3);
    out.bias = reshape(add(bias, zeros({batch, heads, queries, keys})), {batch * heads, 1, queries, keys});
  }
  if (relative.defined() && (relative.size(0) > 1 || relative.size(1) > 1)) {
    const int64_t diagonals = relative.size(2);
    out.relative = reshape(add(relative, zeros({batch, heads, diagonals})), {batch * heads, 1, diagonals});
  }
  return out;
}

}  // namespace qkv
