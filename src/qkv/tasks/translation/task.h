// Translation as a task for fit: batches of ids, and the loss of some rows of one.
#pragma once

#include "qkv/data/translation.h"
#include "qkv/tasks/translation/data.h"
#include "qkv/tasks/translation/model.h"
#include "qkv/train/fit.h"

namespace qkv {

class TranslationTask {
 public:
  TranslationTask(const TranslationModel& model, const TranslationConfig& config, TranslationBatches batches, int32_t pad)
      : model_(model), config_(config), batches_(std::move(batches)), pad_(pad) {}

  int64_t batches() const { return batches_.batches(); }
  TranslationBatch batch(int64_t epoch, int64_t index) const { return batches_.batch(epoch, index); }
  int64_t rows(const TranslationBatch& batch) const { return batch.source.size(0); }
  Loss loss(const TranslationBatch& batch, int64_t begin, int64_t end, const Run& run) const;
  /// Of a mean over the target tokens of all those batches. The book's loss is a sum: 1.
  double share(const TranslationBatch& batch, std::span<const TranslationBatch> of) const;
  /// Mean cross-entropy a target token over all batches, in nats, without dropout.
  double validate() const;

 private:
  double counted(const TranslationBatch& batch) const;

  const TranslationModel& model_;
  const TranslationConfig& config_;
  TranslationBatches batches_;
  int32_t pad_;
};

/// To how many tokens a source sentence is padded at least: an encoder that runs through the padding, as the book's, must see as much of
/// it after training as before. Else 0.
int64_t source_steps(const TranslationConfig& config);

/// The batches a configuration asks for.
TranslationBatches training_batches(const TranslationConfig& config, std::vector<IdPair> pairs, const Tokenizers& tokenizers);

}  // namespace qkv
