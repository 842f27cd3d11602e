// The sizes of a tensor's axes, stored in place: at most six.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "qkv/core/api.h"
#include "qkv/core/check.h"

namespace QKV_API qkv {

class Shape {
 public:
  static constexpr int kMaxRank = 6;

  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : Shape(std::span<const int64_t>(sizes.begin(), sizes.size())) {}
  explicit Shape(std::span<const int64_t> sizes);

  int rank() const { return rank_; }
  /// Size of an axis; negative axes count from the end.
  int64_t operator[](int axis) const { return sizes_[axis < 0 ? axis + rank_ : axis]; }
  void set(int axis, int64_t size) { sizes_[axis < 0 ? axis + rank_ : axis] = size; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= sizes_[i];
    return n;
  }
  /// Product of the sizes of axes [first, last).
  int64_t product(int first, int last) const;
  const int64_t* begin() const { return sizes_.data(); }
  const int64_t* end() const { return sizes_.data() + rank_; }
  bool operator==(const Shape& other) const {
    if (rank_ != other.rank_) return false;
    for (int i = 0; i < rank_; ++i)
      if (sizes_[i] != other.sizes_[i]) return false;
    return true;
  }

  void push_back(int64_t size);
  /// "(2, 3)", "(4,)", "()".
  std::string str() const;

 private:
  std::array<int64_t, kMaxRank> sizes_{};
  int rank_ = 0;
};

inline void append_text(std::string& out, const Shape& shape) { out += shape.str(); }

/// The axis in [0, rank) for one that may be negative; errors name the op.
int normal_axis(const char* op, int axis, int rank);

/// NumPy's rule: sizes are equal or one of them is 1, aligned at the last axis.
Shape broadcast(const char* op, const Shape& a, const Shape& b);

}  // namespace qkv
