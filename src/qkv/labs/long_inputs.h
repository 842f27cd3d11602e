// What the steps of the lab of long inputs share: the kinds of attention, small tasks, and what was measured.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "qkv/attention/attention_kind.h"
#include "qkv/labs/lab.h"
#include "qkv/models/transformer_decoder.h"
#include "qkv/train/fit.h"

namespace qkv::labs::long_inputs {

/// Every kind, exact first, with sizes for a text of n tokens.
struct Kind {
  Text name;
  AttentionKindOptions options;
};
std::vector<Kind> kinds(int64_t n);

/// Tasks that need tokens from far away: every row of ids has its answers, or -1 where nothing is asked.
enum class Task { copy, brackets, sorting, haystack };
inline constexpr int64_t kTasks = 4, kTaskLength = 48, kSymbols = 8, kVocabulary = 2 * kSymbols + 1;
struct TaskRows {
  Ids ids, answers;  // (B, kTaskLength)
};
TaskRows draw_rows(Task task, int64_t rows, const Rng& rng);
Text name_of(Task task);

/// A model of two layers, trained on one task with one kind of attention.
TransformerDecoder trained_on(Task task, const AttentionKindOptions& kind, const Rng& rng, Observer& observer);
/// The share of right answers on new rows.
double share_right(const TransformerDecoder& model, const TaskRows& rows);

/// What the steps measured, by kind.
struct Measured {
  std::vector<double> milliseconds, megabytes, error;  // at 8,192 tokens
  std::vector<std::array<double, kTasks>> right;       // trained with that kind
  std::vector<double> rise;                            // of the loss of a model trained with exact attention; NaN: none
};

// long_inputs.cpp
void methods(Page& page);
void weights_in_effect(Page& page);
void linear_is_its_definition(Page& page);
// long_inputs_cost.cpp
void cost(Page& page);
void exact_reach(Page& page);
// long_inputs_tasks.cpp
void tasks(Page& page);
void swapped(Page& page);
void summary(Page& page);

}  // namespace qkv::labs::long_inputs
