// Tensors as text.
#include <cmath>
#include <cstdio>
#include <ostream>

#include "qkv/core/check.h"
#include "qkv/tensor/tensor.h"

namespace qkv {
namespace {

constexpr int64_t kEdge = 3;  // elements at either end of a long axis

void append_element(std::string& out, float x) {
  if (std::isnan(x)) {  // its sign says nothing
    out += "nan";
    return;
  }
  char digits[32];
  std::snprintf(digits, sizeof digits, "%.4g", static_cast<double>(x));
  out += digits;
}
void append_element(std::string& out, int32_t x) { out += std::to_string(x); }

// The elements from `data` on, of the axes from `axis` on.
template <class Element>
void append_axis(std::string& out, const Element* data, const Shape& shape, int axis) {
  if (axis == shape.rank()) return append_element(out, *data);
  const int64_t n = shape[axis], stride = shape.product(axis + 1, shape.rank());
  out += '[';
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) out += ", ";
    if (n > 2 * kEdge + 1 && i == kEdge) {
      out += "..., ";
      i = n - kEdge;
    }
    append_axis(out, data + i * stride, shape, axis + 1);
  }
  out += ']';
}

template <class T>
void append_values(std::string& out, const T& x) {
  if (!x.defined()) {
    out += "absent tensor";
    return;
  }
  if (x.rank() > 0) out += x.shape().str() + " ";
  append_axis(out, x.ptr(), x.shape(), 0);
}

}  // namespace

void append_text(std::string& out, const Tensor& x) { append_values(out, x); }
void append_text(std::string& out, const Ids& x) { append_values(out, x); }
std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << text(x); }
std::ostream& operator<<(std::ostream& out, const Ids& x) { return out << text(x); }

}  // namespace qkv
