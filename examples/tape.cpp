// An op is a function that computes its value and records, beside it, how a gradient flows back.
// Here: the squared distance to a target, and ten steps of gradient descent on it.
#include <cstdio>

#include "qkv/core/check.h"
#include "qkv/tensor/tape.h"
#include "qkv/tensor/tensor.h"

using qkv::Tensor;

// y = sum_i (x_i - t_i)^2.   dx_i = 2 (x_i - t_i) dy
Tensor squared_distance(const Tensor& x, const Tensor& t) {
  qkv::check(x.shape() == t.shape(), "[squared_distance] shapes differ: ", x.shape(), " and ", t.shape());
  float sum = 0;
  for (int64_t i = 0; i < x.numel(); ++i) sum += (x.ptr()[i] - t.ptr()[i]) * (x.ptr()[i] - t.ptr()[i]);
  Tensor y = qkv::scalar(sum);
  qkv::record("squared_distance", y, {&x}, [x, t](qkv::Pull& pull) {  // what the closure captures is what is saved
    Tensor dx = Tensor::empty(x.shape());
    for (int64_t i = 0; i < x.numel(); ++i) dx.mutable_ptr()[i] = 2 * (x.ptr()[i] - t.ptr()[i]) * pull.dy().item();
    pull.give(0, dx);
  });
  return y;
}

int main() {
  Tensor w = qkv::parameter(qkv::zeros({2}));
  const Tensor target({2}, {3, -1});
  for (int step = 0; step < 10; ++step) {
    qkv::Tape tape;  // recording is a scope
    Tensor loss = squared_distance(w, target);
    tape.backward(loss);
    Tensor dw = tape.grad(w);  // gradients belong to the tape
    for (int64_t i = 0; i < w.numel(); ++i) w.mutable_ptr()[i] -= 0.25f * dw.ptr()[i];
    std::printf("step %d  loss %.4f  w (%.4f, %.4f)\n", step, loss.item(), w.ptr()[0], w.ptr()[1]);
  }
  try {
    squared_distance(w, qkv::zeros({3}));
  } catch (const qkv::Error& error) {
    std::printf("%s\n", error.what());
  }
}
