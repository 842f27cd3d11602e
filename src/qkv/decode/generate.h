// Text after prompts, by a decoder that writes alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/check.h"
#include "qkv/decode/sample.h"
#include "qkv/tensor/run.h"

namespace QKV_API qkv {

/// A decoder with start, prefill, step and select (models/transformer_decoder.h) as a StepModel: one row per prompt,
/// which has read all of its prompt but its last token, in one pass.
///
/// With a window, a row reads at most that many tokens at once. Of a longer prompt it reads the last ones; when it is
/// full while writing, it reads the last half of them again, in one pass, and continues from there. So the cost of a
/// token does not grow with the length of the text. What happens to a row does not depend on the other rows.
template <class Decoder>
class PromptedSteps : public StepModel {
 public:
  using State = decltype(std::declval<const Decoder&>().start(1));

  /// `run` may carry a probe that edits attention; it must outlive the steps.
  PromptedSteps(const Decoder& decoder, std::span<const std::vector<int32_t>> prompts, int64_t window = 0, Run run = {})
      : decoder_(decoder), window_(window), run_(std::move(run)) {
    std::vector<int32_t> short_ones, long_ones;
    for (size_t r = 0; r < prompts.size(); ++r) {
      const std::vector<int32_t>& prompt = prompts[r];
      check(!prompt.empty(), "[generate] the prompt is empty: it needs at least one token");
      const auto most = window > 0 ? static_cast<std::ptrdiff_t>(window) : std::ssize(prompt);
      const auto first = prompt.end() - std::min(most, std::ssize(prompt));
      rows_.push_back({{first, prompt.end() - 1}, 0, 0});
      (rows_.back().read.empty() ? short_ones : long_ones).push_back(static_cast<int32_t>(r));
    }
    start(short_ones);
    start(long_ones);
  }

  Tensor step(const Ids& tokens) override {
    reread_full_rows();
    std::vector<std::vector<int32_t>> given(groups_.size());
    for (size_t r = 0; r < rows_.size(); ++r) {
      const int32_t token = tokens.ptr()[r];
      rows_[r].read.push_back(token);
      given[rows_[r].group].push_back(0);
    }
    for (size_t r = 0; r < rows_.size(); ++r) given[rows_[r].group][rows_[r].place] = tokens.ptr()[r];
    if (groups_.size() == 1) return decoder_.step(groups_[0], ids_of(given[0]), run_);
    std::vector<Tensor> scores;
    for (size_t g = 0; g < groups_.size(); ++g) scores.push_back(decoder_.step(groups_[g], ids_of(given[g]), run_));
    const int64_t vocabulary = scores.front().size(1);
    Tensor out = Tensor::empty({std::ssize(rows_), vocabulary});
    for (size_t r = 0; r < rows_.size(); ++r)
      std::copy_n(scores[rows_[r].group].ptr() + static_cast<int64_t>(rows_[r].place) * vocabulary, vocabulary,
                  out.mutable_ptr() + static_cast<int64_t>(r) * vocabulary);
    return out;
  }

  void select(std::span<const int32_t> rows) override {
    std::vector<Row> chosen;
    std::vector<std::vector<int32_t>> places(groups_.size());
    for (const int32_t row : rows) {
      chosen.push_back(rows_[static_cast<size_t>(row)]);
      std::vector<int32_t>& of_group = places[chosen.back().group];
      of_group.push_back(static_cast<int32_t>(std::exchange(chosen.back().place, of_group.size())));
    }
    rows_ = std::move(chosen);
    for (size_t g = 0; g < groups_.size(); ++g) decoder_.select(groups_[g], places[g]);
    drop_empty_groups();
  }

 private:
  struct Row {
    std::vector<int32_t> read;  // the tokens in its state
    size_t group, place;        // which state, and which row of it
  };

  static Ids ids_of(const std::vector<int32_t>& tokens) { return Ids({std::ssize(tokens)}, tokens); }

  // A new group of these rows, which reads what they have read.
  void start(const std::vector<int32_t>& rows) {
    if (rows.empty()) return;
    State state = decoder_.start(std::ssize(rows));
    size_t longest = 0;
    for (const int32_t r : rows) longest = std::max(longest, rows_[static_cast<size_t>(r)].read.size());
    Ids ids = Ids::empty({std::ssize(rows), static_cast<int64_t>(longest)}), lens = Ids::empty({std::ssize(rows)});
    for (size_t i = 0; i < rows.size(); ++i) {
      Row& row = rows_[static_cast<size_t>(rows[i])];
      int32_t* into = ids.mutable_ptr() + i * longest;
      std::fill(std::copy(row.read.begin(), row.read.end(), into), into + longest, 0);
      lens.mutable_ptr()[i] = static_cast<int32_t>(row.read.size());
      row.group = groups_.size();
      row.place = i;
    }
    if (longest > 0) decoder_.prefill(state, ids, lens, run_);
    groups_.push_back(std::move(state));
  }

  void reread_full_rows() {
    if (window_ == 0) return;
    std::vector<int32_t> full, others;
    for (size_t r = 0; r < rows_.size(); ++r)
      (std::ssize(rows_[r].read) >= window_ ? full : others).push_back(static_cast<int32_t>(r));
    if (full.empty()) return;
    // The others stay in their states, in the same order.
    std::vector<std::vector<int32_t>> places(groups_.size());
    for (const int32_t r : others) {
      Row& row = rows_[static_cast<size_t>(r)];
      std::vector<int32_t>& of_group = places[row.group];
      of_group.push_back(static_cast<int32_t>(std::exchange(row.place, of_group.size())));
    }
    for (size_t g = 0; g < groups_.size(); ++g) decoder_.select(groups_[g], places[g]);
    const std::ptrdiff_t kept = std::max<std::ptrdiff_t>(1, window_ / 2);
    for (const int32_t r : full) {
      std::vector<int32_t>& read = rows_[static_cast<size_t>(r)].read;
      read.erase(read.begin(), read.end() - kept);
    }
    start(full);
    drop_empty_groups();
  }

  void drop_empty_groups() {
    std::vector<State> kept;
    std::vector<size_t> number(groups_.size(), 0);
    for (size_t g = 0; g < groups_.size(); ++g) {
      number[g] = kept.size();
      if (groups_[g].rows() > 0) kept.push_back(std::move(groups_[g]));
    }
    groups_ = std::move(kept);
    for (Row& row : rows_) row.group = number[row.group];
  }

  const Decoder& decoder_;
  int64_t window_;
  Run run_;
  std::vector<Row> rows_;
  std::vector<State> groups_;
};

/// No token ends a text.
inline constexpr int32_t kNoEnd = -1;

/// What the decoder writes after the prompt: options.samples texts, each without the prompt and without the end.
/// Without a token that ends a text (options.end = kNoEnd), they have options.max_length tokens.
template <class Decoder>
std::vector<std::vector<int32_t>> generate(const Decoder& decoder, std::span<const int32_t> prompt,
                                           const SampleOptions& options) {
  const std::vector<int32_t> one(prompt.begin(), prompt.end());
  PromptedSteps<Decoder> steps(decoder, std::span(&one, 1));
  const uint64_t number = 0;
  std::vector<std::vector<int32_t>> texts;
  const auto drawn = sample(steps, prompt.last(1), std::span(&number, 1), options);
  for (const Hypothesis& h : drawn.front()) texts.push_back(h.tokens);
  return texts;
}

}  // namespace qkv
