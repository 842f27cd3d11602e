// Tensor: contiguous float32 with a shape. Cheap to copy: copies share the buffer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/rng.h"
#include "qkv/core/shape.h"
#include "qkv/tensor/pool.h"

namespace qkv {

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
  /// No buffer, but a shape: a gradient that has not arrived yet.
  static Tensor absent(const Shape& shape) {
    Tensor t;
    t.shape_ = shape;
    return t;
  }
  /// What a maker gives in a ShapesOnly scope: it counts as defined, and its elements must not be touched.
  static Tensor outline(const Shape& shape);

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  int64_t size(int axis) const { return shape_[axis]; }
  int64_t numel() const { return shape_.numel(); }
  std::span<const float> data() const { return {data_, static_cast<size_t>(numel())}; }
  /// The only element of a tensor that has one.
  float item() const;
  float at(std::initializer_list<int64_t> index) const;

  const float* ptr() const { return data_; }
  /// Writing is for the code that made the tensor, before anyone shares it, and for optimizers.
  float* mutable_ptr() const { return data_; }
  bool sole_owner() const { return buffer_.unique(); }

  /// The same elements under another shape of equal count; not recorded (see ops/shape.h for the op).
  Tensor viewed(const Shape& shape) const;
  /// count elements from offset on, as that shape; not recorded.
  Tensor part(int64_t offset, const Shape& shape) const;
  /// The same values, unknown to any tape.
  Tensor detached() const;
  /// A copy with a buffer of its own, unknown to any tape.
  Tensor copied() const;

  /// True for a tensor made by parameter(): a leaf that collects a gradient.
  bool is_parameter() const { return tape_ == 0 && id_ != 0; }
  uint32_t leaf_id() const { return is_parameter() ? static_cast<uint32_t>(id_) : 0; }

 private:
  friend class Tape;
  friend Tensor parameter(const Tensor& values, uint32_t leaf);
  Buffer buffer_;
  float* data_ = nullptr;
  Shape shape_;
  uint32_t tape_ = 0;  // serial of the tape that recorded it; 0: a leaf or a constant
  uintptr_t id_ = 0;   // its slot on that tape; for a leaf its number in the process
};

/// A leaf that shares the values of `values` and collects a gradient on every tape it meets.
Tensor parameter(const Tensor& values);

/// Leaf numbers for many parameters in a row, and a leaf with one of them.
uint32_t reserve_leaves(uint32_t count);
Tensor parameter(const Tensor& values, uint32_t leaf);

/// While it lives, the makers full, zeros, ones, uniform and normal give this thread tensors without memory. What a
/// model consists of can so be asked of its constructor, whatever sizes it is given.
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
  std::span<const int32_t> data() const { return {data_, static_cast<size_t>(numel())}; }
  const int32_t* ptr() const { return data_; }
  int32_t* mutable_ptr() const { return data_; }
  Ids viewed(const Shape& shape) const;
  Ids part(int64_t offset, const Shape& shape) const;

 private:
  Buffer buffer_;
  int32_t* data_ = nullptr;
  Shape shape_;
};

/// "(2, 3) [[1, 2, 3], [4, 5, 0.6667]]": shape and elements, four digits each; of a long axis the first three and the
/// last three. This is what text() and << write.
void append_text(std::string& out, const Tensor& x);
void append_text(std::string& out, const Ids& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Ids& x);

}  // namespace qkv
