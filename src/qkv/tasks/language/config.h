// Everything that a run of a language model depends on: text, model, training and generation.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/normalize.h"
#include "qkv/data/text_tokenizer.h"
#include "qkv/io/settings.h"
#include "qkv/models/language_model_config.h"
#include "qkv/run/training_config.h"
#include "qkv/tasks/kinds.h"

namespace QKV_API qkv {

/// Where the blocks of a training batch begin. shuffled: the text is cut into blocks, at other places in every epoch,
/// and each is read once. random: anywhere, so that an epoch has any number of batches.
enum class BlockOrder { shuffled, random };
constexpr std::array<std::string_view, 2> names(BlockOrder) { return {"shuffled", "random"}; }

struct LanguageDataConfig {
  std::string text;          // a file; empty: the English sentences of the built-in corpus
  std::string valid_text;    // for validation
  double valid_share = 0.1;  // without such a file: this share of the text, its end
  TextTokens tokenizer = TextTokens::characters;
  int64_t min_count = 2;                          // rarer words are <unk>
  int64_t vocabulary = 2000;                      // subwords
  bool lowercase = false;                         // for subwords
  Normalization normalize = Normalization::nfkc;  // for subwords
  BlockOrder order = BlockOrder::shuffled;
  int64_t epoch_batches = 0;                     // order random: batches per epoch; 0: as many as the text fills
  int64_t corpus_size = 20000, corpus_seed = 1;  // of the built-in corpus

  void fields(auto&& f) {
    f("text", tr("a text file, .gz or not; none: the English sentences of the built-in corpus"), text, "FILE");
    f("valid_text", tr("a text file for validation"), valid_text, "FILE");
    f("valid_share", tr("without valid_text: this share of the text, its end, is for validation"), valid_share, 0, 0.5);
    f("tokenizer", tr("what a token is"), tokenizer);
    f("min_count", tr("rarer words become <unk>"), min_count, 1);
    f("vocabulary", tr("number of subwords"), vocabulary, kLeastSubwords, 1'000'000);
    f("lowercase", tr("lower-case text before it is cut into subwords: output has no capitals"), lowercase);
    f("normalize",
      tr("Unicode normal form of text before it is cut into subwords, with every blank a space; none: unchanged"),
      normalize, std::vector{Normalization::nfkc, Normalization::nfc, Normalization::none});
    f("order", tr("shuffled: an epoch reads every block of the text once; random: blocks begin anywhere in the text"),
      order);
    f("epoch_batches", tr("order random: batches per epoch; 0: as many as the text fills"), epoch_batches, 0,
      1'000'000'000);
    f("corpus_size", tr("built-in corpus: number of sentence pairs"), corpus_size, 1);
    f("corpus_seed", tr("built-in corpus: seed"), corpus_seed, 0);
  }
  bool built_in() const { return text.empty(); }
  bool has_subwords() const { return tokenizer == TextTokens::bpe || tokenizer == TextTokens::unigram; }
};

struct GenerationConfig {
  double temperature = 0.8;  // 0: always the likeliest token
  int64_t top_k = 0;         // 0: all
  double top_p = 1;
  double repetition_penalty = 1;
  int64_t max_tokens = 200;
  int64_t batch_rows = 64;
  std::vector<int32_t> ends = {}, never = {};  // of a pretrained model

  void fields(auto&& f) {
    f("temperature", tr("scores are divided by it before a token is drawn; 0: always the likeliest token"), temperature,
      0, 100);
    f("top_k", tr("draw from this many likeliest tokens only; 0: all"), top_k, 0, 1'000'000'000);
    f("top_p", tr("draw from the likeliest tokens only, up to this total probability"), top_p, 0.000001, 1);
    f("repetition_penalty", tr("above 1: tokens that were read or written before become less likely; 1: off"),
      repetition_penalty, 0.01, 100);
    f("max_length", tr("tokens written after a prompt"), max_tokens, 1, 10'000'000);
    f("decode_rows", tr("prompts continued at once"), batch_rows, 1, 100000);
    f("ends", tr("numbers of tokens that end a text, as a pretrained model's folder names them"), ends, 0, kMostRows);
    f("never", tr("numbers of tokens that are never written, as a pretrained model's folder names them"), never, 0,
      kMostRows);
  }
};

struct LanguageConfig {
  static constexpr TaskKind kTask = TaskKind::language;

  LanguageDataConfig data;
  LanguageModelConfig model;
  TrainingConfig training;
  GenerationConfig decoding;
  std::string preset;  // its name

  std::string kind_name() const { return "language"; }
  void set_kind(const std::string&) {}  // there is one
  ModelFacts facts() const { return model.facts(); }

  /// The table of all settings of this object.
  Settings settings();
  void read(const std::string& path);
  void parse(const std::string& yaml, const std::string& name);
  /// Refuses settings that cannot work together, naming them.
  void check() const;

  bool has_data() const { return true; }  // the built-in corpus, if nothing else
  void clear_files();
  static std::vector<std::string> sources() { return {"data.text"}; }
  void use_source(const std::string&) {}
};

/// The settings that a run wrote.
LanguageConfig read_language_config(const std::string& path);

}  // namespace qkv
