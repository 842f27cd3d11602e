// Loss ops: forward and pullback side by side.
#include "qkv/ops/loss.h"

#include "qkv/kernels/elementwise.h"
#include "qkv/kernels/loss.h"
#include "qkv/ops/loss_reduction.h"
#include "qkv/ops/row_blocks.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 4096;  // elements per partial sum

}  // namespace

// loss = lse - sum_j w_j x_j, lse = log sum e^x, w the smoothed target.   dx = dloss (e^(x - lse) - w)
Tensor cross_entropy(const Tensor& logits, const Ids& targets, const CrossEntropyOptions& options) {
  check_present("cross_entropy", logits, "logits");
  check_present("cross_entropy", targets, "targets");
  const Rows rows("cross_entropy", logits.shape());
  Shape expected = targets.shape();
  expected.push_back(rows.width);
  check(expected == logits.shape(), "[cross_entropy] targets of shape ", targets.shape(),
        " do not fit logits of shape ", logits.shape());
  const WantedIds wanted = wanted_ids("cross_entropy", rows.width, targets, options);
  Tensor losses = Tensor::empty(targets.shape()), lse = Tensor::empty(targets.shape());
  const kernels::CrossEntropy c{logits.ptr(), wanted.ids.ptr(), options.label_smoothing, rows.width};
  rows.each(
      0.6, [&](int64_t r, int64_t n) { kernels::cross_entropy(c, losses.mutable_ptr(), lse.mutable_ptr(), r, r + n); });
  const bool each = options.reduction == Reduction::none;
  Tensor y = reduced(losses, options.reduction, wanted.counted);
  record("cross_entropy", y, {&logits},
         [logits = logits.detached(), ids = wanted.ids, lse, rows, each, smoothing = options.label_smoothing,
          factor = reduction_factor(options.reduction, wanted.counted)](Pull& p) {
           const Tensor& dy = p.dy();
           Tensor dx = Tensor::empty(logits.shape());
           const kernels::CrossEntropy back{logits.ptr(), ids.ptr(), smoothing, rows.width};
           rows.each(0.6, [&](int64_t r, int64_t n) {
             kernels::cross_entropy_back(back, lse.ptr(), dy.ptr(), each ? 1 : 0, factor, dx.mutable_ptr(), r, r + n);
           });
           p.give(0, std::move(dx));
         });
  return y;
}

// y = c sum (a - b)^2, c = 1, 1/2 or 1/n.   da = 2 c dy (a - b), db = -da
Tensor squared_error(const Tensor& prediction, const Tensor& target, Reduction reduction) {
  check_present("squared_error", prediction, "prediction");
  check_present("squared_error", target, "target");
  check(prediction.shape() == target.shape(), "[squared_error] shapes differ: prediction ", prediction.shape(),
        ", target ", target.shape());
  const int64_t n = prediction.numel();
  const bool each = reduction == Reduction::none;
  Tensor y;
  if (each) {
    y = Tensor::empty(prediction.shape());
    parallel_ranges(n, kBlock, 0.3 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      kernels::squared_error(prediction.ptr() + begin, target.ptr() + begin, y.mutable_ptr() + begin, end - begin);
    });
  } else {
    Tensor parts = Tensor::empty({(n + kBlock - 1) / kBlock});
    parallel_ranges(n, kBlock, 0.2 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
      parts.mutable_ptr()[begin / kBlock] =
          kernels::squared_distance(prediction.ptr() + begin, target.ptr() + begin, end - begin);
    });
    y = reduced(parts, reduction, n);
  }
  record("squared_error", y, {&prediction, &target},
         [a = prediction.detached(), b = target.detached(), n, each, factor = reduction_factor(reduction, n)](Pull& p) {
           const Tensor& dy = p.dy();
           Tensor da = Tensor::empty(a.shape());
           parallel_ranges(n, kBlock, 0.3 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
             kernels::squared_error_back(a.ptr() + begin, b.ptr() + begin, each ? dy.ptr() + begin : dy.ptr(),
                                         each ? 1 : 0, factor, da.mutable_ptr() + begin, end - begin);
           });
           if (p.wants(1)) {
             Tensor db = Tensor::empty(a.shape());
             kernels::neg(da.ptr(), db.mutable_ptr(), n);
             p.give(1, std::move(db));
           }
           p.give(0, std::move(da));
         });
  return y;
}

}  // namespace qkv
