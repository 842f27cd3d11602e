// Matrix products and their pullbacks. The product itself adds gradients in place: no temporaries.
#include "qkv/ops/matmul.h"

#include <algorithm>

#include "qkv/core/parallel.h"
#include "qkv/kernels/elementwise.h"
#include "qkv/kernels/gemm.h"
#include "qkv/kernels/linear.h"
#include "qkv/ops/feed_forward.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

using kernels::gemm_batched, kernels::gemm_parallel, kernels::GemmCall;

// A batched product: sizes of op(a) (M, K) and op(b) (K, N), and how many of each there are (1: shared by the batch).
struct Product {
  Transpose ta, tb;
  int64_t M, N, K, batch;
  int64_t stride_a, stride_b;  // 0: shared
  int64_t lda() const { return ta == Transpose::no ? K : M; }
  int64_t ldb() const { return tb == Transpose::no ? N : K; }
};

bool same_leading_axes(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && std::equal(a.begin(), a.end() - 2, b.begin());
}

Product product_of(const Shape& a, const Shape& b, Transpose ta, Transpose tb) {
  check(a.rank() >= 2 && b.rank() >= 2, "[matmul] expected two axes or more: ", a, " x ", b);
  const bool plain_a = ta == Transpose::no, plain_b = tb == Transpose::no;
  const int64_t M = plain_a ? a[-2] : a[-1], K = plain_a ? a[-1] : a[-2], N = plain_b ? b[-1] : b[-2];
  const char* note_a = plain_a ? " x " : " transposed x ";
  check(K == (plain_b ? b[-2] : b[-1]), "[matmul] inner sizes differ: ", a, note_a, b, plain_b ? "" : " transposed");
  const int64_t batch_a = a.product(0, a.rank() - 2), batch_b = b.product(0, b.rank() - 2);
  check(batch_a == 1 || batch_b == 1 || same_leading_axes(a, b), "[matmul] leading axes differ: ", a, " x ", b);
  Product p{ta, tb, M, N, K, batch_a == 1 ? batch_b : batch_a, batch_a == 1 ? 0 : M * K, batch_b == 1 ? 0 : K * N};
  if (plain_a && p.stride_b == 0) {  // all rows of the batch against one matrix: a single product
    p.M *= p.batch;
    p.batch = 1;
  }
  return p;
}

Shape output_shape(const Shape& a, const Shape& b, Transpose ta, Transpose tb) {
  const auto leading = [](const Shape& s) { return Shape(std::span<const int64_t>(s.begin(), s.end() - 2)); };
  Shape out = broadcast("matmul", leading(a), leading(b));
  out.push_back(ta == Transpose::no ? a[-2] : a[-1]);
  out.push_back(tb == Transpose::no ? b[-1] : b[-2]);
  return out;
}

// target (+)= the products of a batch; if stride_c is 0 they are summed in order.
void add_products(GemmCall call, const kernels::GemmBatch& batch, const GradTarget& target) {
  call.C = target.data;
  call.beta = target.add ? 1.f : 0.f;
  if (batch.stride_c != 0 || batch.count == 1) return gemm_batched(call, batch);
  if (batch.count == 0 && !target.add) std::fill_n(call.C, call.M * call.N, 0.f);
  for (int64_t i = 0; i < batch.count; ++i) {
    gemm_parallel(call);
    call.A += batch.stride_a;
    call.B += batch.stride_b;
    call.beta = 1;
  }
}

// da = dy op(b)^T, or its transpose op(b) dy^T
void pull_left(const Product& p, const float* b, const float* dy, const GradTarget& da) {
  const int64_t MN = p.M * p.N;
  if (p.ta == Transpose::no)
    add_products({.transpose_b = !p.tb,
                  .M = p.M,
                  .N = p.K,
                  .K = p.N,
                  .A = dy,
                  .lda = p.N,
                  .B = b,
                  .ldb = p.ldb(),
                  .C = nullptr,
                  .ldc = p.K},
                 {p.batch, MN, p.stride_b, p.stride_a}, da);
  else
    add_products({.transpose_a = p.tb,
                  .transpose_b = Transpose::yes,
                  .M = p.K,
                  .N = p.M,
                  .K = p.N,
                  .A = b,
                  .lda = p.ldb(),
                  .B = dy,
                  .ldb = p.N,
                  .C = nullptr,
                  .ldc = p.M},
                 {p.batch, p.stride_b, MN, p.stride_a}, da);
}

// db = op(a)^T dy, or its transpose dy^T op(a)
void pull_right(const Product& p, const float* a, const float* dy, const GradTarget& db) {
  const int64_t MN = p.M * p.N;
  if (p.tb == Transpose::no)
    add_products({.transpose_a = !p.ta,
                  .M = p.K,
                  .N = p.N,
                  .K = p.M,
                  .A = a,
                  .lda = p.lda(),
                  .B = dy,
                  .ldb = p.N,
                  .C = nullptr,
                  .ldc = p.N},
                 {p.batch, p.stride_a, MN, p.stride_b}, db);
  else
    add_products({.transpose_a = Transpose::yes,
                  .transpose_b = p.ta,
                  .M = p.N,
                  .N = p.K,
                  .K = p.M,
                  .A = dy,
                  .lda = p.N,
                  .B = a,
                  .ldb = p.lda(),
                  .C = nullptr,
                  .ldc = p.K},
                 {p.batch, MN, p.stride_a, p.stride_b}, db);
}

// Whether the derivative is computed from z; for the others, from y = activation(z).
bool keeps_input(Activation activation) {
  return activation == Activation::gelu || activation == Activation::gelu_tanh || activation == Activation::silu;
}

// dz = dy activation'(z), from what forward kept, z or y. Overwrites dy if nobody else holds it.
Tensor activation_back(Activation activation, const Tensor& kept, const Tensor& dy) {
  constexpr int64_t kBlock = 1 << 14;
  kernels::Binary* const kernel = activation == Activation::relu        ? kernels::relu_back_y
                                  : activation == Activation::gelu      ? kernels::gelu_back_x
                                  : activation == Activation::gelu_tanh ? kernels::gelu_tanh_back_x
                                  : activation == Activation::silu      ? kernels::silu_back_x
                                  : activation == Activation::tanh      ? kernels::tanh_back_y
                                                                        : kernels::sigmoid_back_y;
  Tensor dz = dy.sole_owner() ? dy : Tensor::empty(kept.shape());
  const double ns = (keeps_input(activation) ? 1.5 : 0.3) * static_cast<double>(dz.numel());
  parallel_ranges(dz.numel(), kBlock, ns, [&](int64_t begin, int64_t end) {
    kernel(kept.ptr() + begin, dy.ptr() + begin, dz.mutable_ptr() + begin, end - begin);
  });
  return dz;
}

// target (+)= the sum of the rows of x (rows, columns).
void add_column_sum(const float* x, int64_t rows, int64_t columns, const GradTarget& target) {
  constexpr int64_t kBlock = 64;
  parallel_ranges(columns, kBlock, 0.1 * static_cast<double>(rows * columns), [&](int64_t begin, int64_t end) {
    kernels::column_sum(x + begin, {rows, end - begin, columns}, target.data + begin, target.add);
  });
}

// What turns a finished block of x weight^T + bias into the output.
struct Epilogue {
  Activation activation;
  float* z;
  float* y;
  int64_t columns;
  static void run(void* self, kernels::GemmBlock block) {
    const Epilogue& e = *static_cast<const Epilogue*>(self);
    const int64_t at = block.row * e.columns + block.column;
    kernels::bias_activation(e.activation, e.z + at, e.y + at, nullptr, {block.rows, block.columns, e.columns});
  }
};

}  // namespace

// y = op(a) op(b).   d op(a) = dy op(b)^T, d op(b) = op(a)^T dy
Tensor matmul(const Tensor& a, const Tensor& b, Transpose transpose_a, Transpose transpose_b) {
  check_present("matmul", a, "a");
  check_present("matmul", b, "b");
  const Product p = product_of(a.shape(), b.shape(), transpose_a, transpose_b);
  Tensor y = Tensor::empty(output_shape(a.shape(), b.shape(), transpose_a, transpose_b));
  gemm_batched({.transpose_a = p.ta,
                .transpose_b = p.tb,
                .M = p.M,
                .N = p.N,
                .K = p.K,
                .A = a.ptr(),
                .lda = p.lda(),
                .B = b.ptr(),
                .ldb = p.ldb(),
                .C = y.mutable_ptr(),
                .ldc = p.N},
               {p.batch, p.stride_a, p.stride_b, p.M * p.N});
  record("matmul", y, {&a, &b}, [p, a = Tape::saved(a, {&b}), b = Tape::saved(b, {&a})](Pull& pull) {
    if (pull.wants(0)) pull_left(p, b.ptr(), pull.dy().ptr(), pull.into(0));
    if (pull.wants(1)) pull_right(p, a.ptr(), pull.dy().ptr(), pull.into(1));
  });
  return y;
}

// z = x W^T + b, y = f(z).   dz = dy f'(z), dx = dz W, dW = dz^T x, db = sum over rows of dz
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  check_present("linear", x, "x");
  check(weight.defined(), "[linear] the weight is absent: was the layer made without sizes?");
  check(weight.rank() == 2, "[linear] expected a weight of shape (out, in), got ", weight.shape());
  check(x.rank() >= 1 && x.size(-1) == weight.size(1), "[linear] inner sizes differ: ", x.shape(), " x ",
        weight.shape(), " transposed");
  check(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "[linear] the bias has shape ", bias.shape(),
        ", the weight ", weight.shape());
  const int64_t N = weight.size(0), K = weight.size(1), M = x.shape().product(0, x.rank() - 1);
  Shape shape = x.shape();
  shape.set(-1, N);
  Tensor y = Tensor::empty(shape);
  const bool tracked = Tape::tracks(x) || Tape::tracks(weight) || Tape::tracks(bias);
  Tensor z = tracked && keeps_input(activation) ? Tensor::empty(shape) : y;
  Epilogue epilogue{activation, z.mutable_ptr(), detail::writable(y), N};
  const bool bare = activation == Activation::none;
  gemm_parallel({.transpose_b = Transpose::yes,
                 .M = M,
                 .N = N,
                 .K = K,
                 .A = x.ptr(),
                 .lda = K,
                 .B = weight.ptr(),
                 .ldb = K,
                 .C = detail::writable(z),
                 .ldc = N,
                 .bias = bias.ptr()},
                bare ? nullptr : Epilogue::run, &epilogue);
  if (!tracked) return y;
  record("linear", y, {&x, &weight, &bias},
         [M, N, K, activation, x = Tape::saved(x, {&weight}), weight = Tape::saved(weight, {&x}),
          kept = activation == Activation::none ? Tensor() : z.detached()](Pull& p) {
           const Tensor dz = kept.defined() ? activation_back(activation, kept, p.dy()) : p.dy();
           if (p.wants(0)) {
             const GradTarget dx = p.into(0);
             gemm_parallel({.M = M,
                            .N = K,
                            .K = N,
                            .A = dz.ptr(),
                            .lda = N,
                            .B = weight.ptr(),
                            .ldb = K,
                            .beta = dx.add ? 1.f : 0.f,
                            .C = dx.data,
                            .ldc = K});
           }
           if (p.wants(1)) {
             const GradTarget dw = p.into(1);
             gemm_parallel({.transpose_a = Transpose::yes,
                            .M = N,
                            .N = K,
                            .K = M,
                            .A = dz.ptr(),
                            .lda = N,
                            .B = x.ptr(),
                            .ldb = K,
                            .beta = dw.add ? 1.f : 0.f,
                            .C = dw.data,
                            .ldc = K});
           }
           if (p.wants(2)) add_column_sum(dz.ptr(), M, N, p.into(2));
         });
  return y;
}

namespace {

struct Layer {
  const Tensor &weight, &bias;
  int64_t in() const { return weight.size(1); }
  int64_t out() const { return weight.size(0); }

  // y = activation(z), z = x weight^T + bias for some rows; z may be y.
  void run(const float* x, int64_t rows, float* z, float* y, Activation activation) const {
    Epilogue epilogue{activation, z, y, out()};
    const bool bare = activation == Activation::none;
    gemm_parallel({.transpose_b = Transpose::yes,
                   .M = rows,
                   .N = out(),
                   .K = in(),
                   .A = x,
                   .lda = in(),
                   .B = weight.ptr(),
                   .ldb = in(),
                   .C = z,
                   .ldc = out(),
                   .bias = bias.ptr()},
                  bare ? nullptr : Epilogue::run, &epilogue);
  }
  void pull_input(const float* dz, int64_t rows, float* dx, float beta) const {
    gemm_parallel({.M = rows,
                   .N = in(),
                   .K = out(),
                   .A = dz,
                   .lda = out(),
                   .B = weight.ptr(),
                   .ldb = in(),
                   .beta = beta,
                   .C = dx,
                   .ldc = in()});
  }
  void pull_weight(const float* dz, const float* x, int64_t rows, const GradTarget& dw) const {
    gemm_parallel({.transpose_a = Transpose::yes,
                   .M = out(),
                   .N = in(),
                   .K = rows,
                   .A = dz,
                   .lda = out(),
                   .B = x,
                   .ldb = in(),
                   .beta = dw.add ? 1.f : 0.f,
                   .C = dw.data,
                   .ldc = in()});
  }
};

// Rows per block: hidden values of at most 16 megabytes, but enough rows for efficient products.
int64_t block_rows(int64_t hidden) { return std::max<int64_t>(256, (1 << 22) / std::max<int64_t>(hidden, 1)); }

// A gradient that every block of rows adds to; absent if not wanted.
struct Sum {
  bool wanted;
  GradTarget target{};
  Sum(Pull& p, int input) : wanted(p.wants(input)) {
    if (wanted) target = p.into(input);
  }
};

}  // namespace

// z = x W1^T + b1, h = f(z), y = h W2^T + b2.   dW2 = dy^T h, dz = (dy W2) f'(z), dW1 = dz^T x, dx = dz W1, biases:
// sums of rows
Tensor feed_forward(const Tensor& x, const Tensor& w1, const Tensor& b1, const Tensor& w2, const Tensor& b2,
                    Activation activation) {
  check_present("feed_forward", x, "x");
  check_present("feed_forward", w1, "w1");
  check_present("feed_forward", w2, "w2");
  check(w1.rank() == 2 && w2.rank() == 2 && w2.size(1) == w1.size(0),
        "[feed_forward] the weights do not chain: ", w1.shape(), " and ", w2.shape());
  check(x.rank() >= 1 && x.size(-1) == w1.size(1), "[feed_forward] inner sizes differ: ", x.shape(), " x ", w1.shape(),
        " transposed");
  check((!b1.defined() || b1.shape() == Shape{w1.size(0)}) && (!b2.defined() || b2.shape() == Shape{w2.size(0)}),
        "[feed_forward] biases of shape ", b1.shape(), " and ", b2.shape(), " for weights ", w1.shape(), " and ",
        w2.shape());
  const int64_t M = x.shape().product(0, x.rank() - 1), K = w1.size(1), H = w1.size(0), N = w2.size(0),
                most = block_rows(H);
  Shape shape = x.shape();
  shape.set(-1, N);
  Tensor y = Tensor::empty(shape);
  {
    Tensor h = Tensor::empty({std::min(M, most), H});
    for (int64_t r = 0; r < M; r += most) {
      const int64_t rows = std::min(most, M - r);
      Layer{w1, b1}.run(x.ptr() + r * K, rows, detail::writable(h), h.mutable_ptr(), activation);
      Layer{w2, b2}.run(h.ptr(), rows, y.mutable_ptr() + r * N, y.mutable_ptr() + r * N, Activation::none);
    }
  }
  record(
      "feed_forward", y, {&x, &w1, &b1, &w2, &b2},
      [=, x = x.detached(), w1 = w1.detached(), b1 = b1.detached(), w2 = w2.detached(), b2 = b2.detached()](Pull& p) {
        const Layer first{w1, b1}, second{w2, b2};
        Sum dw2(p, 3), db2(p, 4), dw1(p, 1), db1(p, 2), dx(p, 0);  // in write order: inputs may be one tensor
        for (int64_t r = 0; r < M || r == 0; r += most) {
          const int64_t rows = std::min(most, M - r);
          const float *x_rows = x.ptr() + r * K, *dy = p.dy().ptr() + r * N;
          Tensor h = Tensor::empty({rows, H}), z = keeps_input(activation) ? Tensor::empty({rows, H}) : h;
          first.run(x_rows, rows, detail::writable(z), h.mutable_ptr(), activation);
          if (dw2.wanted) second.pull_weight(dy, h.ptr(), rows, dw2.target);
          if (db2.wanted) add_column_sum(dy, rows, N, db2.target);
          Tensor dh = Tensor::empty({rows, H});
          second.pull_input(dy, rows, dh.mutable_ptr(), 0);
          const Tensor dz = activation == Activation::none ? dh : activation_back(activation, z, dh);
          if (dw1.wanted) first.pull_weight(dz.ptr(), x_rows, rows, dw1.target);
          if (db1.wanted) add_column_sum(dz.ptr(), rows, H, db1.target);
          if (dx.wanted) first.pull_input(dz.ptr(), rows, dx.target.data + r * K, dx.target.add ? 1.f : 0.f);
          for (Sum* sum : {&dw1, &db1, &dw2, &db2}) sum->target.add = true;
        }
      });
  return y;
}

}  // namespace qkv
