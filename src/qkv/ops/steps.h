// Packed steps of sequences of different lengths: only existing steps are computed.
#pragma once

#include <algorithm>

#include "qkv/core/forms.h"
#include "qkv/core/parallel.h"
#include "qkv/tensor/tensor.h"

namespace qkv {

/// The rows of a batch sorted by decreasing length (stable), so that the rows with a step s are the first active(s). In
/// packed arrays row i of step s is at start(s) + i: step after step, with the rows of a step side by side.
class Steps {
 public:
  /// `batch` rows of at most `length` steps; lens (B), or absent if all have `length`. Errors name the op.
  Steps(const char* op, int64_t batch, int64_t length, const Ids& lens, Direction direction = Direction::forward);

  int64_t batch() const { return batch_; }
  int64_t length() const { return length_; }
  /// Number of steps of all rows together.
  int64_t total() const { return start(length_); }
  int64_t active(int64_t step) const { return active_.ptr()[step]; }
  int64_t start(int64_t step) const { return start_.ptr()[step]; }
  /// The batch row at sorted position i, and its length.
  int64_t row(int64_t i) const { return order_.ptr()[i]; }
  int64_t row_length(int64_t i) const { return lens_.ptr()[i]; }
  /// The index of step s of sorted row i on the time axis.
  int64_t time(int64_t i, int64_t step) const {
    return direction_ == Direction::forward ? step : row_length(i) - 1 - step;
  }

  /// x (B, T, D) -> (total, D).
  Tensor gather(const Tensor& x) const;
  /// packed (total, D) -> to (B, T, D), 0 where there is no step; with `add`, added to it.
  void scatter(const Tensor& packed, float* to, bool add) const;

  /// x (B, D), or zeros if absent -> the same in sorted order; and back.
  Tensor sorted(const Tensor& x, int64_t width) const;
  Tensor unsorted(const Tensor& x) const;

  /// body(begin, end) for ranges of sorted rows with about equally many steps, one range per thread. Rows must be
  /// independent: then no bit depends on where the ranges are cut.
  template <class Body>
  void each_range(double total_ns, Body&& body) const {
    const int64_t parts = detail::parallel_worthwhile(batch_, total_ns) ? std::min<int64_t>(threads(), batch_) : 1;
    if (parts == 1) return body(int64_t{0}, batch_);
    parallel_for(parts, total_ns, [&](int64_t part) { body(cut(part, parts), cut(part + 1, parts)); });
  }

 private:
  int64_t cut(int64_t part, int64_t parts) const;

  int64_t batch_, length_;
  Direction direction_;
  Ids order_, lens_;    // (B), by sorted row
  Ids active_, start_;  // (T + 1), by step
};

}  // namespace qkv
