// One-dimensional convolution.
#include "qkv/ops/conv.h"

#include "qkv/kernels/conv.h"
#include "qkv/kernels/reduce.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kMost = int64_t{1} << 30;  // keeps every product of sizes and steps inside int64_t

kernels::Conv1d checked_sizes(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& options) {
  const auto& [padding, stride, dilation] = options;
  check_present("conv1d", x, "x");
  check_present("conv1d", weight, "weight");
  check(x.rank() == 3 && weight.rank() == 3, "[conv1d] expected (B, Cin, L) and (Cout, Cin, K), got ", x.shape(),
        " and ", weight.shape());
  check(x.size(1) == weight.size(1), "[conv1d] input channels differ: ", x.shape(), " and ", weight.shape());
  check(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "[conv1d] the bias ", bias.shape(),
        " does not fit the weight ", weight.shape());
  check(padding >= 0 && padding <= kMost, "[conv1d] padding must be 0 to ", kMost, ", got ", padding);
  check(stride >= 1 && stride <= kMost, "[conv1d] stride must be 1 to ", kMost, ", got ", stride);
  check(dilation >= 1 && dilation <= kMost, "[conv1d] dilation must be 1 to ", kMost, ", got ", dilation);
  const int64_t taps = weight.size(2);
  check(taps >= 1 && taps <= kMost, "[conv1d] the kernel must have 1 to ", kMost, " taps: ", weight.shape());
  const int64_t reach = (taps - 1) * dilation + 1, padded = x.size(2) + 2 * padding;
  check(padded >= reach, "[conv1d] the kernel spans ", reach, " positions, the padded input has ", padded, ": ",
        x.shape(), " and ", weight.shape());
  return {x.size(0), x.size(1), weight.size(0), x.size(2), taps, (padded - reach) / stride + 1,
          padding,   stride,    dilation};
}

}  // namespace

// y = bias + weight * x.   dx = dy correlated with the flipped weight,  dweight = dy * x,  dbias = sum over b and l of
// dy
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv1dOptions& options) {
  const kernels::Conv1d c = checked_sizes(x, weight, bias, options);
  Tensor y = Tensor::empty({c.batch, c.out, c.out_length});
  kernels::conv1d(c, x.ptr(), weight.ptr(), bias.ptr(), y.mutable_ptr());
  record("conv1d", y, {&x, &weight, &bias},
         [c, x = Tape::saved(x, {&weight}), weight = Tape::saved(weight, {&x})](Pull& pull) {
           const Tensor& dy = pull.dy();
           if (pull.wants(0)) {
             const auto [dx, add] = pull.into(0);
             kernels::conv1d_back_x(c, weight.ptr(), dy.ptr(), dx, add);
           }
           if (pull.wants(1)) {
             const auto [dweight, add] = pull.into(1);
             kernels::conv1d_back_weight(c, x.ptr(), dy.ptr(), dweight, add);
           }
           if (pull.wants(2)) {
             Tensor rows = Tensor::empty({c.batch, c.out});
             Tensor dbias = Tensor::empty({c.out});
             kernels::sum(dy.ptr(), rows.mutable_ptr(), {c.batch * c.out, c.out_length, 1}, 1);
             kernels::sum(rows.ptr(), dbias.mutable_ptr(), {1, c.batch, c.out}, 1);
             pull.give(2, std::move(dbias));
           }
         });
  return y;
}

}  // namespace qkv
