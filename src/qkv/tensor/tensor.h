// Tensor: contiguous float32 with a shape. Cheap to copy: copies share the buffer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/rng.h"
#include "qkv/core/shape.h"
#include "qkv/tensor/pool.h"

namespace QKV_API qkv {

class Tensor;
class Ids;
namespace detail {
/// The memory of a tensor that may be shared: for optimizers, caches and whatever else updates it where it is.
float* writable(const Tensor& x);
int32_t* writable(const Ids& x);
}  // namespace detail

class Tensor {
 public:
  /// The absent tensor: no buffer, defined() is false.
  Tensor() = default;
  /// Values with a shape; the counts must agree.
  Tensor(const Shape& shape, std::initializer_list<float> values)
      : Tensor(shape, std::span<const float>(values.begin(), values.size())) {}
  Tensor(const Shape& shape, std::span<const float> values);

  /// Uninitialised memory, for code that writes every element.
  static Tensor empty(const Shape& shape);
  /// Elements in memory that `owner` keeps alive, such as a mapped file. They may be written only if that memory may.
  static Tensor borrowed(const Shape& shape, float* elements, std::shared_ptr<const void> owner);
  /// No buffer, but a shape: a gradient that has not arrived yet.
  static Tensor absent(const Shape& shape) {
    Tensor t;
    t.shape_ = shape;
    return t;
  }
  /// What a maker returns in a ShapesOnly scope: it counts as defined, but its elements must not be accessed.
  static Tensor outline(const Shape& shape);

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int axis) const { return shape_[axis]; }
  int64_t numel() const { return shape_.numel(); }
  /// The elements; none if the tensor is absent.
  std::span<const float> data() const { return {data_, defined() ? static_cast<size_t>(numel()) : 0}; }
  /// The element of a tensor that has exactly one.
  float item() const;
  float at(std::initializer_list<int64_t> index) const;

  const float* ptr() const { return data_; }
  /// Writing is for the code that made the tensor, before anyone shares it.
  float* mutable_ptr() { return data_; }
  bool sole_owner() const { return buffer_.unique(); }

  /// The same elements under another shape of equal count; not recorded (see ops/shape.h for the op).
  Tensor viewed(const Shape& shape) const;
  /// The elements from offset on, as many as fit that shape; not recorded.
  Tensor part(int64_t offset, const Shape& shape) const;
  /// The same values, unknown to any tape.
  Tensor detached() const;
  /// A copy with its own buffer, unknown to any tape.
  Tensor copied() const;

  /// True for a tensor made by parameter(): a leaf that collects a gradient.
  bool is_parameter() const { return tape_ == 0 && id_ != 0; }
  uint32_t leaf_id() const { return is_parameter() ? static_cast<uint32_t>(id_) : 0; }

 private:
  friend class Tape;
  friend Tensor parameter(const Tensor& values, uint32_t leaf);
  friend float* detail::writable(const Tensor& x);
  Buffer buffer_;
  float* data_ = nullptr;
  Shape shape_;
  uint32_t tape_ = 0;  // serial of the tape that recorded it; 0: a leaf or a constant
  uintptr_t id_ = 0;   // its slot on that tape; for a leaf, its number in the process
};

/// A leaf that shares the buffer of `values` and collects a gradient on every tape that uses it.
Tensor parameter(const Tensor& values);

/// Consecutive leaf numbers for many parameters, and a leaf with one of them.
uint32_t reserve_leaves(uint32_t count);
Tensor parameter(const Tensor& values, uint32_t leaf);

/// While it is alive, the makers full, zeros, ones, uniform and normal return tensors without memory on this thread.
/// This lets a model's constructor report the model's parameters at any size.
class ShapesOnly {
 public:
  ShapesOnly();
  ~ShapesOnly();
  ShapesOnly(const ShapesOnly&) = delete;
  ShapesOnly& operator=(const ShapesOnly&) = delete;
  static bool active();

 private:
  bool before_;
};

// Makers.
Tensor zeros(const Shape& shape);
Tensor ones(const Shape& shape);
Tensor full(const Shape& shape, float value);
Tensor scalar(float value);
Tensor eye(int64_t n);
/// begin, begin + step, ... below end.
Tensor arange(float begin, float end, float step = 1);
Tensor uniform(const Shape& shape, const Rng& rng, float low = 0, float high = 1);
Tensor normal(const Shape& shape, const Rng& rng, float mean = 0, float deviation = 1);
/// The elements of a vector in ascending order, NaN last; not differentiable.
Tensor sort(const Tensor& x);

/// Contiguous int32 with a shape and no gradient: token ids and lengths.
class Ids {
 public:
  Ids() = default;
  Ids(const Shape& shape, std::initializer_list<int32_t> values)
      : Ids(shape, std::span<const int32_t>(values.begin(), values.size())) {}
  Ids(const Shape& shape, std::span<const int32_t> values);
  static Ids empty(const Shape& shape);

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int axis) const { return shape_[axis]; }
  int64_t numel() const { return shape_.numel(); }
  std::span<const int32_t> data() const { return {data_, defined() ? static_cast<size_t>(numel()) : 0}; }
  const int32_t* ptr() const { return data_; }
  int32_t* mutable_ptr() { return data_; }
  Ids viewed(const Shape& shape) const;
  Ids part(int64_t offset, const Shape& shape) const;

 private:
  friend int32_t* detail::writable(const Ids& x);
  Buffer buffer_;
  int32_t* data_ = nullptr;
  Shape shape_;
};

inline float* detail::writable(const Tensor& x) { return x.data_; }
inline int32_t* detail::writable(const Ids& x) { return x.data_; }

/// "(2, 3) [[1, 2, 3], [4, 5, 0.6667]]": shape and elements, four digits each; a long axis shows its first three and
/// last three. This is what text() and << write.
void append_text(std::string& out, const Tensor& x);
void append_text(std::string& out, const Ids& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Ids& x);

}  // namespace qkv
