// A pretrained encoder with its tokenizer: texts become vectors, classes, or states to look at.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/attention/edits.h"
#include "qkv/core/api.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/tasks/attention_maps.h"
#include "qkv/tasks/pretrained/bert.h"
#include "qkv/tasks/pretrained/sentence_modules.h"

namespace QKV_API qkv {

struct EmbedOptions {
  TextPooling pooling = TextPooling::mean;
  bool normalize = false;       // every vector to length 1
  int64_t most = 512;           // tokens of a text, special ones included; the rest is cut off
  int64_t batch_tokens = 2048;  // computed at once, padding included
};

struct TextVectors {
  Tensor rows;                    // (texts, width)
  std::vector<int64_t> tokens;    // of every text, as far as it was read, special ones included
  std::vector<int64_t> left_out;  // tokens of every text that were cut off
};

class SentenceEncoder {
 public:
  /// From a pretrained folder or a run.
  explicit SentenceEncoder(const std::string& folder);

  const EncoderModel& model() const { return model_; }
  const BertConfig& config() const { return config_; }
  Architecture architecture() const { return architecture_; }
  const SentenceModules& modules() const { return modules_; }
  const PretrainedTokenizer& tokenizer() const { return *tokenizer_; }
  ModelFacts facts() const { return config_.model.facts(); }
  /// The most tokens of a text, special ones included.
  int64_t longest() const { return config_.model.longest(); }

  /// A text as the model reads it, at most `most` tokens of it.
  EncodedText read(const std::string& text, int64_t most) const;
  /// The same; a text that does not fit is refused.
  EncodedText read_whole(const std::string& text) const;

  /// What the folder's modules say.
  EmbedOptions defaults() const;
  /// A row of numbers for every text, which depends on that text alone.
  TextVectors embed(std::span<const std::string> texts, const EmbedOptions& options) const;
  /// (1, n, width).
  Tensor states(const EncodedText& text, const Run& run = {}) const;
  /// Probabilities of the classes, (texts, classes), of an encoder with a head of classes.
  Tensor classify(std::span<const std::string> texts, const EmbedOptions& options, TextVectors& sizes) const;
  StackAttention attention(const EncodedText& text, const AttentionEdits& edits = {},
                           const MapsWanted& wanted = {}) const;

  /// Every token as the vocabulary has it, and as a label of an axis.
  std::vector<std::string> pieces(const EncodedText& text) const;
  std::vector<std::string> labels(const EncodedText& text) const;

 private:
  // Calls use(first, rows, states (B, n, width), lengths) for batches of texts of like length.
  template <class Use>
  void in_batches(std::span<const std::string> texts, const EmbedOptions& options, TextVectors& sizes,
                  const Use& use) const;

  Architecture architecture_ = Architecture::bert;
  BertConfig config_;
  SentenceModules modules_;
  std::optional<PretrainedTokenizer> tokenizer_;
  EncoderModel model_;
};

}  // namespace qkv
