// What fit() can train: a task, which knows batches and their loss, or a function that computes a loss.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>

#include "qkv/core/api.h"
#include "qkv/tensor/run.h"
#include "qkv/train/loss.h"

namespace QKV_API qkv {

/// The type of a task's batches.
template <class Task>
using BatchOf = std::remove_cvref_t<decltype(std::declval<const Task&>().batch(int64_t{}, int64_t{}))>;

/// What fit() trains with. A task has
///   int64_t batches() const;                                                // in an epoch
///   Batch batch(int64_t epoch, int64_t index) const;                        // a pure function of both
///   int64_t rows(const Batch&) const;
///   Loss loss(const Batch&, int64_t begin, int64_t end, const Run&) const;  // of those rows: their sum and their
///   count
/// and may have
///   double count(const Batch&) const;   // what loss() counts in the whole batch, if not rows
///   Objective objective() const;        // the mean over what is counted (the default), or the sum
///   Counted counted() const;            // what that is, for the speed that observers show: tokens (the default),
///   images
template <class T>
concept TrainingTask = requires(const T& task, int64_t number) {
  { task.batches() } -> std::convertible_to<int64_t>;
  task.batch(number, number);
}
&&requires(const T& task, const BatchOf<T>& batch, int64_t row, const Run& run) {
  { task.rows(batch) } -> std::convertible_to<int64_t>;
  { task.loss(batch, row, row, run) } -> std::same_as<Loss>;
};

/// A function that computes the loss of an update, one recorded number, from the update's number (0, 1, 2, ...) and a
/// run. It sees the whole batch at once, so it may be a mean.
template <class F>
concept LossFunction = requires(const F& loss, int64_t step, const Run& run) {
  { loss(step, run) } -> std::convertible_to<Tensor>;
};

namespace detail {

template <TrainingTask Task>
double count_of(const Task& task, const BatchOf<Task>& batch) {
  if constexpr (requires { task.count(batch); })
    return static_cast<double>(task.count(batch));
  else
    return static_cast<double>(task.rows(batch));
}

/// What the sum over those batches is divided by.
template <TrainingTask Task>
double divisor_of(const Task& task, std::span<const BatchOf<Task>> batches) {
  if constexpr (requires { task.objective(); })
    if (task.objective() == Objective::sum) return 1;
  double count = 0;
  for (const auto& batch : batches) count += count_of(task, batch);
  return count > 0 ? count : 1;
}

/// Fails where loss() counted something else in a batch than is divided by.
void check_count(double counted, double expected, const char* by);

/// A function as a task: every batch is one row.
template <LossFunction F>
struct FunctionTask {
  const F& function;
  int64_t per_epoch;
  int64_t batches() const { return per_epoch; }
  int64_t batch(int64_t epoch, int64_t index) const { return epoch * per_epoch + index; }
  int64_t rows(int64_t) const { return 1; }
  Loss loss(int64_t step, int64_t, int64_t, const Run& run) const { return {function(step, run), 1}; }
};

}  // namespace detail
}  // namespace qkv
