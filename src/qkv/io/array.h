// Array: the contents of a file as stored: a type, a shape and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/core/shape.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

enum class Dtype { float32, float64, int32, int64, boolean, uint8 };

/// "float32", "bool", ...
const char* dtype_name(Dtype type);
/// Bytes of one element.
size_t dtype_size(Dtype type);

/// A value type: copies are deep. Elements are little-endian and in C order.
class Array {
 public:
  Array() = default;
  /// All elements zero.
  Array(Dtype type, const Shape& shape);
  explicit Array(const Tensor& values);
  explicit Array(const Ids& values);

  /// From C++ values of one of the element types: Array::of<double>({2}, {1.0, 2.0}).
  template <class T>
  static Array of(const Shape& shape, const std::vector<T>& values);

  Dtype dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t numel() const { return shape_.numel(); }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> mutable_bytes() { return bytes_; }
  /// The elements as T, which must be the C++ type of dtype() (uint8_t for bool).
  template <class T>
  std::span<const T> values() const;

  /// As float32. A finite float64 beyond the range of float32 is an error whose message starts with `name`.
  Tensor to_tensor(const Text& name) const;
  /// As int32: from int32, int64, uint8 and bool, range-checked.
  Ids to_ids(const std::string& name) const;

  bool operator==(const Array& other) const = default;

 private:
  Dtype dtype_ = Dtype::float32;
  Shape shape_ = Shape({0});
  std::vector<std::byte> bytes_;
};

/// The number of elements times the size of one. An overflow is an error whose message starts with `name`.
uint64_t byte_count(const Text& name, Dtype type, const Shape& shape);

/// A Shape of sizes read from a file. Too many axes, a negative or an overflowing size is an error whose message starts
/// with `name`.
Shape checked_shape(const Text& name, std::span<const int64_t> sizes);

/// Smallest, largest, mean and standard deviation of the finite elements, in double, and the number of elements that
/// are not finite.
class Statistics {
 public:
  void add(Dtype type, std::span<const std::byte> elements);
  int64_t count() const { return finite_ + nan_ + infinite_; }
  int64_t finite() const { return finite_; }
  int64_t nan() const { return nan_; }
  int64_t infinite() const { return infinite_; }
  double min() const { return min_; }
  double max() const { return max_; }
  double mean() const { return mean_; }
  /// The standard deviation of the whole population: divided by the number of elements.
  double deviation() const;

 private:
  template <class T>
  void add_elements(std::span<const std::byte> elements);
  int64_t finite_ = 0, nan_ = 0, infinite_ = 0;
  double min_ = 0, max_ = 0, mean_ = 0, squares_ = 0;
};

}  // namespace qkv
