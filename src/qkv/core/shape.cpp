// Shapes: checks, text and broadcasting.
#include "qkv/core/shape.h"

#include <algorithm>

namespace qkv {

Shape::Shape(std::span<const int64_t> sizes) {
  check(sizes.size() <= kMaxRank, "[shape] at most ", kMaxRank, " axes, got ", sizes.size());
  for (int64_t size : sizes) push_back(size);
}

void Shape::push_back(int64_t size) {
  check(rank_ < kMaxRank, "[shape] at most ", kMaxRank, " axes");
  check(size >= 0, "[shape] sizes cannot be negative, got ", size);
  sizes_[rank_++] = size;
  int64_t total = 1;
  for (int i = 0; i < rank_; ++i)
    if (__builtin_mul_overflow(total, std::max<int64_t>(sizes_[i], 1), &total))
      fail("[shape] too many elements: ", str());
}

int64_t Shape::product(int first, int last) const {
  int64_t n = 1;
  for (int i = first; i < last; ++i) n *= sizes_[i];
  return n;
}

std::string Shape::str() const {
  std::string out = "(";
  for (int i = 0; i < rank_; ++i) out += (i ? ", " : "") + std::to_string(sizes_[i]);
  return out + (rank_ == 1 ? ",)" : ")");
}

int normal_axis(const char* op, int axis, int rank) {
  check(axis >= -rank && axis < rank, "[", op, "] axis ", axis, " is outside a tensor of ", rank, " axes");
  return axis < 0 ? axis + rank : axis;
}

Shape broadcast(const char* op, const Shape& a, const Shape& b) {
  if (a == b) return a;
  Shape out = a.rank() >= b.rank() ? a : b;
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    check(a[-i] == b[-i] || a[-i] == 1 || b[-i] == 1, "[", op, "] shapes do not broadcast: ", a, " and ", b);
    out.set(-i, a[-i] == 1 ? b[-i] : a[-i]);
  }
  return out;
}

}  // namespace qkv
