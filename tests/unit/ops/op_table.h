// The table of op cases: one row serves values, gradients, shape edges and special values, on every kernel target.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "qkv/tensor/tensor.h"

namespace qkv::tests {

/// A double-precision array, which references compute with.
struct Array {
  Shape shape;
  std::vector<double> v;

  Array() = default;
  explicit Array(const Shape& s, double value = 0) : shape(s), v(static_cast<size_t>(s.numel()), value) {}
  explicit Array(const Tensor& t) : shape(t.shape()), v(t.data().begin(), t.data().end()) {}
  int64_t numel() const { return shape.numel(); }
  double& operator[](int64_t i) { return v[static_cast<size_t>(i)]; }
  double operator[](int64_t i) const { return v[static_cast<size_t>(i)]; }
};

using Tensors = std::vector<Tensor>;
using Arrays = std::vector<Array>;

/// How a row's op is tested with special values. Default: put NaN, +-inf, +-0, denormals and huge values into one
/// element of each input and expect the reference's result, rounded to float (NaN for NaN, inf for inf).
enum class Special { like_reference, none };

struct OpCase {
  std::string op;                                    // the name under which the op records itself
  std::string label;                                 // what this row is about
  std::vector<std::vector<Shape>> shapes;            // sets of input shapes: the usual, 0, 1 and tails
  std::function<Tensor(const Tensors&)> call;        // the op on these inputs
  std::function<Array(const Arrays&)> reference;     // the same in double
  std::vector<std::pair<float, float>> ranges = {};  // ranges of the uniform inputs, default [-2, 2] each
  double value_tolerance = 1e-6;                     // |y - ref| <= tolerance * (|ref| + max|ref|)
  double gradient_tolerance = 1e-5;                  // |dx - ref| <= tolerance * (|ref| + max|ref|)
  Special special = Special::like_reference;
  std::string exception = "";  // why a tolerance or `special` differs from the default; required then
  double step = 1e-4;          // of the central differences
};

// One function per subject, each in its own rows_*.cpp.
std::vector<OpCase> elementwise_rows();
std::vector<OpCase> broadcast_rows();
std::vector<OpCase> reduce_rows();
std::vector<OpCase> shape_rows();
std::vector<OpCase> conv_rows();
std::vector<OpCase> batch_norm_rows();
std::vector<OpCase> softmax_rows();
std::vector<OpCase> norm_rows();
std::vector<OpCase> embedding_rows();
std::vector<OpCase> loss_rows();
std::vector<OpCase> matmul_rows();
std::vector<OpCase> attention_rows();
std::vector<OpCase> recurrent_rows();
std::vector<OpCase> position_rows();
std::vector<OpCase> long_rows();

/// All of them.
std::vector<OpCase> op_table();

/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
double gelu_by_tanh(double x);

}  // namespace qkv::tests
