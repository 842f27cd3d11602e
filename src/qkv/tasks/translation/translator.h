// A trained model with its tokenizers: sentences in, translations out.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/decode/force.h"
#include "qkv/decode/sample.h"
#include "qkv/decode/search.h"
#include "qkv/tasks/translation/data.h"
#include "qkv/tasks/translation/model.h"

namespace QKV_API qkv {

struct TranslateOptions {
  int64_t beam = 1, best = 1;
  double length_penalty = 0.75;
  int64_t max_length = 50;
  int64_t rows = 64;  // sentences decoded at once
  bool keep_attention = false;
  /// Draw samples instead of searching: their number, temperature, cut-offs and seed; the rest is as above.
  std::optional<SampleOptions> sampling = {};
  AttentionEdits edits = {};  // for every sentence; query i is the step that writes token i
  DecodeWatch watch = {};
  std::vector<SearchNode>* tree = nullptr;  // of the search, for one sentence
  /// For errors: the name of the text, and the number of its first sentence, 0 if it is the only one.
  Text name = {};
  size_t first_line = 1;
};

/// source: the ids that the model read, <eos> included. Attention of a hypothesis is (steps, maps, source ids).
struct Translation {
  std::vector<int32_t> source;
  Writing writing;                     // how the sentence is written
  std::vector<Hypothesis> hypotheses;  // best first, samples in the order drawn; none for an empty sentence
};

struct ForceOptions {
  int64_t rows = 0;  // pairs decoded at once; 0: from the configuration's decoding block
  bool keep_attention = true;
  AttentionEdits edits = {};  // as for translating
  int64_t likeliest = 0;      // tokens that could have been written, kept for each step
  /// For errors: the names of the texts, and the number of their first sentences, 0 if there is only one.
  Text source_name = {}, target_name = {};
  size_t first_line = 1;
};

struct ForcedTranslation {
  std::vector<int32_t> source, target;  // both with <eos>
  Forced forced;
};

class Translator {
 public:
  /// From a model or run folder, or from a pretrained folder.
  explicit Translator(const std::string& folder);
  /// From a model in memory, which must outlive it.
  Translator(const TranslationModel& model, Tokenizers tokenizers, const TranslationConfig& config);

  const TranslationConfig& config() const { return config_; }
  const Tokenizers& tokenizers() const { return tokenizers_; }
  const TranslationModel& model() const { return *model_; }
  /// The options of the configuration's decoding block.
  TranslateOptions defaults() const;

  /// In the given order, for any batch size. A sentence of only blanks has no hypotheses. The samples of a sentence
  /// depend on its line, counted from first_line, and on the seed.
  std::vector<Translation> translate(std::span<const std::string> sentences, const TranslateOptions& options) const;
  /// The number of sentences that translate() accepts, from the first: the next one is longer than the model can read.
  size_t readable(std::span<const std::string> sentences) const;
  /// The words of a hypothesis, with capitals and punctuation written as in the translated sentence.
  std::string text(const Hypothesis& hypothesis, Writing writing = {}) const {
    return tokenizers_.target.decode(hypothesis.tokens, writing);
  }

  /// The ids of a pair as force() reads them, both with <eos>; a side of only blanks has none.
  ForcedTranslation encoded(const std::string& source, const std::string& target,
                            const ForceOptions& options = {}) const;
  /// Scores and attention of given translations; nothing for a pair with an empty side.
  std::vector<ForcedTranslation> force(const SentencePairs& pairs, const ForceOptions& options = {}) const;
  /// The same for ids, both sides with <eos>: hypotheses keep their own tokens. A hypothesis that was cut off has none.
  std::vector<ForcedTranslation> force_ids(std::vector<std::vector<int32_t>> sources,
                                           std::vector<std::vector<int32_t>> targets,
                                           const ForceOptions& options = {}) const;

 private:
  size_t most_tokens() const;  // of a sentence, without <eos>
  int64_t maps() const { return facts_.source_maps().value_or(MapGroup{}).count(); }
  std::vector<int32_t> encode(const std::string& sentence, const Tokenizer& tokenizer, const Text& name,
                              size_t line) const;
  struct Opened;
  static Opened opened(const std::string& folder);
  explicit Translator(Opened opened);
  TranslationConfig config_;
  Tokenizers tokenizers_;
  std::unique_ptr<TranslationModel> own_;
  const TranslationModel* model_;
  ModelFacts facts_;
  std::unique_ptr<SourceStepModel> decoder_of(const AttentionEdits& edits) const;
  std::vector<int32_t> never_;  // tokens that are never written
};

}  // namespace qkv
