// A Tensor, an op of the consumer's own with its derivative, and a Tape, from the installed headers alone.
#include <qkv/core/check.h>
#include <qkv/tensor/tape.h>
#include <qkv/tensor/tensor.h>

#include <cstdio>

using qkv::Pull;
using qkv::Tensor;

// y = x^2 element by element.   dx = 2 x dy
static Tensor squared(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  for (int64_t i = 0; i < x.numel(); ++i) y.mutable_ptr()[i] = x.ptr()[i] * x.ptr()[i];
  qkv::record("squared", y, {&x}, [x](Pull& p) {
    Tensor dx = Tensor::empty(x.shape());
    for (int64_t i = 0; i < x.numel(); ++i) dx.mutable_ptr()[i] = 2 * x.ptr()[i] * p.dy().ptr()[i];
    p.give(0, dx);
  });
  return y;
}

int main() {
  Tensor w = qkv::parameter(Tensor({2, 2}, {1, 2, 3, 4}));
  qkv::Tape tape;
  Tensor y = squared(squared(w));
  tape.backward(y, qkv::ones(y.shape()));
  std::printf("shape %s\n", y.shape().str().c_str());
  std::printf("y ");
  for (float v : y.data()) std::printf(" %g", v);
  std::printf("\ndw");
  const Tensor dw = tape.grad(w);
  for (float v : dw.data()) std::printf(" %g", v);
  std::printf("\n");
  try {
    Tensor({3}, {1, 2});
  } catch (const qkv::Error& e) {
    std::printf("%s\n", e.what());
  }
}
