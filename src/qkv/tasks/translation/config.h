// All that a translation run depends on: data, model, training and decoding.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "qkv/data/normalize.h"
#include "qkv/data/subwords.h"
#include "qkv/io/settings.h"
#include "qkv/models/seq2seq_config.h"
#include "qkv/models/transformer_config.h"
#include "qkv/run/training_config.h"

namespace qkv {

/// A new kind of model stands in both lists, at the same place.
enum class ModelKind { seq2seq, transformer };
constexpr std::array<std::string_view, 2> names(ModelKind) { return {"seq2seq", "transformer"}; }
using ModelConfig = std::variant<Seq2SeqConfig, TransformerConfig>;

/// How sentences become tokens. Those of the book also say which pairs of its file are read.
enum class TokenizerKind { book, book_en, spaces, words, bpe, unigram };
constexpr std::array<std::string_view, 6> names(TokenizerKind) {
  return {"book", "book-en", "spaces", "words", "bpe", "unigram"};
}

/// token: the mean over target tokens. book: the sum over the batch, divided by num_steps.
enum class LossUnit { token, book };
constexpr std::array<std::string_view, 2> names(LossUnit) { return {"token", "book"}; }

struct TranslationDataConfig {
  std::string pairs;           // TSV of two columns, or "en-fr": the built-in corpus
  std::string source, target;  // or two line-aligned files
  std::string valid_pairs, valid_source, valid_target;
  double valid_share = 0;  // else this share of the pairs, split by distinct source
  int64_t limit = 0;       // sentence pairs read; 0: all
  bool reverse = false;    // translate from the second side into the first
  TokenizerKind tokenizer = TokenizerKind::words;
  int64_t min_count = 2;                          // words seen less often are <unk>
  int64_t vocabulary = 8000;                      // subword pieces
  bool shared_vocabulary = false;                 // one for both sides
  bool lowercase = false;                         // of subwords
  Normalization normalize = Normalization::nfkc;  // of subwords
  int64_t max_tokens = 0;                         // longer training pairs are left out; 0: none is
  int64_t corpus_size = 20000, corpus_seed = 1;   // of the built-in corpus

  void fields(auto&& f) {
    f("pairs",
      Text{"a file of tab-separated sentence pairs, .gz too; en-fr is the built-in corpus",
           "制表符分隔的句对文件，可为 .gz；en-fr 为内置语料"},
      pairs, "FILE");
    f("source", Text{"or two files, line by line: the source side", "或两个逐行对应的文件：源语言"}, source, "FILE");
    f("target", Text{"and the target side", "目标语言"}, target, "FILE");
    f("valid_pairs", Text{"sentence pairs for validation", "验证句对"}, valid_pairs, "FILE");
    f("valid_source", Text{"or two files: the source side", "或两个文件：源语言"}, valid_source, "FILE");
    f("valid_target", Text{"and the target side", "目标语言"}, valid_target, "FILE");
    f("valid_share",
      Text{"without such files: this share of the pairs, no source sentence on both sides",
           "没有验证文件时：句对的这一部分，按源句划分"},
      valid_share, 0, 0.5);
    f("limit", Text{"sentence pairs read, 0 all", "读取的句对数，0 为全部"}, limit, 0);
    f("reverse", Text{"translate from the second side into the first", "从第二列译到第一列"}, reverse);
    f("tokenizer", Text{"how sentences become tokens", "分词方式"}, tokenizer);
    f("min_count", Text{"words seen less often are <unk>", "出现次数更少的词记为 <unk>"}, min_count, 1);
    f("vocabulary", Text{"subword pieces", "子词个数"}, vocabulary, kLeastSubwords, 1'000'000);
    f("shared_vocabulary", Text{"one subword vocabulary for both sides", "两侧共用一个子词表"}, shared_vocabulary);
    f("lowercase",
      Text{"subwords of text in lower case: translations have no capitals", "先转小写再切分子词：译文没有大写"},
      lowercase);
    f("normalize",
      Text{"subwords of text in this Unicode normal form, every blank a space; none: as it stands",
           "切分子词前的 Unicode 规范化，各种空白都作空格；none 不变"},
      normalize, std::vector{Normalization::nfkc, Normalization::nfc, Normalization::none});
    f("max_tokens", Text{"longer training pairs are left out, 0 none", "忽略更长的训练句对，0 不忽略"}, max_tokens, 0);
    f("corpus_size", Text{"built-in corpus: sentence pairs", "内置语料：句对数"}, corpus_size, 1);
    f("corpus_seed", Text{"built-in corpus: its seed", "内置语料：种子"}, corpus_seed, 0);
  }
  bool built_in() const { return pairs == "en-fr"; }
  bool has_subwords() const { return tokenizer == TokenizerKind::bpe || tokenizer == TokenizerKind::unigram; }
};

/// What repeats the book's code, its slips included, or answers its exercises; every default is how it should be.
struct BookConfig {
  bool positions = false;  // in prediction every token stands at position 0, as the book's code has it
  LossUnit loss = LossUnit::token;
  int64_t num_steps = 10;
  bool mask_loss = true;  // false: padding is a target too (an exercise)
  double feed_back = 0;   // share of target inputs replaced by the model's own predictions (an exercise)

  void fields(auto&& f) {
    f("positions",
      Text{"transformer: in prediction every token stands at position 0, as the book's code has it by mistake",
           "transformer：预测时每个词元的位置都是 0（书中代码的疏漏）"},
      positions);
    f("loss",
      Text{"token: mean over target tokens; book: summed over the batch, divided by num_steps",
           "token：目标词元的平均；book：整批求和后除以 num_steps"},
      loss);
    f("num_steps",
      Text{"of the book's loss; sources are padded to as many where the encoder runs through the padding",
           "书中损失的步数；编码器经过填充时，源句填充到此长度"},
      num_steps, 1, 4096);
    f("mask_loss", Text{"false: padding is a target too", "false：填充也计入损失"}, mask_loss);
    f("feed_back", Text{"share of the decoder's inputs that are its own predictions", "解码器输入取自身预测的比例"},
      feed_back, 0, 1);
  }
};

inline constexpr int64_t kLongestOutput = 100'000;  // tokens, for decoding.max_length

struct TranslationDecodingConfig {
  int64_t beam = 1;
  double length_penalty = 0.75;
  int64_t max_length = 0;  // tokens of an output; 0: by the longest training target
  int64_t batch_rows = 64;

  void fields(auto&& f) {
    f("beam", Text{"hypotheses kept, 1 greedy", "束宽，1 为贪心"}, beam, 1, 1000);
    f("length_penalty", Text{"a: log p / length^a ranks hypotheses", "a：按 log p / 长度^a 排序"}, length_penalty, 0,
      10);
    f("max_length", Text{"tokens of an output, 0 by the longest training target", "输出的最大词元数，0 取决于训练数据"},
      max_length, 0, kLongestOutput);
    f("decode_rows", Text{"sentences decoded at once", "同时解码的句子数"}, batch_rows, 1, 100000);
  }
};

struct TranslationConfig {
  TranslationDataConfig data;
  ModelConfig model;
  TrainingConfig training;
  BookConfig book;
  TranslationDecodingConfig decoding;
  std::string preset;  // its name, for what the book prints at the end

  ModelKind kind() const { return static_cast<ModelKind>(model.index()); }
  /// The model of that kind, with its defaults unless it is of that kind already. Settings that were taken before no
  /// longer hold.
  void set_kind(ModelKind kind);
  Seq2SeqConfig& seq2seq() { return std::get<Seq2SeqConfig>(model); }
  TransformerConfig& transformer() { return std::get<TransformerConfig>(model); }
  const Seq2SeqConfig& seq2seq() const { return std::get<Seq2SeqConfig>(model); }
  const TransformerConfig& transformer() const { return std::get<TransformerConfig>(model); }
  ModelFacts facts() const;

  /// The table of all settings, over this object, for a model of its kind.
  Settings settings();
  /// Reads YAML as Settings do; model.kind, if it is there, comes first.
  void read(const std::string& path);
  void parse(const std::string& yaml, const std::string& name);
  /// Refuses what cannot work, naming the settings that disagree; of the model alone, for one that is trained already.
  void check() const;
  void check_model() const;
};

/// The settings that a run has written. What its version did not know yet is as it was then, and it had the keys of all
/// kinds of models.
TranslationConfig read_run_config(const std::string& path);

/// The settings of all kinds of models, as a command line offers them: block, key, help, flag and choices.
std::vector<Setting> offered_settings();

}  // namespace qkv
