// StepModel: the interface of a model that writes one token at a time, for search and sampling.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>

#include "qkv/core/api.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Holds the state of R partial outputs ("rows").
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// Feeds every row its last token, (R) -> scores of the next one, (R, V), before softmax.
  virtual Tensor step(const Ids& tokens) = 0;
  /// Row i becomes the old row rows[i]; rows may be repeated or dropped.
  virtual void select(std::span<const int32_t> rows) = 0;
  /// Whether attention() will be called in the next steps: a model may be faster if it need not keep it. The default is
  /// true.
  virtual void keep_attention(bool /*wanted*/) {}
  /// The attention of the last step, (R, maps, T): one map per layer and head. Absent for a model without attention.
  virtual Tensor attention() const { return {}; }
};

/// A StepModel that reads one source sentence per row.
class SourceStepModel : public StepModel {
 public:
  /// Reads padded source sentences (B, T) with lengths (B); afterwards there are B rows.
  virtual void start(const Ids& source, const Ids& lengths) = 0;
};

/// A token that is final in an output.
struct WrittenToken {
  size_t sentence, sample;  // the sentence, and which of its samples; a search writes sample 0
  int32_t token;            // may be the end
  double log_probability;   // of this token under the model
};

/// Progress reports and stopping while decoding.
struct DecodeWatch {
  /// Called by greedy search and sampling; with a beam no token is final before the end.
  std::function<void(const WrittenToken&)> on_token = {};
  /// Set by another thread or a signal: the outputs so far are returned, cut off.
  const std::atomic<bool>* stop = nullptr;
  bool stopped() const { return stop && stop->load(std::memory_order_relaxed); }
};

}  // namespace qkv
