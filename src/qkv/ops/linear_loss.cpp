// Linear layer and cross-entropy in one op: memory O(N D) and one chunk of logits, not O(N V); rows that do not count are left out.
#include "qkv/ops/linear_loss.h"

#include <algorithm>

#include "qkv/kernels/elementwise.h"
#include "qkv/kernels/gemm.h"
#include "qkv/kernels/loss.h"
#include "qkv/ops/reduction.h"
#include "qkv/ops/rows.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

// What both directions need; all but dloss is known at the forward pass.
struct Saved {
  Tensor x, weight, bias;  // (N, D), (V, D), (V) or absent
  Ids ids;                 // (N)
  Ids rows;                // (N): where these rows stand among all, absent if all of them count
  Tensor lse;              // (N)
  int64_t n, d, v;
  float smoothing;

  // Rows of a chunk: half a megabyte of logits, and at least 128 rows so that the weights are read seldom. Follows from V alone.
  int64_t chunk() const { return std::max<int64_t>(128, (1 << 17) / std::max<int64_t>(v, 1)); }

  // logits = x weight^T + bias for rows [begin, begin + rows); the bias is added while a block is in the cache.
  void logits(int64_t begin, int64_t rows, float* out) const {
    struct Context {
      const float* bias;
      float* out;
      int64_t v;
    } context{bias.ptr(), out, v};
    const auto add_bias = [](void* c, kernels::GemmBlock block) {
      const auto [b, y, width] = *static_cast<Context*>(c);
      for (int64_t r = block.row; r < block.row + block.rows; ++r) {
        float* at = y + r * width + block.column;
        kernels::add(at, b + block.column, at, block.columns);
      }
    };
    const kernels::GemmCall call{.transpose_a = Transpose::no, .transpose_b = Transpose::yes, .M = rows, .N = v, .K = d, .alpha = 1,
                                 .A = x.ptr() + begin * d, .lda = d, .B = weight.ptr(), .ldb = d, .beta = 0, .C = out, .ldc = v};
    if (bias.defined()) kernels::gemm_parallel(call, add_bias, &context);
    else kernels::gemm_parallel(call);
  }

  kernels::CrossEntropy rows_of(int64_t begin, const float* out) const { return {out, ids.ptr() + begin, smoothing, v}; }

  // body(first row, rows) for each chunk, in order.
  template <class Body>
  void each_chunk(Body&& body) const {
    for (int64_t begin = 0; begin < n; begin += chunk()) body(begin, std::min(chunk(), n - begin));
  }
};

void check_shapes(const Tensor& x, const Tensor& weight, const Tensor& bias, const Ids& targets) {
  check(weight.rank() == 2, "[linear_cross_entropy] the weight must have shape (V, D), got ", weight.shape());
  Shape expected = targets.shape();
  expected.push_back(weight.size(1));
  check(x.shape() == expected, "[linear_cross_entropy] x has shape ", x.shape(), ", targets and weight ask for ", expected);
  check(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "[linear_cross_entropy] bias has shape ", bias.shape(), " for ",
        weight.size(0), " classes");
}

// Rows `rows` of x (..., D), or of numbers (...).
Tensor taken(const Tensor& x, const Ids& rows, int64_t d) {
  Tensor out = Tensor::empty({rows.numel(), d});
  parallel_ranges(rows.numel(), 256, 0.2 * static_cast<double>(rows.numel() * d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::copy_n(x.ptr() + rows.ptr()[i] * d, d, out.mutable_ptr() + i * d);
  });
  return out;
}

// The way back: to (total, d) (+)= x at these rows, 0 at the others.
void put_back(const Tensor& x, const Ids& rows, int64_t d, float* to, int64_t total, bool add) {
  if (!add) std::fill_n(to, total * d, 0.f);
  parallel_ranges(rows.numel(), 256, 0.2 * static_cast<double>(rows.numel() * d), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* row = to + rows.ptr()[i] * d;
      kernels::add(row, x.ptr() + i * d, row, d);
    }
  });
}

// Which rows count, and their ids; rows absent if all do.
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

// The gradients that are wanted, each a place to add to.
struct Targets {
  GradTarget x{nullptr, false}, weight{nullptr, false}, bias{nullptr, false};

  Targets(Pull& p, const Saved& s) {
    if (p.wants(0) && !s.rows.defined()) x = p.into(0);
    if (p.wants(1)) weight = p.into(1);
    if (p.wants(2)) bias = p.into(2);
    if (bias.data && !bias.add) std::fill_n(bias.data, s.v, 0.f);
    if (s.n == 0 && weight.data && !weight.add) std::fill_n(weight.data, s.v * s.d, 0.f);
  }

  // dx (+)= g weight, dweight += g^T x, dbias += sum of the rows of g, g (rows, V) being the gradient of a chunk's logits
  void add_chunk(const Saved& s, int64_t begin, int64_t rows, const float* g) const {
    if (x.data)
      kernels::gemm_parallel({.transpose_a = Transpose::no, .transpose_b = Transpose::no, .M = rows, .N = s.d, .K = s.v, .alpha = 1,
                              .A = g, .lda = s.v, .B = s.weight.ptr(), .ldb = s.d, .beta = x.add ? 1.f : 0.f,
                              .C = x.data + begin * s.d, .ldc = s.d});
    if (weight.data)
      kernels::gemm_parallel({.transpose_a = Transpose::yes, .transpose_b = Transpose::no, .M = s.v, .N = s.d, .K = rows, .alpha = 1,
                              .A = g, .lda = s.v, .B = s.x.ptr() + begin * s.d, .ldb = s.d,
                              .beta = weight.add || begin > 0 ? 1.f : 0.f, .C = weight.data, .ldc = s.d});
    if (bias.data)
      parallel_ranges(s.v, 1024, 0.15 * static_cast<double>(rows * s.v), [&](int64_t first, int64_t last) {
        for (int64_t r = 0; r < rows; ++r) kernels::add(bias.data + first, g + r * s.v + first, bias.data + first, last - first);
      });
  }
};

}  // namespace

// loss = cross_entropy(z), z = x W^T + b.   g = dloss (e^(z - lse) - w), dx = g W, dW = g^T x, db = sum of rows of g
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Ids& targets,
                            const CrossEntropyOptions& options) {
  check_shapes(x, weight, bias, targets);
  const WantedIds wanted = wanted_ids("linear_cross_entropy", weight.size(0), targets, options);
  const Counted counted(wanted.ids, wanted.counted);
  const int64_t n = counted.ids.numel(), total = targets.numel(), d = weight.size(1);
  const Saved saved{counted.rows.defined() ? taken(x, counted.rows, d) : x.detached(), weight.detached(), bias.detached(), counted.ids,
                    counted.rows, Tensor::empty({n}), n, d, weight.size(0), options.label_smoothing};
  Tensor losses = Tensor::empty({n});
  {
    const Tensor z = Tensor::empty({std::min(saved.chunk(), saved.n), saved.v});
    saved.each_chunk([&](int64_t begin, int64_t rows) {
      saved.logits(begin, rows, z.mutable_ptr());
      Rows(rows, saved.v).each(0.6, [&](int64_t r, int64_t count) {
        kernels::cross_entropy(saved.rows_of(begin, z.ptr()), losses.mutable_ptr() + begin, saved.lse.mutable_ptr() + begin, r, r + count);
      });
    });
  }
  const bool one_each = options.reduction == Reduction::none;
  if (one_each) {
    const Tensor all = Tensor::empty(targets.shape());
    if (saved.rows.defined()) put_back(losses, saved.rows, 1, all.mutable_ptr(), total, false);
    losses = saved.rows.defined() ? all : losses.viewed(targets.shape());
  }
  Tensor y = reduced(losses, options.reduction, wanted.counted);
  record("linear_cross_entropy", y, {&x, &weight, &bias},
         [saved, total, one_each, factor = reduction_factor(options.reduction, wanted.counted)](Pull& p) {
           const Tensor dy = one_each && saved.rows.defined() ? taken(p.dy(), saved.rows, 1) : p.dy();
           const int64_t step = one_each ? 1 : 0;
           Targets sums(p, saved);
           const bool apart = p.wants(0) && saved.rows.defined();
           const Tensor dx = apart ? Tensor::empty(saved.x.shape()) : Tensor();
           if (apart) sums.x = {dx.mutable_ptr(), false};
           const Tensor z = Tensor::empty({std::min(saved.chunk(), saved.n), saved.v});
           saved.each_chunk([&](int64_t begin, int64_t rows) {
             saved.logits(begin, rows, z.mutable_ptr());
             Rows(rows, saved.v).each(0.6, [&](int64_t r, int64_t count) {
               kernels::cross_entropy_back(saved.rows_of(begin, z.ptr()), saved.lse.ptr() + begin, dy.ptr() + begin * step, step, factor,
                                           z.mutable_ptr(), r, r + count);
             });
             sums.add_chunk(saved, begin, rows, z.ptr());
           });
           if (!apart) return;
           const GradTarget to = p.into(0);
           put_back(dx, saved.rows, saved.d, to.data, total, to.add);
         });
  return y;
}

}  // namespace qkv
