// Everything that a run of a text encoder depends on: texts, the pretrained model that it starts from, and training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/io/settings.h"
#include "qkv/run/training_config.h"
#include "qkv/tasks/kinds.h"
#include "qkv/tasks/pretrained/bert.h"

namespace QKV_API qkv {

struct EncodingDataConfig {
  std::string text;        // a file with a text per line; for classes: text, tab, class
  std::string valid_text;  // for validation
  double valid_share = 0;  // without such a file: this share of the texts
  int64_t max_tokens = 0;  // of a text, special ones included; the rest is cut off. 0: as many as there are positions

  void fields(auto&& f) {
    f("text", tr("a file with one text per line, .gz or not; with the head of classes: text, tab, class"), text,
      "FILE");
    f("valid_text", tr("the same for validation"), valid_text, "FILE");
    f("valid_share", tr("without valid_text: this share of the texts, drawn at random, is for validation"), valid_share,
      0, 0.5);
    f("max_tokens", tr("tokens of a text, special ones included; the rest is cut off. 0: as many as the model reads"),
      max_tokens, 0, 1'000'000);
  }
};

/// What a pretrained folder says of its encoder, as settings.
struct EncodingModelConfig {
  Architecture architecture = Architecture::bert;
  BertConfig bert;
  double mask_share = 0.15, mask_random = 0.1, mask_kept = 0.1;  // of hidden tokens

  void fields(auto&& f) {
    TransformerConfig& o = bert.model.blocks;
    f("architecture", tr("names of the weights, and which tokens surround a text"), architecture,
      std::vector{Architecture::bert, Architecture::roberta, Architecture::xlm_roberta});
    f("head", tr("what is trained: words: fill in hidden tokens; classes: say what a text is"), bert.head);
    f("hidden", tr("width of the states"), o.hidden, 1, 65536);
    f("layers", tr("layers"), o.layers, 1, 64);
    f("heads", tr("attention heads; hidden must be divisible by it"), o.heads, 1, 1024);
    f("ffn", tr("hidden units of the feed-forward network"), o.ffn, 1, 1'000'000);
    f("activation", tr("activation of the feed-forward network"), o.activation,
      std::vector{Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu});
    f("norm_eps", tr("added to the variance in layer norms"), o.norm_eps, 1e-12, 1);
    f("dropout", tr("dropout on embeddings, on sublayer outputs and before the classes"), o.dropout, 0, 0.99);
    f("attention_dropout", tr("dropout on attention weights; same: as dropout"), o.attention_dropout,
      Open{"same", "-1"}, 0, 0.99);
    f("max_positions", tr("rows of the table of positions"), o.max_positions, 1, 1'000'000);
    f("words", tr("rows of the embedding"), bert.model.words, 0, kMostRows);
    f("types", tr("kinds of tokens: the first and the second text of a pair"), bert.model.types, 1, 1000);
    f("first_position", tr("the row of the first token's position"), bert.model.first_position, 0, 1'000'000);
    f("pad", tr("the number of the token that pads a batch"), bert.pad, 0, kMostRows);
    f("tied", tr("the head of words has the matrix of the embedding"), bert.tied);
    f("mask_share", tr("head of words: share of the tokens that are hidden"), mask_share, 0.001, 0.9);
    f("mask_random", tr("head of words: share of the hidden tokens that are replaced by a random token"), mask_random,
      0, 1);
    f("mask_kept", tr("head of words: share of the hidden tokens that are left as they are"), mask_kept, 0, 1);
  }
  /// Tokens to hide among that many.
  int64_t hidden_of(int64_t tokens) const;
};

struct EncodingConfig {
  static constexpr TaskKind kTask = TaskKind::encoding;

  EncodingDataConfig data;
  EncodingModelConfig model;
  TrainingConfig training;
  std::string preset;  // there are none

  std::string kind_name() const { return "encoder"; }
  void set_kind(const std::string&) {}  // there is one
  ModelFacts facts() const { return model.bert.model.facts(); }

  /// The table of all settings of this object.
  Settings settings();
  void read(const std::string& path);
  void parse(const std::string& yaml, const std::string& name);
  /// Refuses settings that cannot work together, naming them.
  void check() const;

  bool has_data() const { return !data.text.empty(); }
  void clear_files();
  static std::vector<std::string> sources() { return {"data.text"}; }
  void use_source(const std::string&) {}
};

/// The settings that a run wrote.
EncodingConfig read_encoding_config(const std::string& path);
/// What a pretrained folder says of its model, with settings for training it further.
EncodingConfig read_pretrained_encoding_config(const std::string& folder);

}  // namespace qkv
