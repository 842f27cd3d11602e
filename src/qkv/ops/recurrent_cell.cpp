// A recurrent layer, step by step: products by kernels::gemm, gates by kernels/recurrent. Input products are computed
// for all steps at once where possible, weight gradients in one product over all steps.
#include "qkv/ops/recurrent_cell.h"

#include <array>

#include "qkv/kernels/elementwise.h"
#include "qkv/kernels/gemm.h"
#include "qkv/kernels/linear.h"
#include "qkv/kernels/rearrange.h"
#include "qkv/kernels/recurrent.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace {

using kernels::gemm;
using kernels::gemm_parallel;

// `count` gates starting at `gate`, in the order of the weights, occupy as many slots starting at `slot`.
struct Segment {
  int64_t slot, gate, count;
};
struct Segments {
  std::array<Segment, 2> list;
  int size;
  const Segment* begin() const { return list.data(); }
  const Segment* end() const { return list.data() + size; }
};

// The segments of the input products, and of the recurrent products that multiply h.
Segments input_segments(CellKind kind) {
  if (kind == CellKind::lstm) return {{{{0, 0, 4}}}, 1};
  return {{{{1, 0, 2}, {0, 2, 1}}}, 2};
}
Segment recurrent_segment(CellKind kind) {
  if (kind == CellKind::lstm) return {0, 0, 4};
  return {1, 0, kind == CellKind::gru ? 3 : 2};
}

// x (rows, columns) -> (columns, rows)
Tensor transposed(const float* x, int64_t rows, int64_t columns) {
  Tensor y = Tensor::empty({columns, rows});
  const std::array<int64_t, 2> sizes{columns, rows}, strides{1, columns};
  if (y.numel() > 0) kernels::permute(x, y.mutable_ptr(), sizes, strides);
  return y;
}

// The rows of the weights in slot order.
Tensor by_slots(CellKind kind, const Tensor& weight, int64_t width) {
  if (kind == CellKind::lstm) return weight.detached();
  Tensor out = Tensor::empty(weight.shape());
  const int64_t gate = width * weight.size(1);
  for (const Segment& s : input_segments(kind))
    std::copy_n(weight.ptr() + s.gate * gate, s.count * gate, out.mutable_ptr() + s.slot * gate);
  return out;
}

// The biases as kernels/recurrent.h wants them.
Tensor slot_biases(CellKind kind, const CellWeights& w) {
  const int64_t H = w.width();
  const float *in = w.bias_input.ptr(), *rec = w.bias_recurrent.ptr();
  Tensor bias = Tensor::empty({4 * H});
  float* to = bias.mutable_ptr();
  for (const Segment& s : input_segments(kind))
    kernels::add(in + s.gate * H, rec + s.gate * H, to + s.slot * H, s.count * H);
  if (kind == CellKind::gru) {
    std::copy_n(in + 2 * H, H, to);
    std::copy_n(rec + 2 * H, H, to + 3 * H);
  }
  return bias;
}

// to (columns) (+)= the sum of the rows of x.
void add_column_sums(const float* x, int64_t rows, int64_t columns, int64_t stride, float* to, bool add) {
  constexpr int64_t kBlock = 64;
  parallel_ranges(columns, kBlock, 0.1 * static_cast<double>(rows * columns), [&](int64_t begin, int64_t end) {
    kernels::column_sum(x + begin, {rows, end - begin, stride}, to + begin, add);
  });
}

}  // namespace

void check_cell(const char* op, CellKind kind, const CellWeights& w, int64_t inputs) {
  check_present(op, w.input, "input weights");
  check_present(op, w.recurrent, "recurrent weights");
  check_present(op, w.bias_input, "input bias");
  check_present(op, w.bias_recurrent, "recurrent bias");
  check(w.recurrent.rank() == 2 && w.recurrent.size(1) > 0, "[", op,
        "] recurrent weights must be (gates x units, units), got ", w.recurrent.shape());
  const int64_t H = w.width(), rows = cell_gates(kind) * H;
  check(w.recurrent.size(0) == rows, "[", op, "] recurrent weights have shape ", w.recurrent.shape(), ", expected ",
        Shape{rows, H});
  check(w.input.shape() == Shape({rows, inputs}), "[", op, "] input weights have shape ", w.input.shape(),
        ", expected ", Shape{rows, inputs});
  for (const Tensor* bias : {&w.bias_input, &w.bias_recurrent})
    check(bias->shape() == Shape{rows}, "[", op, "] a bias has shape ", bias->shape(), ", expected ", Shape{rows});
}

double cell_cost(CellKind kind, int64_t width, int64_t steps) {
  const double gates = static_cast<double>(cell_gates(kind) * width);
  return static_cast<double>(steps) * gates * (static_cast<double>(width) / 30 + 1);
}

CellForward::CellForward(CellKind kind, const CellWeights& w, const Steps& steps, const Tensor& h, const Tensor& c)
    : steps_(steps), weights_(w) {
  const int64_t H = w.width(), B = steps.batch(), N = steps.total();
  kept_ = {kind, H, Tensor::empty({N, kernels::cell_slots(kind), H}), Tensor::empty({N, H}), {}};
  const Segment rec = recurrent_segment(kind);
  if (steps.length() > 1) {  // read in every step, so stored in the order the products need
    recurrent_t_ = transposed(w.recurrent.ptr(), rec.count * H, H);
    if (kind == CellKind::gru_before) recurrent_n_t_ = transposed(w.recurrent.ptr() + 2 * H * H, H, H);
  }
  bias_ = slot_biases(kind, w);
  h_ = Tensor::empty({N, H});
  products_ = Tensor::empty({B, rec.count * H});
  const int64_t first = steps.length() > 0 ? steps.active(0) : 0;
  // Rows with at least one step start in h_before; the others end where they start.
  h_last_ = steps.sorted(h, H);
  std::copy_n(h_last_.ptr(), first * H, kept_.h_before.mutable_ptr());
  if (kind != CellKind::lstm) return;
  kept_.c_before = Tensor::empty({N, H});
  c_new_ = Tensor::empty({B, H});
  c_last_ = steps.sorted(c, H);
  std::copy_n(c_last_.ptr(), first * H, kept_.c_before.mutable_ptr());
}

void CellForward::set_inputs(const float* x, int64_t first, int64_t count) const {
  const int64_t H = kept_.width, D = weights_.input.size(1);
  for (const Segment& s : input_segments(kept_.kind))
    gemm_parallel({.transpose_b = Transpose::yes,
                   .M = steps_.total(),
                   .N = s.count * H,
                   .K = count,
                   .A = x,
                   .lda = count,
                   .B = weights_.input.ptr() + s.gate * H * D + first,
                   .ldb = D,
                   .C = detail::writable(kept_.gates) + s.slot * H,
                   .ldc = kept_.stride()});
}

void CellForward::prepare_add_inputs() {
  input_t_ = transposed(by_slots(kept_.kind, weights_.input, kept_.width).ptr(), weights_.input.size(0),
                        weights_.input.size(1));
}

void CellForward::add_inputs(const float* x, int64_t first, int64_t count, int64_t row, int64_t rows, bool add) const {
  const int64_t columns = cell_gates(kept_.kind) * kept_.width;
  gemm({.M = rows,
        .N = columns,
        .K = count,
        .A = x,
        .lda = count,
        .B = input_t_.ptr() + first * columns,
        .ldb = columns,
        .beta = add ? 1.f : 0.f,
        .C = detail::writable(kept_.gates) + row * kept_.stride(),
        .ldc = kept_.stride()});
}

void CellForward::recur(const float* x, int64_t stride, int64_t rows, int64_t gate, int64_t count, float* to) const {
  const int64_t H = kept_.width, columns = count * H;
  const Tensor& t = gate == 0 ? recurrent_t_ : recurrent_n_t_;
  if (t.defined())
    gemm({.M = rows,
          .N = columns,
          .K = H,
          .A = x,
          .lda = stride,
          .B = t.ptr(),
          .ldb = columns,
          .C = to,
          .ldc = columns});
  else
    gemm({.transpose_b = Transpose::yes,
          .M = rows,
          .N = columns,
          .K = H,
          .A = x,
          .lda = stride,
          .B = weights_.recurrent.ptr() + gate * H * H,
          .ldb = H,
          .C = to,
          .ldc = columns});
}

void CellForward::step(int64_t s, int64_t begin, int64_t end) const {
  const int64_t H = kept_.width, n = std::min(end, steps_.active(s)) - begin, at = steps_.start(s) + begin;
  if (n <= 0) return;
  const float* before = kept_.h_before.ptr() + at * H;
  const Segment rec = recurrent_segment(kept_.kind);
  float* products = detail::writable(products_) + begin * rec.count * H;
  recur(before, H, n, rec.gate, rec.count, products);
  kernels::CellStep step{.rows = n,
                         .width = H,
                         .kept = detail::writable(kept_.gates) + at * kept_.stride(),
                         .recurrent = products,
                         .bias = bias_.ptr(),
                         .h_before = before,
                         .c_before = nullptr,
                         .h = detail::writable(h_) + at * H,
                         .c = nullptr};
  if (kept_.kind == CellKind::lstm) {
    step.c_before = kept_.c_before.ptr() + at * H;
    step.c = detail::writable(c_new_) + begin * H;
    kernels::lstm_step(step);
  } else if (kept_.kind == CellKind::gru) {
    kernels::gru_step(step);
  } else {
    kernels::gru_before_gates(step);
    recur(step.kept + 3 * H, kept_.stride(), n, 2, 1, products);
    kernels::gru_before_step(step);
  }
  // The first `continuing` rows have a next step; for the others this was the last.
  const int64_t continuing = std::clamp<int64_t>((s + 1 < steps_.length() ? steps_.active(s + 1) : 0) - begin, 0, n);
  const auto pass_on = [&](const float* now, const Tensor& next, const Tensor& last) {
    std::copy_n(now, continuing * H, detail::writable(next) + (steps_.start(s + 1) + begin) * H);
    std::copy_n(now + continuing * H, (n - continuing) * H, detail::writable(last) + (begin + continuing) * H);
  };
  pass_on(step.h, kept_.h_before, h_last_);
  if (step.c) pass_on(step.c, kept_.c_before, c_last_);
}

CellBackward::CellBackward(const CellKept& kept, const CellWeights& weights, const Steps& steps, const Tensor& dh,
                           const Tensor& dc)
    : steps_(steps),
      kept_(kept),
      weights_(weights),
      input_(by_slots(kept.kind, weights.input, kept.width)),
      dh_(steps.sorted(dh, kept.width)) {
  if (kept.kind == CellKind::lstm) dc_ = steps.sorted(dc, kept.width);
  if (kept.kind == CellKind::gru_before) dreset_ = Tensor::empty({steps.batch(), kept.width});
}

void CellBackward::step(int64_t s, int64_t begin, int64_t end) const {
  const int64_t H = kept_.width, n = std::min(end, steps_.active(s)) - begin, at = steps_.start(s) + begin;
  if (n <= 0) return;
  kernels::CellBack back{n,
                         H,
                         detail::writable(kept_.gates) + at * kept_.stride(),
                         kept_.h_before.ptr() + at * H,
                         nullptr,
                         detail::writable(dh_) + begin * H,
                         nullptr};
  if (kept_.kind == CellKind::lstm) {
    back.c_before = kept_.c_before.ptr() + at * H;
    back.dc = detail::writable(dc_) + begin * H;
    kernels::lstm_back(back);
  } else if (kept_.kind == CellKind::gru) {
    kernels::gru_back(back);
  } else {
    kernels::gru_before_back(back);
    float* dreset = detail::writable(dreset_) + begin * H;
    gemm({.M = n,
          .N = H,
          .K = H,
          .A = back.kept,
          .lda = kept_.stride(),
          .B = weights_.recurrent.ptr() + 2 * H * H,
          .ldb = H,
          .C = dreset,
          .ldc = H});
    back.dreset = dreset;
    kernels::gru_before_reset_back(back);
  }
  // dh += d(U h) U
  const Segment rec = recurrent_segment(kept_.kind);
  gemm({.M = n,
        .N = H,
        .K = rec.count * H,
        .A = back.kept + rec.slot * H,
        .lda = kept_.stride(),
        .B = weights_.recurrent.ptr(),
        .ldb = H,
        .beta = 1,
        .C = back.dh,
        .ldc = H});
}

void CellBackward::input_gradient(float* to, int64_t first, int64_t count, int64_t row, int64_t rows, bool add) const {
  gemm({.M = rows,
        .N = count,
        .K = input_.size(0),
        .A = kept_.gates.ptr() + row * kept_.stride(),
        .lda = kept_.stride(),
        .B = input_.ptr() + first,
        .ldb = input_.size(1),
        .beta = add ? 1.f : 0.f,
        .C = to,
        .ldc = count});
}

void CellBackward::all_input_gradients(float* to, int64_t first, int64_t count) const {
  gemm_parallel({.M = steps_.total(),
                 .N = count,
                 .K = input_.size(0),
                 .A = kept_.gates.ptr(),
                 .lda = kept_.stride(),
                 .B = input_.ptr() + first,
                 .ldb = input_.size(1),
                 .C = to,
                 .ldc = count});
}

// dW = d(W x)^T x
void CellBackward::pull_input(const GradTarget& to, const float* x, int64_t first, int64_t count) const {
  const int64_t H = kept_.width, D = input_.size(1);
  for (const Segment& s : input_segments(kept_.kind))
    gemm_parallel({.transpose_a = Transpose::yes,
                   .M = s.count * H,
                   .N = count,
                   .K = steps_.total(),
                   .A = kept_.gates.ptr() + s.slot * H,
                   .lda = kept_.stride(),
                   .B = x,
                   .ldb = count,
                   .beta = to.add ? 1.f : 0.f,
                   .C = to.data + s.gate * H * D + first,
                   .ldc = D});
}

// dU = d(U h)^T h; the biases get the row sums of both
void CellBackward::pull_rest(Pull& pull, int first) const {
  const int64_t H = kept_.width, N = steps_.total(), stride = kept_.stride();
  const float* gates = kept_.gates.ptr();
  const Segment rec = recurrent_segment(kept_.kind);
  const bool before = kept_.kind == CellKind::gru_before;
  if (pull.wants(first)) {
    const GradTarget to = pull.into(first);
    const float beta = to.add ? 1.f : 0.f;
    gemm_parallel({.transpose_a = Transpose::yes,
                   .M = rec.count * H,
                   .N = H,
                   .K = N,
                   .A = gates + rec.slot * H,
                   .lda = stride,
                   .B = kept_.h_before.ptr(),
                   .ldb = H,
                   .beta = beta,
                   .C = to.data,
                   .ldc = H});
    if (before)
      gemm_parallel({.transpose_a = Transpose::yes,
                     .M = H,
                     .N = H,
                     .K = N,
                     .A = gates,
                     .lda = stride,
                     .B = gates + 3 * H,
                     .ldb = stride,
                     .beta = beta,
                     .C = to.data + 2 * H * H,
                     .ldc = H});
  }
  if (pull.wants(first + 1)) {
    const GradTarget to = pull.into(first + 1);
    for (const Segment& s : input_segments(kept_.kind))
      add_column_sums(gates + s.slot * H, N, s.count * H, stride, to.data + s.gate * H, to.add);
  }
  if (pull.wants(first + 2)) {
    const GradTarget to = pull.into(first + 2);
    add_column_sums(gates + rec.slot * H, N, rec.count * H, stride, to.data, to.add);
    if (before) add_column_sums(gates, N, H, stride, to.data + 2 * H, to.add);
  }
}

}  // namespace qkv
