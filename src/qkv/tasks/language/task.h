// Language modelling as a task: blocks of a text, the loss of some rows of a batch, and the validation loss.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/array.h"
#include "qkv/models/language_model.h"
#include "qkv/tasks/attention_maps.h"
#include "qkv/tasks/language/config.h"
#include "qkv/train/fit.h"

namespace QKV_API qkv {

/// Blocks of a text, hidden as the objective requires. n: tokens read, m: tokens asked for.
struct LanguageBatch {
  Ids read;     // (B, n)
  Ids written;  // spans: (B, m), what the decoder has read; else absent
  Ids wanted;   // (B, n), or (B, m) for spans: the tokens asked for, kNotAsked elsewhere
};

/// The blocks of `length` tokens that begin at these places, for the model's objective. A causal model is asked for the
/// token after the block, too. Block i is hidden by rng.at(i).
LanguageBatch language_batch(const LanguageModel& model, std::span<const int32_t> text, std::span<const int64_t> begins,
                             int64_t length, const Rng& rng);
/// The number of tokens that a batch asks for.
double asked(const Ids& wanted);

/// The sum of the losses of all tokens that the batch asks for, in nats, recorded.
Tensor language_loss(const LanguageModel& model, const LanguageBatch& batch, float label_smoothing, const Run& run);

/// The mean loss of a text, in nats per token, without dropout: the text is cut into blocks of model.context tokens,
/// and a causal model is asked for all of its tokens but the first. The other objectives hide tokens by `rng`.
struct TextLoss {
  double sum = 0, count = 0;
  double mean() const { return sum / std::max(count, 1.0); }
};
/// Ranks share the work.
TextLoss text_loss(const LanguageModel& model, std::span<const int32_t> text, const Rng& rng, Ranks* ranks = nullptr);

/// What the model attends to in a batch of one row.
TransformerAttention language_attention(const LanguageModel& model, const LanguageBatch& batch,
                                        const MapsWanted& wanted = {});

class LanguageTask {
 public:
  /// `name` of the text, for errors. The model must outlive it.
  LanguageTask(const LanguageModel& model, const LanguageConfig& config, std::vector<int32_t> train,
               std::vector<int32_t> valid, const std::string& name);

  int64_t batches() const { return batches_; }
  LanguageBatch batch(int64_t epoch, int64_t index) const;
  int64_t rows(const LanguageBatch& batch) const { return batch.read.size(0); }
  Loss loss(const LanguageBatch& batch, int64_t begin, int64_t end, const Run& run) const;
  double count(const LanguageBatch& batch) const { return asked(batch.wanted); }

  bool validates() const { return std::ssize(valid_) > 1; }
  /// The mean loss of the validation text; the same tokens are hidden every time.
  double validate(Ranks* ranks = nullptr) const;
  /// Attention on the first tokens of the validation text: "decoder" (layers, heads, n, n), and so on.
  std::map<std::string, Array> attention() const;
  /// A hash of both texts.
  int64_t fingerprint() const;
  const std::vector<int32_t>& train_ids() const { return train_; }
  const std::vector<int32_t>& valid_ids() const { return valid_; }

 private:
  int64_t needed() const;  // tokens of the text that a block needs

  const LanguageModel& model_;
  const LanguageConfig config_;
  std::vector<int32_t> train_, valid_;
  int64_t blocks_ = 0, batches_ = 0;
  mutable int64_t planned_epoch_ = -1;  // the order of the blocks in the last epoch asked for
  mutable std::vector<int64_t> plan_;
};

}  // namespace qkv
