// Tensor and Ids: construction, views and makers.
#include "qkv/tensor/tensor.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "qkv/kernels/dropout.h"
#include "qkv/tensor/out_of_memory.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace {

// Memory for the elements, four bytes each; a shape may have more elements than a size in bytes can express.
Buffer take_words(const Shape& shape) {
  check(shape.numel() <= int64_t{1} << 60, "[tensor] too many elements: ", shape);
  const uint64_t bytes = static_cast<uint64_t>(shape.numel()) * 4;
  if (bytes > std::numeric_limits<size_t>::max() / 2)
    throw OutOfMemory(text("[buffer] ", bytes, " bytes are more than any machine has"));
  return Buffer::take(static_cast<size_t>(bytes));
}

thread_local bool shapes_only = false;
float no_element = 0;  // where the elements of an outline would be

}  // namespace

ShapesOnly::ShapesOnly() : before_(std::exchange(shapes_only, true)) {}
ShapesOnly::~ShapesOnly() { shapes_only = before_; }
bool ShapesOnly::active() { return shapes_only; }

Tensor Tensor::outline(const Shape& shape) {
  Tensor t = absent(shape);
  t.data_ = &no_element;
  return t;
}

Tensor Tensor::empty(const Shape& shape) {
  Tensor t;
  t.shape_ = shape;
  t.buffer_ = take_words(shape);
  t.data_ = reinterpret_cast<float*>(t.buffer_.data());
  return t;
}

Tensor Tensor::borrowed(const Shape& shape, float* elements, std::shared_ptr<const void> owner) {
  check(elements != nullptr, "[tensor] there is no memory to borrow");
  Tensor t;
  t.shape_ = shape;
  t.buffer_ = Buffer::holding(std::move(owner));
  t.data_ = elements;
  return t;
}

Tensor::Tensor(const Shape& shape, std::span<const float> values) : Tensor(empty(shape)) {
  check(shape.numel() == static_cast<int64_t>(values.size()), "[tensor] shape ", shape, " has ", shape.numel(),
        " elements, got ", values.size(), " values");
  std::copy(values.begin(), values.end(), data_);
}

float Tensor::item() const {
  check_present("item", *this);
  check(numel() == 1, "[item] expected one element, got shape ", shape_);
  return data_[0];
}

float Tensor::at(std::initializer_list<int64_t> index) const {
  check_present("at", *this);
  check(static_cast<int>(index.size()) == rank(), "[at] ", index.size(), " indices for shape ", shape_);
  int64_t offset = 0;
  int axis = 0;
  for (int64_t i : index) {
    check(i >= 0 && i < shape_[axis], "[at] index ", i, " on axis ", axis, " of shape ", shape_);
    offset = offset * shape_[axis++] + i;
  }
  return data_[offset];
}

Tensor Tensor::viewed(const Shape& shape) const {
  check_present("view", *this);
  check(shape.numel() == numel(), "[view] ", shape_, " does not have as many elements as ", shape);
  Tensor t = detached();
  t.shape_ = shape;
  return t;
}

Tensor Tensor::part(int64_t offset, const Shape& shape) const {
  check_present("part", *this);
  check(offset >= 0 && offset + shape.numel() <= numel(), "[part] ", shape, " at ", offset, " is outside ", shape_);
  Tensor t = detached();
  t.shape_ = shape;
  t.data_ += offset;
  return t;
}

Tensor Tensor::detached() const {
  Tensor t = *this;
  t.tape_ = 0;
  t.id_ = 0;
  return t;
}

Tensor Tensor::copied() const {
  check_present("copied", *this);
  Tensor t = empty(shape_);
  std::copy_n(data_, numel(), t.data_);
  return t;
}

uint32_t reserve_leaves(uint32_t count) {
  static std::atomic<uint32_t> next{1};
  return next.fetch_add(count, std::memory_order_relaxed);
}

Tensor parameter(const Tensor& values, uint32_t leaf) {
  check_present("parameter", values);
  Tensor t = values.detached();
  t.id_ = leaf;
  return t;
}

Tensor parameter(const Tensor& values) { return parameter(values, reserve_leaves(1)); }

Tensor full(const Shape& shape, float value) {
  if (shapes_only) return Tensor::outline(shape);
  Tensor t = Tensor::empty(shape);
  std::fill_n(t.mutable_ptr(), t.numel(), value);
  return t;
}

Tensor zeros(const Shape& shape) { return full(shape, 0); }
Tensor ones(const Shape& shape) { return full(shape, 1); }
Tensor scalar(float value) { return full({}, value); }

Tensor eye(int64_t n) {
  Tensor t = zeros({n, n});
  for (int64_t i = 0; i < n; ++i) t.mutable_ptr()[i * n + i] = 1;
  return t;
}

Tensor arange(float begin, float end, float step) {
  check(step != 0 && std::isfinite(begin) && std::isfinite(end) && std::isfinite(step), "[arange] cannot go from ",
        begin, " to ", end, " by ", step);
  // Counted in double with a little slack, so that 0 to 5 by 0.1 has 50 elements although 0.1f is above 0.1.
  const double count = std::ceil((double{end} - begin) / step - 1e-6);
  check(count < 0x1p53, "[arange] too many steps from ", begin, " to ", end, " by ", step);
  Tensor t = Tensor::empty({static_cast<int64_t>(std::max(count, 0.0))});
  for (int64_t i = 0; i < t.numel(); ++i)
    t.mutable_ptr()[i] = static_cast<float>(begin + static_cast<double>(i) * step);
  return t;
}

Tensor uniform(const Shape& shape, const Rng& rng, float low, float high) {
  if (shapes_only) return Tensor::outline(shape);
  Tensor t = Tensor::empty(shape);
  kernels::random_uniform(rng, 0, low, high, t.mutable_ptr(), t.numel());
  return t;
}

Tensor normal(const Shape& shape, const Rng& rng, float mean, float deviation) {
  if (shapes_only) return Tensor::outline(shape);
  Tensor t = Tensor::empty(shape);
  for (int64_t i = 0; i < t.numel(); ++i) t.mutable_ptr()[i] = mean + deviation * rng.normal(static_cast<uint64_t>(i));
  return t;
}

Tensor sort(const Tensor& x) {
  check_present("sort", x);
  check(x.rank() == 1, "[sort] expected a vector, got shape ", x.shape());
  Tensor y = x.copied();
  std::stable_sort(y.mutable_ptr(), y.mutable_ptr() + y.numel(),
                   [](float a, float b) { return std::isnan(b) ? !std::isnan(a) : a < b; });
  return y;
}

Ids Ids::empty(const Shape& shape) {
  Ids t;
  t.shape_ = shape;
  t.buffer_ = take_words(shape);
  t.data_ = reinterpret_cast<int32_t*>(t.buffer_.data());
  return t;
}

Ids::Ids(const Shape& shape, std::span<const int32_t> values) : Ids(empty(shape)) {
  check(shape.numel() == static_cast<int64_t>(values.size()), "[ids] shape ", shape, " has ", shape.numel(),
        " elements, got ", values.size(), " values");
  std::copy(values.begin(), values.end(), data_);
}

Ids Ids::viewed(const Shape& shape) const {
  check_present("view", *this);
  check(shape.numel() == numel(), "[view] ", shape_, " does not have as many elements as ", shape);
  Ids t = *this;
  t.shape_ = shape;
  return t;
}

Ids Ids::part(int64_t offset, const Shape& shape) const {
  check_present("part", *this);
  check(offset >= 0 && offset + shape.numel() <= numel(), "[part] ", shape, " at ", offset, " is outside ", shape_);
  Ids t = *this;
  t.shape_ = shape;
  t.data_ += offset;
  return t;
}

}  // namespace qkv
