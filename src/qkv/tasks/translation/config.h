// All that a translation run depends on: data, model, training and decoding, with the book's settings as presets.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/normalize.h"
#include "qkv/io/settings.h"
#include "qkv/models/seq2seq.h"
#include "qkv/models/transformer.h"
#include "qkv/train/schedule.h"

namespace qkv {

enum class ModelKind { seq2seq, transformer };
constexpr std::array<std::string_view, 2> names(ModelKind) { return {"seq2seq", "transformer"}; }

/// How sentences become tokens. Those of the book also say which pairs of its file are read.
enum class TokenizerKind { book, book_en, spaces, words, bpe, unigram };
constexpr std::array<std::string_view, 6> names(TokenizerKind) { return {"book", "book-en", "spaces", "words", "bpe", "unigram"}; }

/// token: the mean over target tokens. book: the sum over the batch, divided by num_steps.
enum class LossUnit { token, book };
constexpr std::array<std::string_view, 2> names(LossUnit) { return {"token", "book"}; }

/// Where there is validation: the weights with the lowest loss, or the last.
enum class KeptWeights { best, last };
constexpr std::array<std::string_view, 2> names(KeptWeights) { return {"best", "last"}; }

struct TranslationDataConfig {
  std::string pairs;                           // TSV of two columns, or "en-fr": the built-in corpus
  std::string source, target;                  // or two line-aligned files
  std::string valid_pairs, valid_source, valid_target;
  double valid_share = 0;                      // else this share of the pairs, split by distinct source
  int64_t limit = 0;                           // sentence pairs read; 0: all
  bool reverse = false;                        // translate from the second side into the first
  TokenizerKind tokenizer = TokenizerKind::words;
  int64_t min_count = 2;                       // words seen less often are <unk>
  int64_t vocabulary = 8000;                   // subword pieces
  bool shared_vocabulary = false;              // one for both sides
  bool lowercase = false;                      // of subwords
  Normalization normalize = Normalization::nfkc;  // of subwords
  int64_t max_tokens = 0;                      // longer training pairs are left out; 0: none is
  int64_t corpus_size = 20000, corpus_seed = 1;  // of the built-in corpus

  bool built_in() const { return pairs == "en-fr"; }
  bool has_subwords() const { return tokenizer == TokenizerKind::bpe || tokenizer == TokenizerKind::unigram; }
};

struct TranslationModelConfig {
  ModelKind kind = ModelKind::seq2seq;
  std::optional<ScorerKind> attention;         // absent: additive for seq2seq, scaled-dot for transformer
  int64_t hidden = 256, layers = 1;
  double dropout = 0.1;
  // seq2seq
  CellKind cell = CellKind::gru;
  int64_t embed = 256;
  bool bidirectional = false;
  bool skip_padding = true;
  SourceValues values = SourceValues::states;
  double embed_dropout = 0;
  // transformer
  int64_t heads = 4, key_heads = 0;            // 0: as many as heads
  int64_t ffn = 1024;
  int64_t decoder_layers = 0;                  // 0: as many as the encoder's
  NormPlace norm = NormPlace::post;
  Activation activation = Activation::relu;
  PositionKind positions = PositionKind::sinusoidal;
  int64_t max_positions = 1000;                // of a learned table
  int64_t max_distance = 32;                   // of relative positions
  double attention_dropout = -1;               // below 0: as dropout
  bool bias = false, tied = false;
  TransformerOptions::Init init = TransformerOptions::Init::scaled;
  bool recompute = false;                      // training computes the insides of sublayers twice to save memory
  bool book_positions = false;                 // in prediction every token stands at position 0, as the book's code has it

  /// The scorer: attention, or what its absence stands for.
  ScorerKind scorer() const { return attention.value_or(kind == ModelKind::transformer ? ScorerKind::scaled_dot : ScorerKind::additive); }
};

struct TranslationTrainingConfig {
  int64_t epochs = 10;
  int64_t batch_rows = 64, batch_tokens = 0;   // rows, or a budget of padded tokens, of a batch
  int64_t accumulate = 1;                      // batches of a step
  bool by_length = false;                      // batches of sentences of like length
  double rate = 1e-3;
  ScheduleKind schedule = ScheduleKind::constant;
  int64_t warmup = 0;
  double decay_factor = 0.5;                   // schedule step: the rate times this every decay_epochs
  int64_t decay_epochs = 1;
  double clip = 1;
  double weight_decay = 0;
  double beta2 = 0.999;                        // of Adam
  LossUnit loss = LossUnit::token;
  int64_t num_steps = 10;
  bool mask_loss = true;                       // false: padding is a target too (an exercise)
  double feed_back = 0;                        // share of target inputs replaced by the model's own predictions (an exercise)
  double label_smoothing = 0;
  int64_t patience = 0;                        // epochs without a better validation loss before the end; 0: never
  KeptWeights keep = KeptWeights::best;
  double average_last = 0;                     // the model is the mean of the weights after this share of the epochs, the last ones
  double average_decay = 0;                    // after every epoch average <- decay * average + (1 - decay) * weights; it is the model
  int64_t seed = 1;
  double checkpoint_seconds = 5;
  int64_t attention_every = 0;                 // epochs between pictures of the pinned sentences; 0: none

  /// How many epochs average_last stands for; one is no mean.
  int64_t averaged_epochs() const;
};

struct TranslationDecodingConfig {
  int64_t beam = 1;
  double length_penalty = 0.75;
  int64_t max_length = 0;                      // tokens of an output; 0: by the longest training target
  int64_t batch_rows = 64;
};

struct TranslationConfig {
  TranslationDataConfig data;
  TranslationModelConfig model;
  TranslationTrainingConfig training;
  TranslationDecodingConfig decoding;
  std::string preset;  // its name, for what the book prints at the end

  /// The table of all settings, over this object.
  Settings settings();
  /// Refuses what cannot work, naming the settings that disagree; of the model alone, for one that is trained already.
  void check() const;
  void check_model() const;
};

/// The settings that a run has written. What its version did not know yet is as it was then.
TranslationConfig read_run_config(const std::string& path);

inline constexpr int64_t kLongestOutput = 100'000;  // tokens, for decoding.max_length
std::vector<std::string> translation_presets();
/// Fails with a suggestion for a name that does not exist.
TranslationConfig translation_preset(const std::string& name);
/// One of the book's presets: ends with the book's line and its four sentences.
bool is_book_preset(const std::string& name);

}  // namespace qkv
