// A trained language model with its tokenizer: continues prompts, fills gaps, scores texts.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/attention/edits.h"
#include "qkv/core/api.h"
#include "qkv/tasks/language/config.h"
#include "qkv/tasks/language/task.h"

namespace QKV_API qkv {

/// A gap in a prompt.
inline constexpr std::string_view kGap = "[MASK]";

struct GenerateOptions {
  int64_t samples = 1;  // texts per prompt
  double temperature = 0.8, top_p = 1, repetition_penalty = 1;
  int64_t top_k = 0, max_tokens = 200;
  uint64_t seed = 0;
  std::vector<std::string> stops = {};  // a text ends before the first of these
  int64_t rows = 64;                    // prompts continued at once
  AttentionEdits edits = {};            // query i: token i of what the model has read, at most model.context tokens
  /// Called with each new piece of a text as soon as it is final.
  std::function<void(size_t prompt, size_t sample, const std::string& piece)> on_text = {};
  const std::atomic<bool>* stop = nullptr;  // set by a signal: the texts so far are returned
};

/// length: max_tokens were written; stop: a stop string; end: a token of a pretrained model that ends a text.
enum class TextEnd { length, stop, end };
constexpr std::array<std::string_view, 3> names(TextEnd) { return {"length", "stop", "end"}; }

struct GeneratedText {
  std::string text;                       // after the prompt, without the stop string
  std::vector<int32_t> tokens;            // all that were written
  std::vector<double> log_probabilities;  // of every token, under the model
  TextEnd end = TextEnd::length;
};

struct Continued {
  std::vector<int32_t> prompt;
  int64_t unread = 0;  // tokens at the beginning of the prompt that the model did not read: it reads model.context
  std::vector<GeneratedText> texts;
};

/// A likely token at a gap.
struct Candidate {
  int32_t token = 0;
  double probability = 0;
};
struct Filled {
  std::string text;                               // with the likeliest token, or the written span, at each gap
  std::vector<std::vector<Candidate>> gaps = {};  // masked: per gap, likeliest first
  std::vector<std::string> spans = {};            // spans: per gap
  double log_probability = 0;                     // spans: of everything written
};

struct TextScore {
  int64_t tokens = 0, characters = 0, unknown = 0;
  double nats = 0, scored = 0;  // the sum over the tokens that the model was asked for, and their number
  double nats_per_token() const { return nats / std::max(scored, 1.0); }
  double perplexity() const;
  double bits_per_character() const;  // meaningful for a causal model, which is asked for every token
};

class LanguageGenerator {
 public:
  /// From a run folder or a pretrained one.
  explicit LanguageGenerator(const std::string& folder);
  /// From a model in memory, which must outlive it.
  LanguageGenerator(const LanguageModel& model, TextTokenizer tokenizer, const LanguageConfig& config);

  const LanguageConfig& config() const { return config_; }
  const TextTokenizer& tokenizer() const { return tokenizer_; }
  const LanguageModel& model() const { return *model_; }
  LanguageObjective objective() const { return config_.model.objective; }
  /// The options of the configuration's decoding block.
  GenerateOptions defaults() const;

  /// Continues prompts, causal models only. An empty prompt begins after a line end, or as a pretrained model says. The
  /// texts of a prompt depend on its tokens and the options, not on the other prompts.
  std::vector<Continued> generate(std::span<const std::string> prompts, const GenerateOptions& options) const;
  /// Fills the gaps of a prompt, masked models and spans; spans are written at options.temperature. `candidates` per
  /// gap. Without a gap, a model of spans writes one at the end.
  Filled fill(const std::string& prompt, int64_t candidates, const GenerateOptions& options) const;

  /// The loss of a text as in validation: in blocks of model.context tokens.
  TextScore score(const std::string& text, const Text& name) const;

  /// A text as the model reads it, with its gaps, as a batch of one row; for spans, what it writes is `fill` or empty.
  LanguageBatch batch_of(const std::string& text) const;
  /// Characters or words of a text that the model does not know, each once; gaps are none of them.
  std::vector<std::string> unknown(std::string text) const;
  /// The tokens of ids, special ones included, as they are shown.
  std::vector<std::string> tokens(std::span<const int32_t> ids) const;

 private:
  struct Opened;
  static Opened opened(const std::string& folder);
  explicit LanguageGenerator(Opened opened);
  struct Gapped {
    std::vector<int32_t> ids;    // with special tokens at the gaps
    std::vector<size_t> places;  // of the gaps
  };
  Gapped gapped(const std::string& prompt) const;
  std::vector<int32_t> never() const;
  Filled fill_masks(const Gapped& prompt, int64_t candidates, const AttentionEdits& edits) const;
  Filled fill_spans(const Gapped& prompt, const GenerateOptions& options) const;

  LanguageConfig config_;
  TextTokenizer tokenizer_;
  std::unique_ptr<LanguageModel> own_;
  const LanguageModel* model_;
};

}  // namespace qkv
