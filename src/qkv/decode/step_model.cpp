// The best of a step of any model.
#include "qkv/decode/step_model.h"

#include <algorithm>

#include "qkv/core/parallel.h"

namespace qkv {

kernels::LargestOfRows StepModel::best(const Ids& tokens, int64_t k) {
  const Tensor scores = step(tokens);
  const int64_t rows = scores.size(0), vocabulary = scores.size(1);
  kernels::LargestOfRows out(rows, std::min(k, vocabulary));
  parallel_for(rows, 0.8 * static_cast<double>(scores.numel()),
               [&](int64_t r) { kernels::largest_of_rows(scores.ptr() + r * vocabulary, 1, vocabulary, out, r); });
  return out;
}

}  // namespace qkv
