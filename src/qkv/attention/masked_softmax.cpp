// Masked softmax over lengths.
#include "qkv/attention/masked_softmax.h"

#include "qkv/attention/mask.h"
#include "qkv/ops/attention_composed.h"
#include "qkv/ops/shape.h"
#include "qkv/ops/softmax.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace {

AttentionPlan plan_of(const char* op, const Tensor& x, const Ids& valid_lens) {
  check_present(op, x, "x");
  check(x.rank() == 3, "[", op, "] expected scores (B, n, m), got ", x.shape());
  return Mask::valid_lens(valid_lens).plan(op, {x.size(0), 1, x.size(1), x.size(2), 3});
}

}  // namespace

Tensor masked_softmax(const Tensor& x) { return softmax(x); }

Tensor masked_softmax(const Tensor& x, const Ids& valid_lens) {
  const AttentionPlan plan = plan_of("masked_softmax", x, valid_lens);
  return reshape(masked_softmax(reshape(x, {x.size(0), 1, x.size(1), x.size(2)}), plan).weights, x.shape());
}

Tensor book_masked_softmax(const Tensor& x, const Ids& valid_lens) {
  const AttentionPlan plan = plan_of("book_masked_softmax", x, valid_lens);
  Tensor seen = Tensor::empty(x.shape());
  for (int64_t at = 0; at < x.numel(); ++at) {
    const int64_t row = at / x.size(2);
    seen.mutable_ptr()[at] = plan.row(row / x.size(1), 0, row % x.size(1), x.size(2)).sees(at % x.size(2));
  }
  return softmax(where(seen, x, full(x.shape(), -1e6f)));
}

}  // namespace qkv
