// Differentiable reductions over one axis, several or all.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Which axes to reduce: one, several, or all if none is named. Negative axes count from the end.
class Axes {
 public:
  Axes() = default;
  Axes(int axis) : Axes({axis}) {}
  Axes(std::initializer_list<int> axes) : Axes(std::span<const int>(axes.begin(), axes.size())) {}
  Axes(std::span<const int> axes);

  /// Which axes of a tensor are meant; errors name the op.
  std::array<bool, Shape::kMaxRank> of(const char* op, const Shape& shape) const;

 private:
  std::array<int, Shape::kMaxRank> axes_{};
  int count_ = 0;
};

/// Whether a reduced axis stays, with size 1.
enum class KeepDims { no, yes };

/// The sum over the axes; 0 over no elements.
Tensor sum(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);

/// The mean over the axes; NaN over no elements.
Tensor mean(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);

/// The largest element over the axes, or NaN if any element is NaN. The gradient goes to the first of equal maxima, in
/// row-major order.
Tensor max(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);

/// The smallest element over the axes, NaN if there is one. Its gradient goes to the first of equal minima.
Tensor min(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);

/// The index along an axis of its largest element, the first of equal ones; NaN counts as the largest. x without that
/// axis -> Ids. No gradient.
Ids argmax(const Tensor& x, int axis = -1);

}  // namespace qkv
