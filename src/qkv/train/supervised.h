// Learning from examples: inputs x, wanted outputs y, a model and a loss make a task.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/present.h"
#include "qkv/train/task.h"

namespace QKV_API qkv {

struct SupervisedOptions {
  int64_t batch_rows = 32;
  bool shuffle = true;  // another order in every epoch
  uint64_t seed = 0;    // of the orders
};

namespace detail {

/// Rows of a Tensor or of Ids, in that order.
template <class T>
T chosen_rows(const T& x, const std::vector<int64_t>& rows) {
  const int64_t width = x.shape().product(1, x.rank());
  Shape shape = x.shape();
  shape.set(0, std::ssize(rows));
  T out = T::empty(shape);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy_n(x.ptr() + rows[i] * width, width, out.mutable_ptr() + static_cast<int64_t>(i) * width);
  return out;
}

}  // namespace detail

/// The task of minimising the mean of loss(model(x), y) over rows of x and y; see supervised().
template <class Model, class X, class Y, class F>
class Supervised {
 public:
  struct Batch {
    X x;
    Y y;
  };

  Supervised(const Model& model, X x, Y y, F loss, const SupervisedOptions& options)
      : model_(model), x_(std::move(x)), y_(std::move(y)), loss_(std::move(loss)), options_(options) {
    check_present("supervised", x_, "x");
    check_present("supervised", y_, "y");
    check(x_.rank() >= 1 && y_.rank() >= 1 && x_.size(0) == y_.size(0), "[supervised] x ", x_.shape(), " and y ",
          y_.shape(), " must have as many rows");
    check(options.batch_rows >= 1, "[supervised] a batch must have 1 or more rows, got ", options.batch_rows);
  }

  int64_t batches() const { return (x_.size(0) + options_.batch_rows - 1) / options_.batch_rows; }
  Batch batch(int64_t epoch, int64_t index) const {
    const std::vector<int64_t>& order = order_of(options_.shuffle ? epoch : 0);
    const int64_t begin = index * options_.batch_rows, end = std::min(x_.size(0), begin + options_.batch_rows);
    const std::vector<int64_t> rows(order.begin() + begin, order.begin() + end);
    return {detail::chosen_rows(x_, rows), detail::chosen_rows(y_, rows)};
  }
  int64_t rows(const Batch& batch) const { return batch.x.size(0); }
  int64_t count(const Batch& batch) const { return batch.y.numel(); }
  Loss loss(const Batch& batch, int64_t begin, int64_t end, const Run& run) const {
    const X x = slice(batch.x, 0, begin, end);
    const Y y = slice(batch.y, 0, begin, end);
    const auto count = static_cast<double>(y.numel());
    const Tensor out = output(x, run);
    if constexpr (requires { loss_(out, y, Reduction::sum); })
      return {loss_(out, y, Reduction::sum), count};
    else if constexpr (requires { loss_(out, y, CrossEntropyOptions{}); })
      return {loss_(out, y, CrossEntropyOptions{.reduction = Reduction::sum}), count};
    else
      return from_mean(loss_(out, y), count);
  }

 private:
  Tensor output(const X& x, const Run& run) const {
    if constexpr (requires { model_(x, run); })
      return model_(x, run);
    else
      return model_(x);
  }
  // Fisher and Yates' shuffle; a pure function of the epoch, kept for its other batches.
  const std::vector<int64_t>& order_of(int64_t epoch) const {
    if (epoch == order_epoch_) return order_;
    order_.resize(static_cast<size_t>(x_.size(0)));
    std::iota(order_.begin(), order_.end(), 0);
    const Rng rng = Rng(options_.seed).at("supervised").at(static_cast<uint64_t>(epoch));
    if (options_.shuffle)
      for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[rng.below(i, i)]);
    order_epoch_ = epoch;
    return order_;
  }

  const Model& model_;
  X x_;
  Y y_;
  F loss_;
  SupervisedOptions options_;
  mutable std::vector<int64_t> order_;
  mutable int64_t order_epoch_ = -1;
};

/// A task for fit(): x and y are a Tensor or Ids each, with a row per example; the model is called as model(x, run) or
/// model(x); the loss is cross_entropy, squared_error, or a function of output and wanted output that returns a mean.
/// The model is referred to, so it must outlive the task.
template <class Model, class X, class Y, class F>
Supervised<Model, X, Y, F> supervised(const Model& model, const X& x, const Y& y, F loss,
                                      const SupervisedOptions& options = {}) {
  return Supervised<Model, X, Y, F>(model, x, y, std::move(loss), options);
}

}  // namespace qkv
