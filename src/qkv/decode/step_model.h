// StepModel: what a search needs of a model that writes one token after the other.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "qkv/tensor/tensor.h"

namespace qkv {

/// Holds the state of R partial outputs ("rows").
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// Feeds every row its last token, (R) -> scores of the next one, (R, V), before softmax.
  virtual Tensor step(const Ids& tokens) = 0;
  /// Row i becomes what row rows[i] was; rows may repeat or go.
  virtual void select(std::span<const int32_t> rows) = 0;
  /// Whether attention() will be asked for in the steps to come: a model that need not keep it may be quicker. Until
  /// told, it will.
  virtual void keep_attention(bool /*wanted*/) {}
  /// Where the last step looked, (R, maps, T): one map for each layer and head. Absent for a model without attention.
  virtual Tensor attention() const { return {}; }
};

/// A StepModel that reads a source sentence for every row.
class SourceStepModel : public StepModel {
 public:
  /// Reads source sentences, padded, (B, T) with lengths (B); there are B rows then.
  virtual void start(const Ids& source, const Ids& lengths) = 0;
};

/// A token that an output has got for certain.
struct WrittenToken {
  size_t sentence, sample;  // of which sentence, and which of its samples; a search writes sample 0
  int32_t token;            // the end included
  double log_probability;   // of this token, as the model has it
};

/// What decoding tells while it is at work.
struct DecodeWatch {
  std::function<void(const WrittenToken&)> on_token =
      {};  // greedy search and sampling; with a beam nothing is certain before the end
  const std::atomic<bool>* stop =
      nullptr;  // set by another thread or a signal: what is written so far is returned, cut off
  bool stopped() const { return stop && stop->load(std::memory_order_relaxed); }
};

}  // namespace qkv
