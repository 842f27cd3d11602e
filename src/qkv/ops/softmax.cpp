// Softmax ops: forward and pullback side by side.
#include "qkv/ops/softmax.h"

#include "qkv/kernels/softmax.h"
#include "qkv/ops/row_blocks.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {

// y = e^x / sum e^x.   dx = y (dy - sum(y dy))
Tensor softmax(const Tensor& x) {
  check_present("softmax", x);
  const Rows rows("softmax", x.shape());
  Tensor y = Tensor::empty(x.shape());
  rows.each(0.8, [&](int64_t r, int64_t n) {
    kernels::softmax(x.ptr() + r * rows.width, y.mutable_ptr() + r * rows.width, n, rows.width);
  });
  record("softmax", y, {&x}, [y, rows](Pull& p) {
    const Tensor& dy = p.dy();
    Tensor dx = Tensor::empty(y.shape());
    rows.each(0.4, [&](int64_t r, int64_t n) {
      const int64_t at = r * rows.width;
      kernels::softmax_back(y.ptr() + at, dy.ptr() + at, dx.mutable_ptr() + at, n, rows.width);
    });
    p.give(0, std::move(dx));
  });
  return y;
}

// y = x - log sum e^x.   dx = dy - e^y sum(dy)
Tensor log_softmax(const Tensor& x) {
  check_present("log_softmax", x);
  const Rows rows("log_softmax", x.shape());
  Tensor y = Tensor::empty(x.shape());
  rows.each(0.8, [&](int64_t r, int64_t n) {
    kernels::log_softmax(x.ptr() + r * rows.width, y.mutable_ptr() + r * rows.width, n, rows.width);
  });
  record("log_softmax", y, {&x}, [y, rows](Pull& p) {
    const Tensor& dy = p.dy();
    Tensor dx = Tensor::empty(y.shape());
    rows.each(0.6, [&](int64_t r, int64_t n) {
      const int64_t at = r * rows.width;
      kernels::log_softmax_back(y.ptr() + at, dy.ptr() + at, dx.mutable_ptr() + at, n, rows.width);
    });
    p.give(0, std::move(dx));
  });
  return y;
}

}  // namespace qkv
