// Element-wise ops: forward and pullback side by side.
#include "qkv/ops/elementwise.h"

#include <algorithm>

#include "qkv/core/parallel.h"
#include "qkv/kernels/elementwise.h"
#include "qkv/ops/broadcast.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 1 << 14;  // elements; fixed, so that nothing depends on the number of threads

// y = kernel(x); ns is the cost per element.
template <class Kernel>
Tensor mapped(const char* op, const Tensor& x, double ns, Kernel&& kernel) {
  check_present(op, x);
  Tensor y = Tensor::empty(x.shape());
  parallel_ranges(x.numel(), kBlock, ns * static_cast<double>(x.numel()),
                  [&](int64_t begin, int64_t end) { kernel(x.ptr() + begin, y.mutable_ptr() + begin, end - begin); });
  return y;
}

// dx = kernel(kept, dy), kept being the op's input or output.
Tensor pulled(kernels::Binary kernel, const Tensor& kept, const Tensor& dy, double ns) {
  Tensor dx = Tensor::empty(kept.shape());
  parallel_ranges(dx.numel(), kBlock, ns * static_cast<double>(dx.numel()), [&](int64_t begin, int64_t end) {
    kernel(kept.ptr() + begin, dy.ptr() + begin, dx.mutable_ptr() + begin, end - begin);
  });
  return dx;
}

constexpr double kCheap = 0.3, kCostly = 1.5;  // ns per element

}  // namespace

// y = a + b.   da = dy, db = dy, each summed over its broadcast axes
Tensor add(const Tensor& a, const Tensor& b) {
  Tensor y = broadcast_map("add", kernels::add, a, b);
  record("add", y, {&a, &b}, [sa = a.shape(), sb = b.shape()](Pull& p) {
    if (p.wants(0)) p.give(0, sum_to(p.dy(), sa));
    if (p.wants(1)) p.give(1, sum_to(p.dy(), sb));
  });
  return y;
}

// y = a - b.   da = dy, db = -dy
Tensor sub(const Tensor& a, const Tensor& b) {
  Tensor y = broadcast_map("sub", kernels::sub, a, b);
  record("sub", y, {&a, &b}, [sa = a.shape(), sb = b.shape()](Pull& p) {
    if (p.wants(0)) p.give(0, sum_to(p.dy(), sa));
    if (p.wants(1)) p.give(1, neg(sum_to(p.dy(), sb)));
  });
  return y;
}

// y = a b.   da = dy b, db = dy a
Tensor mul(const Tensor& a, const Tensor& b) {
  Tensor y = broadcast_map("mul", kernels::mul, a, b);
  record("mul", y, {&a, &b}, [a = Tape::saved(a, {&b}), b = Tape::saved(b, {&a})](Pull& p) {
    if (p.wants(0)) p.give(0, sum_to(mul(p.dy(), b), a.shape()));
    if (p.wants(1)) p.give(1, sum_to(mul(p.dy(), a), b.shape()));
  });
  return y;
}

// y = a / b.   da = dy / b, db = -dy y / b
Tensor div(const Tensor& a, const Tensor& b) {
  Tensor y = broadcast_map("div", kernels::div, a, b);
  record("div", y, {&a, &b}, [sa = a.shape(), b = b, y](Pull& p) {
    const Tensor over = div(p.dy(), b);
    if (p.wants(0)) p.give(0, sum_to(over, sa));
    if (p.wants(1)) p.give(1, neg(sum_to(mul(over, y), b.shape())));
  });
  return y;
}

// y = x c.   dx = dy c
Tensor scale(const Tensor& x, float factor) {
  Tensor y =
      mapped("scale", x, kCheap, [=](const float* in, float* out, int64_t n) { kernels::scale(in, factor, out, n); });
  record("scale", y, {&x}, [factor](Pull& p) { p.give(0, scale(p.dy(), factor)); });
  return y;
}

// y = x + c.   dx = dy
Tensor shift(const Tensor& x, float term) {
  Tensor y =
      mapped("shift", x, kCheap, [=](const float* in, float* out, int64_t n) { kernels::shift(in, term, out, n); });
  record("shift", y, {&x}, [](Pull& p) { p.give(0, p.dy()); });
  return y;
}

// y = -x.   dx = -dy
Tensor neg(const Tensor& x) {
  Tensor y = mapped("neg", x, kCheap, kernels::neg);
  record("neg", y, {&x}, [](Pull& p) { p.give(0, neg(p.dy())); });
  return y;
}

// y = |x|.   dx = dy sign(x)
Tensor abs(const Tensor& x) {
  Tensor y = mapped("abs", x, kCheap, kernels::abs);
  record("abs", y, {&x}, [x = x](Pull& p) { p.give(0, pulled(kernels::abs_back_x, x, p.dy(), kCheap)); });
  return y;
}

// y = x^c.   dx = dy c x^(c - 1)
Tensor pow(const Tensor& x, float exponent) {
  Tensor y = mapped("pow", x, 20, [=](const float* in, float* out, int64_t n) { kernels::pow(in, exponent, out, n); });
  record("pow", y, {&x}, [x = x.detached(), exponent](Pull& p) {
    p.give(0, exponent == 0 ? zeros(x.shape()) : mul(p.dy(), scale(pow(x, exponent - 1), exponent)));
  });
  return y;
}

// y = e^x.   dx = dy y
Tensor exp(const Tensor& x) {
  Tensor y = mapped("exp", x, kCostly, kernels::exp);
  record("exp", y, {&x}, [y](Pull& p) { p.give(0, mul(p.dy(), y)); });
  return y;
}

// y = ln x.   dx = dy / x
Tensor log(const Tensor& x) {
  Tensor y = mapped("log", x, kCostly, kernels::log);
  record("log", y, {&x}, [x = x](Pull& p) { p.give(0, div(p.dy(), x)); });
  return y;
}

// y = sqrt x.   dx = dy / (2 y)
Tensor sqrt(const Tensor& x) {
  Tensor y = mapped("sqrt", x, kCheap, kernels::sqrt);
  record("sqrt", y, {&x}, [y](Pull& p) { p.give(0, pulled(kernels::sqrt_back_y, y, p.dy(), kCheap)); });
  return y;
}

// y = sin x.   dx = dy cos x
Tensor sin(const Tensor& x) {
  Tensor y = mapped("sin", x, kCostly, kernels::sin);
  record("sin", y, {&x}, [x = x](Pull& p) { p.give(0, mul(p.dy(), cos(x))); });
  return y;
}

// y = cos x.   dx = -dy sin x
Tensor cos(const Tensor& x) {
  Tensor y = mapped("cos", x, kCostly, kernels::cos);
  record("cos", y, {&x}, [x = x](Pull& p) { p.give(0, neg(mul(p.dy(), sin(x)))); });
  return y;
}

// y = tanh x.   dx = dy (1 - y^2)
Tensor tanh(const Tensor& x) {
  Tensor y = mapped("tanh", x, kCostly, kernels::tanh);
  record("tanh", y, {&x}, [y](Pull& p) { p.give(0, pulled(kernels::tanh_back_y, y, p.dy(), kCheap)); });
  return y;
}

// y = 1 / (1 + e^-x).   dx = dy y (1 - y)
Tensor sigmoid(const Tensor& x) {
  Tensor y = mapped("sigmoid", x, kCostly, kernels::sigmoid);
  record("sigmoid", y, {&x}, [y](Pull& p) { p.give(0, pulled(kernels::sigmoid_back_y, y, p.dy(), kCheap)); });
  return y;
}

// y = max(x, 0).   dx = dy where y > 0
Tensor relu(const Tensor& x) {
  Tensor y = mapped("relu", x, kCheap, kernels::relu);
  record("relu", y, {&x}, [y](Pull& p) { p.give(0, pulled(kernels::relu_back_y, y, p.dy(), kCheap)); });
  return y;
}

// y = x Phi(x).   dx = dy (Phi(x) + x phi(x))
Tensor gelu(const Tensor& x) {
  Tensor y = mapped("gelu", x, kCostly, kernels::gelu);
  record("gelu", y, {&x}, [x = x](Pull& p) { p.give(0, pulled(kernels::gelu_back_x, x, p.dy(), kCostly)); });
  return y;
}

// y = x s, s = (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3).   dx = dy (s + x s (1 - s) 2 du/dx)
Tensor gelu_tanh(const Tensor& x) {
  Tensor y = mapped("gelu_tanh", x, kCostly, kernels::gelu_tanh);
  record("gelu_tanh", y, {&x}, [x = x](Pull& p) { p.give(0, pulled(kernels::gelu_tanh_back_x, x, p.dy(), kCostly)); });
  return y;
}

// y = x s, s = 1 / (1 + e^-x).   dx = dy s (1 + x (1 - s))
Tensor silu(const Tensor& x) {
  Tensor y = mapped("silu", x, kCostly, kernels::silu);
  record("silu", y, {&x}, [x = x](Pull& p) { p.give(0, pulled(kernels::silu_back_x, x, p.dy(), kCostly)); });
  return y;
}

// y = min(max(x, low), high).   dx = dy where low <= x <= high, else 0
Tensor clamp(const Tensor& x, float low, float high) {
  check(low <= high, "[clamp] the limits are not in order: ", low, " and ", high);
  Tensor y = mapped("clamp", x, kCheap,
                    [=](const float* in, float* out, int64_t n) { kernels::clamp(in, low, high, out, n); });
  record("clamp", y, {&x}, [x = x, low, high](Pull& p) {
    Tensor dx = Tensor::empty(x.shape());
    kernels::clamp_back_x(x.ptr(), p.dy().ptr(), low, high, dx.mutable_ptr(), dx.numel());
    p.give(0, std::move(dx));
  });
  return y;
}

namespace {

Tensor& assigned(const char* op, Tensor& a, Tensor value) {
  if (a.is_parameter())
    throw Error(text("[", op, "] a parameter of shape ", a.shape(), " would become a constant"),
                verbatim("optimizers write through mutable_ptr(); for another parameter: w = parameter(value)"));
  return a = std::move(value);
}

}  // namespace

Tensor& operator+=(Tensor& a, const Tensor& b) { return assigned("+=", a, a + b); }
Tensor& operator-=(Tensor& a, const Tensor& b) { return assigned("-=", a, a - b); }
Tensor& operator*=(Tensor& a, const Tensor& b) { return assigned("*=", a, a * b); }
Tensor& operator/=(Tensor& a, const Tensor& b) { return assigned("/=", a, a / b); }
Tensor& operator+=(Tensor& a, float b) { return assigned("+=", a, a + b); }
Tensor& operator-=(Tensor& a, float b) { return assigned("-=", a, a - b); }
Tensor& operator*=(Tensor& a, float b) { return assigned("*=", a, a * b); }
Tensor& operator/=(Tensor& a, float b) { return assigned("/=", a, a / b); }

}  // namespace qkv
