// A model of random scores that reveals wrongly moved rows.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "qkv/decode/step_model.h"

namespace qkv::tests {

inline constexpr int32_t kBegin = 0, kEnd = 1;

// The scores of the next token are a pseudo-random function of the source sentence and all tokens so far, so that a row
// that was moved wrongly gives another result. "Attention" of a step is (source, length of the prefix, last token).
class Toy : public SourceStepModel {
 public:
  explicit Toy(int64_t vocabulary) : vocabulary_(vocabulary) {}
  void start(const Ids& source, const Ids&) override {
    rows_.clear();
    for (int64_t b = 0; b < source.size(0); ++b) rows_.push_back({source.ptr()[b * source.size(1)]});
  }
  Tensor step(const Ids& tokens) override {
    EXPECT_EQ(tokens.numel(), static_cast<int64_t>(rows_.size()));
    rows_of_steps.push_back(rows_.size());
    Tensor out = Tensor::empty({tokens.numel(), vocabulary_});
    for (size_t r = 0; r < rows_.size(); ++r) {
      rows_[r].push_back(tokens.ptr()[r]);
      const Tensor scores = scores_of(rows_[r]);
      std::copy_n(scores.ptr(), vocabulary_, out.mutable_ptr() + static_cast<int64_t>(r) * vocabulary_);
    }
    return out;
  }
  void select(std::span<const int32_t> rows) override {
    ++moves;
    std::vector<std::vector<int32_t>> kept;
    for (const int32_t r : rows) kept.push_back(rows_.at(static_cast<size_t>(r)));
    rows_ = kept;
  }
  Tensor attention() const override {
    Tensor out = Tensor::empty({static_cast<int64_t>(rows_.size()), 1, 3});
    for (size_t r = 0; r < rows_.size(); ++r) {
      float* row = out.mutable_ptr() + 3 * r;
      row[0] = static_cast<float>(rows_[r][0]);
      row[1] = static_cast<float>(rows_[r].size() - 1);
      row[2] = static_cast<float>(rows_[r].back());
    }
    return out;
  }
  virtual Tensor scores_of(const std::vector<int32_t>& history) const {
    Rng rng(7);
    for (const int32_t h : history) rng = rng.at(static_cast<uint64_t>(h));
    return normal({vocabulary_}, rng, 0, 2);
  }
  std::vector<size_t> rows_of_steps;
  int moves = 0;

 protected:
  int64_t vocabulary_;
  std::vector<std::vector<int32_t>> rows_;
};

inline Ids sources(std::initializer_list<int32_t> ids) { return Ids({static_cast<int64_t>(ids.size()), 1}, ids); }
inline Ids ones_like(const Ids& source) {
  Ids out = Ids::empty({source.size(0)});
  std::fill_n(out.mutable_ptr(), source.size(0), 1);
  return out;
}

}  // namespace qkv::tests
