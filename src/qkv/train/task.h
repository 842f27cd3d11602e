// What fit() can train: a task, which knows batches and their loss, or a function that computes a loss.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
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
///                                       // images, texts
template <class T>
concept TrainingTask = requires(const T& task, int64_t number) {
  { task.batches() } -> std::convertible_to<int64_t>;
  task.batch(number, number);
}
&&requires(const T& task, const BatchOf<T>& batch, int64_t row, const Run& run) {
  { task.rows(batch) } -> std::convertible_to<int64_t>;
  { task.loss(batch, row, row, run) } -> std::same_as<Loss>;
};

/// A function that computes the loss of a batch, one recorded number, from the batch's number (0, 1, 2, ...) and a run.
/// That is the update's number, unless an update accumulates several batches: with accumulate = 5, update 0 is made of
/// batches 0 to 4. It sees the whole batch at once, so it may be a mean.
template <class F>
concept LossFunction = requires(const F& loss, int64_t number, const Run& run) {
  { loss(number, run) } -> std::convertible_to<Tensor>;
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

/// How the updates of a function, which has no epochs of its own, are divided into epochs: `steps` of them into
/// `epochs` parts, of which the first are one update longer if they cannot all be equal; without steps, one update
/// each.
struct FunctionEpochs {
  std::optional<int64_t> steps;
  int64_t epochs = 1;      // 1 to steps
  int64_t accumulate = 1;  // batches per update

  /// Updates before that epoch, and the epoch of that update (`epochs` after the last).
  int64_t updates_before(int64_t epoch) const;
  int64_t epoch_of(int64_t step) const;
  int64_t batches(int64_t epoch) const { return (updates_before(epoch + 1) - updates_before(epoch)) * accumulate; }
};

/// A function as a task: every batch is one row.
template <LossFunction F>
struct FunctionTask {
  const F& function;
  FunctionEpochs epochs;
  int64_t batches() const { return epochs.batches(0); }
  int64_t batch(int64_t epoch, int64_t index) const { return epochs.updates_before(epoch) * epochs.accumulate + index; }
  int64_t rows(int64_t) const { return 1; }
  Loss loss(int64_t number, int64_t, int64_t, const Run& run) const { return {function(number, run), 1}; }
};

template <class Task>
const FunctionEpochs* function_epochs(const Task&) {
  return nullptr;
}
template <LossFunction F>
const FunctionEpochs* function_epochs(const FunctionTask<F>& task) {
  return &task.epochs;
}

}  // namespace detail
}  // namespace qkv
