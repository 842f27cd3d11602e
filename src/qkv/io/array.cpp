// Arrays: conversions and statistics.
#include "qkv/io/array.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "qkv/core/check.h"

namespace qkv {

static_assert(std::endian::native == std::endian::little, "files are little-endian and are read without conversion");

namespace {

// Calls f with a value of the C++ type of the elements.
template <class F>
auto with_type(Dtype type, F&& f) {
  switch (type) {
    case Dtype::float32:
      return f(float{});
    case Dtype::float64:
      return f(double{});
    case Dtype::int32:
      return f(int32_t{});
    case Dtype::int64:
      return f(int64_t{});
    case Dtype::boolean:
      return f(bool{});
    case Dtype::uint8:
      return f(uint8_t{});
  }
  fail("[array] unknown type ", static_cast<int>(type));
}

// Element i; a bool is any byte that is not zero.
template <class T>
T element(std::span<const std::byte> bytes, size_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return bytes[i] != std::byte{0};
  } else {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    return value;
  }
}

template <class T>
constexpr Dtype dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return Dtype::float32;
  else if constexpr (std::is_same_v<T, double>)
    return Dtype::float64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return Dtype::int32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return Dtype::int64;
  else if constexpr (std::is_same_v<T, bool>)
    return Dtype::boolean;
  else
    return Dtype::uint8;
}

}  // namespace

const char* dtype_name(Dtype type) {
  switch (type) {
    case Dtype::float32:
      return "float32";
    case Dtype::float64:
      return "float64";
    case Dtype::int32:
      return "int32";
    case Dtype::int64:
      return "int64";
    case Dtype::boolean:
      return "bool";
    case Dtype::uint8:
      return "uint8";
  }
  return "?";
}

size_t dtype_size(Dtype type) {
  return with_type(type, [](auto zero) { return sizeof(zero); });
}

uint64_t byte_count(const Text& name, Dtype type, const Shape& shape) {
  uint64_t bytes = dtype_size(type);
  for (int64_t size : shape)
    require(!__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes),
            "{name}: shape {shape} of {type} is too large", "name"_a = name, "shape"_a = shape,
            "type"_a = dtype_name(type));
  return bytes;
}

Shape checked_shape(const Text& name, std::span<const int64_t> sizes) {
  require(sizes.size() <= Shape::kMaxRank, "{name}: {axes} axes, expected at most {most}", "name"_a = name,
          "axes"_a = sizes.size(), "most"_a = Shape::kMaxRank);
  uint64_t elements = 1;
  for (int64_t size : sizes) {
    require(size >= 0, "{name}: a size of {size}, expected 0 or more", "name"_a = name, "size"_a = size);
    // Zeros count as one here, so that an overflow is found in any order of the axes.
    require(!__builtin_mul_overflow(elements, static_cast<uint64_t>(size > 0 ? size : 1), &elements) &&
                elements <= INT64_MAX,
            "{name}: too many elements: a size of {size} on top of the axes before it", "name"_a = name,
            "size"_a = size);
  }
  return Shape(sizes);
}

Array::Array(Dtype type, const Shape& shape)
    : dtype_(type), shape_(shape), bytes_(byte_count(verbatim("[array]"), type, shape)) {}

Array::Array(const Tensor& values) : Array(Dtype::float32, values.shape()) {
  check(values.defined(), "[array] the tensor has no values");
  if (!bytes_.empty()) std::memcpy(bytes_.data(), values.ptr(), bytes_.size());
}

Array::Array(const Ids& values) : Array(Dtype::int32, values.shape()) {
  check(values.defined(), "[array] the ids have no values");
  if (!bytes_.empty()) std::memcpy(bytes_.data(), values.ptr(), bytes_.size());
}

template <class T>
Array Array::of(const Shape& shape, const std::vector<T>& values) {
  check(shape.numel() == static_cast<int64_t>(values.size()), "[array] shape ", shape, " has ", shape.numel(),
        " elements, got ", values.size(), " values");
  Array array(dtype_of<T>(), shape);
  for (size_t i = 0; i < values.size(); ++i) {
    const T value = values[i];
    std::memcpy(array.bytes_.data() + i * sizeof(T), &value, sizeof(T));
  }
  return array;
}
template Array Array::of<float>(const Shape&, const std::vector<float>&);
template Array Array::of<double>(const Shape&, const std::vector<double>&);
template Array Array::of<int32_t>(const Shape&, const std::vector<int32_t>&);
template Array Array::of<int64_t>(const Shape&, const std::vector<int64_t>&);
template Array Array::of<bool>(const Shape&, const std::vector<bool>&);
template Array Array::of<uint8_t>(const Shape&, const std::vector<uint8_t>&);

template <class T>
std::span<const T> Array::values() const {
  const bool fits = dtype_of<T>() == dtype_ || (dtype_ == Dtype::boolean && std::is_same_v<T, uint8_t>);
  check(fits, "[array] elements are ", dtype_name(dtype_), ", not ", dtype_name(dtype_of<T>()));
  return {reinterpret_cast<const T*>(bytes_.data()), static_cast<size_t>(numel())};
}
template std::span<const float> Array::values() const;
template std::span<const double> Array::values() const;
template std::span<const int32_t> Array::values() const;
template std::span<const int64_t> Array::values() const;
template std::span<const uint8_t> Array::values() const;

Tensor Array::to_tensor(const Text& name) const {
  Tensor out = Tensor::empty(shape_);
  with_type(dtype_, [&]<class T>(T) {
    for (int64_t i = 0; i < numel(); ++i) {
      const T value = element<T>(bytes_, static_cast<size_t>(i));
      if constexpr (std::is_same_v<T, double>)
        require(!std::isfinite(value) || std::abs(value) <= std::numeric_limits<float>::max(),
                "{name}: element {i} is {value}, beyond the range of float32", "name"_a = name, "i"_a = i,
                "value"_a = value);
      out.mutable_ptr()[i] = static_cast<float>(value);
    }
  });
  return out;
}

Ids Array::to_ids(const std::string& name) const {
  require(dtype_ != Dtype::float32 && dtype_ != Dtype::float64, "{name}: elements are {dtype}, expected int32 or int64",
          "name"_a = name, "dtype"_a = dtype_name(dtype_));
  Ids out = Ids::empty(shape_);
  with_type(dtype_, [&]<class T>(T) {
    if constexpr (!std::is_floating_point_v<T>)
      for (int64_t i = 0; i < numel(); ++i) {
        const auto value = static_cast<int64_t>(element<T>(bytes_, static_cast<size_t>(i)));
        require(value >= INT32_MIN && value <= INT32_MAX, "{name}: element {i} is {value}, beyond the range of int32",
                "name"_a = name, "i"_a = i, "value"_a = value);
        out.mutable_ptr()[i] = static_cast<int32_t>(value);
      }
  });
  return out;
}

// Welford's update: one pass, no cancellation.
template <class T>
void Statistics::add_elements(std::span<const std::byte> elements) {
  for (size_t i = 0; i < elements.size() / sizeof(T); ++i) {
    const auto x = static_cast<double>(element<T>(elements, i));
    if (std::isnan(x)) {
      ++nan_;
    } else if (std::isinf(x)) {
      ++infinite_;
    } else {
      min_ = finite_ == 0 || x < min_ ? x : min_;
      max_ = finite_ == 0 || x > max_ ? x : max_;
      const double away = x - mean_;
      mean_ += away / static_cast<double>(++finite_);
      squares_ += away * (x - mean_);
    }
  }
}

void Statistics::add(Dtype type, std::span<const std::byte> elements) {
  with_type(type, [&]<class T>(T) { add_elements<T>(elements); });
}

double Statistics::deviation() const { return finite_ == 0 ? 0 : std::sqrt(squares_ / static_cast<double>(finite_)); }

}  // namespace qkv
