// Batch normalisation.
#include "qkv/ops/batch_norm.h"

#include "qkv/kernels/batch_norm.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {

// y = gamma xhat + beta, xhat = (x - mean) s, s = 1 / sqrt(variance + epsilon)
// dgamma = sum dy xhat,  dbeta = sum dy,  dx = gamma s (dy - mean(dy) - xhat mean(dy xhat))
Tensor batch_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, const BatchNormOptions& options) {
  check_present("batch_norm", x, "x");
  check_present("batch_norm", gamma, "gamma");
  check_present("batch_norm", beta, "beta");
  check(x.rank() == 2 || x.rank() == 3, "[batch_norm] expected (N, C) or (N, C, L), got ", x.shape());
  const Shape channels{x.size(1)};
  check(gamma.shape() == channels, "[batch_norm] gamma ", gamma.shape(), " does not fit ", x.shape());
  check(beta.shape() == channels, "[batch_norm] beta ", beta.shape(), " does not fit ", x.shape());
  const kernels::BatchNorm n{x.size(0), x.size(1), x.rank() == 3 ? x.size(2) : 1};
  Tensor y = Tensor::empty(x.shape()), mean = Tensor::empty(channels), scale = Tensor::empty(channels);
  kernels::batch_norm(n, x.ptr(), gamma.ptr(), beta.ptr(), options.epsilon, y.mutable_ptr(), mean.mutable_ptr(),
                      scale.mutable_ptr());
  record("batch_norm", y, {&x, &gamma, &beta}, [n, x, gamma, mean, scale](Pull& pull) {
    Tensor dx = pull.wants(0) ? Tensor::empty(x.shape()) : Tensor();
    Tensor dgamma = Tensor::empty(gamma.shape()), dbeta = Tensor::empty(gamma.shape());
    kernels::batch_norm_back(n, x.ptr(), gamma.ptr(), mean.ptr(), scale.ptr(), pull.dy().ptr(), dx.mutable_ptr(),
                             dgamma.mutable_ptr(), dbeta.mutable_ptr());
    pull.give(0, std::move(dx));
    pull.give(1, std::move(dgamma));
    pull.give(2, std::move(dbeta));
  });
  return y;
}

}  // namespace qkv
