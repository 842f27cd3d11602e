// Translation as a task: batches of ids, the loss of some rows of a batch, and the validation loss.
#pragma once

#include <map>

#include "qkv/core/api.h"
#include "qkv/data/translation.h"
#include "qkv/io/array.h"
#include "qkv/tasks/translation/data.h"
#include "qkv/tasks/translation/model.h"
#include "qkv/train/fit.h"

namespace QKV_API qkv {

class TranslationTask {
 public:
  TranslationTask(const TranslationModel& model, const TranslationConfig& config, std::vector<IdPair> train,
                  std::vector<IdPair> valid, const Tokenizers& tokenizers);

  int64_t batches() const { return train_.batches(); }
  TranslationBatch batch(int64_t epoch, int64_t index) const { return train_.batch(epoch, index); }
  int64_t rows(const TranslationBatch& batch) const { return batch.source.size(0); }
  Loss loss(const TranslationBatch& batch, int64_t begin, int64_t end, const Run& run) const;
  /// Target tokens of a batch.
  double count(const TranslationBatch& batch) const;
  /// The book's loss is a sum.
  Objective objective() const { return config_.book.loss == LossUnit::book ? Objective::sum : Objective::mean; }

  /// Mean cross-entropy per target token of the validation pairs, in nats, without dropout; ranks share the work.
  double validate(Ranks* ranks = nullptr) const;
  /// Attention on the first four pairs, from the validation pairs if there are any, with their targets forced:
  /// "sentence_0" and so on.
  std::map<std::string, Array> attention() const;
  /// A hash of the training sentences and their order.
  int64_t fingerprint() const;
  const std::vector<IdPair>& pairs() const { return train_.pairs(); }
  const std::vector<IdPair>& valid_pairs() const { return valid_.pairs(); }

 private:
  TranslationBatches batches_of(std::vector<IdPair> pairs, BatchOptions options) const;

  const TranslationModel& model_;
  TranslationConfig config_;
  int64_t source_steps_;
  int32_t pad_source_, pad_target_, bos_;
  TranslationBatches train_, valid_;
};

/// The minimum padded length of a source sentence: an encoder that runs through the padding, like the book's, must see
/// the same amount of it after training. 0 for other encoders.
int64_t source_steps(const TranslationConfig& config);

}  // namespace qkv
