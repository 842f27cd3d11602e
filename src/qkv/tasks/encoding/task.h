// Training of an encoder as a task: batches of texts, the loss of hidden words or of classes, and validation.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/array.h"
#include "qkv/run/callbacks.h"
#include "qkv/tasks/encoding/data.h"
#include "qkv/train/fit.h"

namespace QKV_API qkv {

struct EncodingBatch {
  std::vector<int64_t> rows;  // numbers of texts
  int64_t epoch = 0;
};

class EncodingTask {
 public:
  /// `mask` is the token of a hidden word and `tokens` their number. All references must outlive it.
  EncodingTask(const EncoderModel& model, const EncodingConfig& config, const EncodingData& data, int32_t mask,
               int32_t tokens);

  int64_t batches() const;
  /// In an order that depends on seed and epoch; which words are hidden depends on seed, epoch and text alone.
  EncodingBatch batch(int64_t epoch, int64_t index) const;
  int64_t rows(const EncodingBatch& batch) const { return std::ssize(batch.rows); }
  Loss loss(const EncodingBatch& batch, int64_t begin, int64_t end, const Run& run) const;
  /// Hidden words, or texts.
  double count(const EncodingBatch& batch) const;
  Counted counted() const { return classifies() ? Counted::texts : Counted::tokens; }

  /// The mean loss of the validation texts, in nats, without dropout; the same words are hidden every time. For classes
  /// also the share of right answers.
  Validated validate(Ranks* ranks = nullptr) const;
  /// Attention on the first four texts, of the validation set if there is one: "text_0" (layers, heads, tokens,
  /// tokens) and so on.
  std::map<std::string, Array> attention() const;
  /// A hash of all texts and classes.
  int64_t fingerprint() const;

 private:
  struct Padded;
  bool classifies() const { return config_.model.bert.head == EncoderHead::classes; }
  Padded padded(const LabelledTexts& set, std::span<const int64_t> rows, const Rng& rng) const;
  Tensor summed_loss(const Padded& batch, float label_smoothing, const Run& run) const;
  Tensor states(const Padded& batch, const Run& run) const;

  const EncoderModel& model_;
  const EncodingConfig& config_;
  const EncodingData& data_;
  int32_t mask_, tokens_;
  Rng rng_;
  mutable std::vector<int64_t> order_;  // of the last epoch that was asked for
  mutable int64_t order_epoch_ = -1;
};

}  // namespace qkv
