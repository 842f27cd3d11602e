// Everything that a translation run depends on: data, model, training and decoding.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/normalize.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/data/subwords.h"
#include "qkv/io/settings.h"
#include "qkv/models/seq2seq_config.h"
#include "qkv/models/transformer_config.h"
#include "qkv/run/training_config.h"
#include "qkv/tasks/kinds.h"

namespace QKV_API qkv {

/// A new kind of model is added to both lists, at the same position.
enum class ModelKind { seq2seq, transformer };
constexpr std::array<std::string_view, 2> names(ModelKind) { return {"seq2seq", "transformer"}; }
using ModelConfig = std::variant<Seq2SeqConfig, TransformerConfig>;

/// How sentences become tokens. The book's tokenizers also determine which pairs of its file are read.
enum class TokenizerKind { book, book_en, spaces, words, bpe, unigram, pretrained };
constexpr std::array<std::string_view, 7> names(TokenizerKind) {
  return {"book", "book-en", "spaces", "words", "bpe", "unigram", "pretrained"};
}

/// token: the mean over target tokens. book: the sum over the batch, divided by num_steps.
enum class LossUnit { token, book };
constexpr std::array<std::string_view, 2> names(LossUnit) { return {"token", "book"}; }

struct TranslationDataConfig {
  std::string pairs;           // TSV of two columns, or "en-fr": the built-in corpus
  std::string source, target;  // or two line-aligned files
  std::string valid_pairs, valid_source, valid_target;
  double valid_share = 0;  // without such files: this share of the pairs, split by source sentence
  int64_t limit = 0;       // sentence pairs read; 0: all
  bool reverse = false;    // translate from the second side into the first
  TokenizerKind tokenizer = TokenizerKind::words;
  int64_t min_count = 2;                          // rarer words are <unk>
  int64_t vocabulary = 8000;                      // subword pieces
  bool shared_vocabulary = false;                 // one for both sides
  bool lowercase = false;                         // for subwords
  Normalization normalize = Normalization::nfkc;  // for subwords
  int64_t max_tokens = 0;                         // longer training pairs are left out; 0: no limit
  int64_t corpus_size = 20000, corpus_seed = 1;   // of the built-in corpus

  void fields(auto&& f) {
    f("pairs", tr("a file of tab-separated sentence pairs, .gz or not; en-fr is the built-in corpus"), pairs, "FILE");
    f("source", tr("source side of two line-aligned files, instead of pairs"), source, "FILE");
    f("target", tr("target side of the two files"), target, "FILE");
    f("valid_pairs", tr("sentence pairs for validation"), valid_pairs, "FILE");
    f("valid_source", tr("source side of two line-aligned files for validation"), valid_source, "FILE");
    f("valid_target", tr("target side of the two files for validation"), valid_target, "FILE");
    f("valid_share", tr("without validation files: this share of the pairs, split by source sentence"), valid_share, 0,
      0.5);
    f("limit", tr("number of sentence pairs to read; 0: all"), limit, 0);
    f("reverse", tr("translate from the second side into the first"), reverse);
    f("tokenizer", tr("how sentences become tokens"), tokenizer);
    f("min_count", tr("rarer words become <unk>"), min_count, 1);
    f("vocabulary", tr("number of subwords"), vocabulary, kLeastSubwords, 1'000'000);
    f("shared_vocabulary", tr("one subword vocabulary for both sides"), shared_vocabulary);
    f("lowercase", tr("lower-case text before it is cut into subwords: translations have no capitals"), lowercase);
    f("normalize",
      tr("Unicode normal form of text before it is cut into subwords, with every blank a space; none: unchanged"),
      normalize, std::vector{Normalization::nfkc, Normalization::nfc, Normalization::none});
    f("max_tokens", tr("leave out longer training pairs; 0: no limit"), max_tokens, 0);
    f("corpus_size", tr("built-in corpus: number of sentence pairs"), corpus_size, 1);
    f("corpus_seed", tr("built-in corpus: seed"), corpus_seed, 0);
  }
  bool built_in() const { return pairs == "en-fr"; }
  bool has_subwords() const { return tokenizer == TokenizerKind::bpe || tokenizer == TokenizerKind::unigram; }
};

/// Settings that repeat the book's code, including its mistakes, or answer its exercises; the defaults are the correct
/// values.
struct BookConfig {
  bool positions = false;  // in prediction every token is at position 0, as in the book's code
  LossUnit loss = LossUnit::token;
  int64_t num_steps = 10;
  bool mask_loss = true;  // false: padding is a target too (an exercise)
  double feed_back = 0;   // share of target inputs replaced by the model's own predictions (an exercise)

  void fields(auto&& f) {
    f("positions", tr("transformer: in prediction every token is at position 0, a mistake in the book's code"),
      positions);
    f("loss", tr("token: mean over target tokens; book: sum over the batch, divided by num_steps"), loss);
    f("num_steps",
      tr("steps of the book's loss; also the length of padded sources if the encoder runs through the padding"),
      num_steps, 1, 4096);
    f("mask_loss", tr("false: padding is a target too"), mask_loss);
    f("feed_back", tr("share of the decoder's inputs that are replaced by its own predictions"), feed_back, 0, 1);
  }
};

inline constexpr int64_t kLongestOutput = 100'000;  // tokens, for decoding.max_length

struct TranslationDecodingConfig {
  int64_t beam = 1;
  double length_penalty = 0.75;
  int64_t max_length = 0;  // maximum tokens of an output; 0: from the longest training target
  int64_t batch_rows = 64;
  std::vector<int32_t> never = {};  // of a pretrained model

  void fields(auto&& f) {
    f("beam", tr("hypotheses kept; 1: greedy"), beam, 1, 1000);
    f("length_penalty", tr("a: rank hypotheses by log p / length^a"), length_penalty, 0, 10);
    f("max_length", tr("maximum tokens of an output; 0: from the longest training target"), max_length, 0,
      kLongestOutput);
    f("decode_rows", tr("sentences decoded at once"), batch_rows, 1, 100000);
    f("never", tr("numbers of tokens that are never written, as a pretrained model's folder names them"), never, 0,
      kMostRows);
  }
};

struct TranslationConfig {
  TranslationDataConfig data;
  ModelConfig model;
  TrainingConfig training;
  BookConfig book;
  TranslationDecodingConfig decoding;
  std::string preset;  // its name; the book's presets end with the book's output

  static constexpr TaskKind kTask = TaskKind::translation;
  /// Settings that name data. They exclude each other.
  static std::vector<std::string> sources() { return {"data.pairs", "data.source"}; }
  bool has_data() const;
  void clear_files();
  /// Forgets the data that this source replaces.
  void use_source(const std::string& setting);

  ModelKind kind() const { return static_cast<ModelKind>(model.index()); }
  /// Changes the model to that kind, with its defaults unless it is of that kind already. Earlier results of settings()
  /// become invalid.
  void set_kind(ModelKind kind);
  std::string kind_name() const { return std::string(name_of(kind())); }
  void set_kind(const std::string& word) { set_kind(parse_name<ModelKind>(word, "model.kind")); }
  Seq2SeqConfig& seq2seq() { return std::get<Seq2SeqConfig>(model); }
  TransformerConfig& transformer() { return std::get<TransformerConfig>(model); }
  const Seq2SeqConfig& seq2seq() const { return std::get<Seq2SeqConfig>(model); }
  const TransformerConfig& transformer() const { return std::get<TransformerConfig>(model); }
  ModelFacts facts() const;
  /// The most tokens of a text, <eos> included; absent: no limit. A pretrained model has learned no further positions.
  std::optional<int64_t> longest_input() const;

  /// The table of all settings of this object, for its kind of model.
  Settings settings();
  /// Reads YAML as Settings do; model.kind, if present, is read first.
  void read(const std::string& path);
  void parse(const std::string& yaml, const std::string& name);
  /// Refuses settings that cannot work together, naming them; check_model() checks only the model, for a trained one.
  void check() const;
  void check_model() const;
};

/// The settings that a run wrote. Settings that its version did not have keep their old meaning, and keys of other
/// kinds of models are dropped.
TranslationConfig read_run_config(const std::string& path);

}  // namespace qkv
