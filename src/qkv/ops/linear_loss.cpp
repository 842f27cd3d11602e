// Linear layer and cross-entropy in one op: memory O(N D) and a chunk of logits, not O(N V); skips rows that do not
// count.
#include "qkv/ops/linear_loss.h"

#include <algorithm>

#include "qkv/kernels/elementwise.h"
#include "qkv/kernels/gemm.h"
#include "qkv/kernels/loss.h"
#include "qkv/ops/loss_reduction.h"
#include "qkv/ops/row_blocks.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

// What both directions need; everything but dloss is known in the forward pass.
struct Saved {
  Tensor x, weight, bias;  // (N, D), (V, D), (V) or absent
  Ids ids;                 // (N)
  Ids rows;                // (N): their positions among all rows, absent if all rows count
  Tensor lse;              // (N)
  int64_t n, d, v;
  float smoothing;

  // Rows per chunk: half a megabyte of logits if V is small; otherwise 128 to 512 rows, in at most 16 megabytes where
  // possible, so that the weights are rarely read and packed. Depends on V alone.
  int64_t chunk() const {
    const int64_t classes = std::max<int64_t>(v, 1);
    return std::max<int64_t>({128, (1 << 17) / classes, std::min<int64_t>(512, (1 << 22) / classes)});
  }

  // logits = x weight^T + bias for rows [begin, begin + rows).
  void logits(int64_t begin, int64_t rows, float* out) const {
    kernels::gemm_parallel({.transpose_b = Transpose::yes,
                            .M = rows,
                            .N = v,
                            .K = d,
                            .A = x.ptr() + begin * d,
                            .lda = d,
                            .B = weight.ptr(),
                            .ldb = d,
                            .C = out,
                            .ldc = v,
                            .bias = bias.ptr()});
  }

  kernels::CrossEntropy rows_of(int64_t begin, const float* out) const {
    return {out, ids.ptr() + begin, smoothing, v};
  }

  // body(first row, rows) for each chunk, in order.
  template <class Body>
  void each_chunk(Body&& body) const {
    for (int64_t begin = 0; begin < n; begin += chunk()) body(begin, std::min(chunk(), n - begin));
  }
};

void check_shapes(const Tensor& x, const Tensor& weight, const Tensor& bias, const Ids& targets) {
  check_present("linear_cross_entropy", x, "x");
  check_present("linear_cross_entropy", weight, "weight");
  check_present("linear_cross_entropy", targets, "targets");
  check(weight.rank() == 2, "[linear_cross_entropy] the weight must have shape (V, D), got ", weight.shape());
  Shape expected = targets.shape();
  expected.push_back(weight.size(1));
  check(x.shape() == expected, "[linear_cross_entropy] x has shape ", x.shape(), ", but targets and weight require ",
        expected);
  check(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "[linear_cross_entropy] bias has shape ",
        bias.shape(), " for ", weight.size(0), " classes");
}

// The given rows of x (..., D), or of numbers (...).
Tensor taken(const Tensor& x, const Ids& rows, int64_t d) {
  Tensor out = Tensor::empty({rows.numel(), d});
  parallel_ranges(rows.numel(), 256, 0.2 * static_cast<double>(rows.numel() * d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::copy_n(x.ptr() + rows.ptr()[i] * d, d, out.mutable_ptr() + i * d);
  });
  return out;
}

// The inverse: to (total, d) (+)= x at these rows, 0 at the others.
void put_back(const Tensor& x, const Ids& rows, int64_t d, float* to, int64_t total, bool add) {
  if (!add) std::fill_n(to, total * d, 0.f);
  parallel_ranges(rows.numel(), 256, 0.2 * static_cast<double>(rows.numel() * d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* row = to + rows.ptr()[i] * d;
      kernels::add(row, x.ptr() + i * d, row, d);
    }
  });
}

// Which rows count, and their ids; `rows` is absent if all do.
struct Counted {
  Ids rows, ids;

  Counted(const Ids& all, int64_t count) {
    ids = all.viewed({all.numel()});
    if (count == all.numel()) return;
    rows = Ids::empty({count});
    ids = Ids::empty({count});
    for (int64_t i = 0, at = 0; i < all.numel(); ++i)
      if (all.ptr()[i] >= 0) {
        rows.mutable_ptr()[at] = static_cast<int32_t>(i);
        ids.mutable_ptr()[at++] = all.ptr()[i];
      }
  }
};

// The gradients of a one-element loss, computed along with it while the logits exist: backward only multiplies them by
// dloss.
struct Ahead {
  Tensor x, weight, bias;  // (N, D), (V, D), (V); absent if not wanted

  Ahead(const Saved& s, bool of_x, bool of_weight, bool of_bias) {
    if (of_x) x = Tensor::empty({s.n, s.d});
    if (of_weight) weight = s.n > 0 ? Tensor::empty({s.v, s.d}) : zeros({s.v, s.d});
    if (of_bias) bias = zeros({s.v});
  }
  bool wanted() const { return x.defined() || weight.defined() || bias.defined(); }

  // dx = g weight, dweight += g^T x, dbias += sum of the rows of g, g (rows, V) being the gradient of a chunk's logits
  void add_chunk(const Saved& s, int64_t begin, int64_t rows, const float* g) const {
    if (x.defined())
      kernels::gemm_parallel({.M = rows,
                              .N = s.d,
                              .K = s.v,
                              .A = g,
                              .lda = s.v,
                              .B = s.weight.ptr(),
                              .ldb = s.d,
                              .C = detail::writable(x) + begin * s.d,
                              .ldc = s.d});
    if (weight.defined())
      kernels::gemm_parallel({.transpose_a = Transpose::yes,
                              .M = s.v,
                              .N = s.d,
                              .K = rows,
                              .A = g,
                              .lda = s.v,
                              .B = s.x.ptr() + begin * s.d,
                              .ldb = s.d,
                              .beta = begin > 0 ? 1.f : 0.f,
                              .C = detail::writable(weight),
                              .ldc = s.d});
    if (bias.defined())
      parallel_ranges(s.v, 1024, 0.15 * static_cast<double>(rows * s.v), [&](int64_t first, int64_t last) {
        float* sum = detail::writable(bias);
        for (int64_t r = 0; r < rows; ++r) kernels::add(sum + first, g + r * s.v + first, sum + first, last - first);
      });
  }
};

// Gives dx for the rows that count, out of `total`.
void give_rows(Pull& p, const Tensor& dx, const Ids& rows, int64_t d, int64_t total) {
  if (!rows.defined()) return p.give(0, dx);
  const GradTarget to = p.into(0);
  put_back(dx, rows, d, to.data, total, to.add);
}

Tensor times(const Tensor& x, float factor) {
  if (factor != 1)
    parallel_ranges(x.numel(), 8192, 0.1 * static_cast<double>(x.numel()), [&](int64_t begin, int64_t end) {
      kernels::scale(x.ptr() + begin, factor, detail::writable(x) + begin, end - begin);
    });
  return x;
}

}  // namespace

// loss = cross_entropy(z), z = x W^T + b.   g = dloss (e^(z - lse) - w), dx = g W, dW = g^T x, db = sum of rows of g
// If the losses are summed, dloss is one number: g / dloss and the products are then computed in the forward pass,
// chunk by chunk.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Ids& targets,
                            const CrossEntropyOptions& options) {
  check_shapes(x, weight, bias, targets);
  const WantedIds wanted = wanted_ids("linear_cross_entropy", weight.size(0), targets, options);
  const Counted counted(wanted.ids, wanted.counted);
  const int64_t n = counted.ids.numel(), total = targets.numel(), d = weight.size(1);
  const Saved saved{counted.rows.defined() ? taken(x, counted.rows, d) : x.detached(),
                    weight.detached(),
                    bias.detached(),
                    counted.ids,
                    counted.rows,
                    Tensor::empty({n}),
                    n,
                    d,
                    weight.size(0),
                    options.label_smoothing};
  const bool one_each = options.reduction == Reduction::none;
  const float factor = reduction_factor(options.reduction, wanted.counted), one = 1;
  const Ahead ahead(saved, !one_each && Tape::tracks(x), !one_each && Tape::tracks(weight),
                    !one_each && bias.defined() && Tape::tracks(bias));
  Tensor losses = Tensor::empty({n});
  {
    Tensor z = Tensor::empty({std::min(saved.chunk(), saved.n), saved.v});
    saved.each_chunk([&](int64_t begin, int64_t rows) {
      saved.logits(begin, rows, z.mutable_ptr());
      Rows(rows, saved.v).each(ahead.wanted() ? 1.2 : 0.6, [&](int64_t r, int64_t count) {
        const kernels::CrossEntropy part = saved.rows_of(begin, z.ptr());
        kernels::cross_entropy(part, detail::writable(losses) + begin, detail::writable(saved.lse) + begin, r,
                               r + count);
        if (ahead.wanted())
          kernels::cross_entropy_back(part, saved.lse.ptr() + begin, &one, 0, factor, z.mutable_ptr(), r, r + count);
      });
      if (ahead.wanted()) ahead.add_chunk(saved, begin, rows, z.ptr());
    });
  }
  if (!one_each) {
    Tensor y = reduced(losses, options.reduction, wanted.counted);
    record("linear_cross_entropy", y, {&x, &weight, &bias}, [ahead, rows = saved.rows, total, d](Pull& p) {
      const float dloss = p.dy().item();
      if (p.wants(0)) give_rows(p, times(ahead.x, dloss), rows, d, total);
      if (p.wants(1)) p.give(1, times(ahead.weight, dloss));
      if (p.wants(2)) p.give(2, times(ahead.bias, dloss));
    });
    return y;
  }
  Tensor all = Tensor::empty(targets.shape());
  if (saved.rows.defined()) put_back(losses, saved.rows, 1, all.mutable_ptr(), total, false);
  Tensor y = reduced(saved.rows.defined() ? all : losses.viewed(targets.shape()), options.reduction, wanted.counted);
  record("linear_cross_entropy", y, {&x, &weight, &bias}, [saved, total, factor](Pull& p) {
    const Tensor dy = saved.rows.defined() ? taken(p.dy(), saved.rows, 1) : p.dy();
    const Ahead sums(saved, p.wants(0), p.wants(1), p.wants(2));
    Tensor z = Tensor::empty({std::min(saved.chunk(), saved.n), saved.v});
    saved.each_chunk([&](int64_t begin, int64_t rows) {
      saved.logits(begin, rows, z.mutable_ptr());
      Rows(rows, saved.v).each(0.6, [&](int64_t r, int64_t count) {
        kernels::cross_entropy_back(saved.rows_of(begin, z.ptr()), saved.lse.ptr() + begin, dy.ptr() + begin, 1, factor,
                                    z.mutable_ptr(), r, r + count);
      });
      sums.add_chunk(saved, begin, rows, z.ptr());
    });
    if (p.wants(0)) give_rows(p, sums.x, saved.rows, saved.d, total);
    if (p.wants(1)) p.give(1, sums.weight);
    if (p.wants(2)) p.give(2, sums.bias);
  });
  return y;
}

}  // namespace qkv
