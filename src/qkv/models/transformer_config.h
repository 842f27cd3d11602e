// What a Transformer is made of: the block `model` of a configuration, and what its constructor takes.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "qkv/attention/multi_head.h"
#include "qkv/core/language.h"
#include "qkv/core/open.h"
#include "qkv/models/model_facts.h"

namespace qkv {

/// Where layer normalisation stands: after the residual sum, as in the book, or before the sublayer, with one more at
/// the end.
enum class NormPlace { post, pre };
constexpr std::array<std::string_view, 2> names(NormPlace) { return {"post", "pre"}; }

struct TransformerConfig {
  int64_t hidden = 256, ffn = 1024, heads = 4;
  std::optional<int64_t> key_heads = {};  // absent: as many as heads
  int64_t layers = 1;
  std::optional<int64_t> decoder_layers = {};   // absent: as many as the encoder's
  float dropout = 0.1f;                         // of embeddings and of what every sublayer adds
  std::optional<float> attention_dropout = {};  // of attention weights; absent: as dropout
  NormPlace norm = NormPlace::post;
  Activation activation = Activation::relu;
  PositionKind positions = PositionKind::sinusoidal;
  int64_t max_positions = 1000;  // of a learned table
  int64_t max_distance = 32;     // of relative positions: what is farther counts as that far
  ScorerKind attention = ScorerKind::scaled_dot;
  bool bias = false;  // of the projections of attention
  bool tied = false;  // one matrix for both embeddings and the output layer
  /// Linear layers start Xavier-uniform, or as PyTorch's do; embeddings as N(0, 1), as the books have it, or scaled:
  /// N(0, 1 / hidden), which after the factor sqrt(hidden) are as large as the positions that are added to them, so
  /// that positions count from the first step on.
  enum class Init { scaled, book, pytorch } init = Init::scaled;
  bool recompute = false;  // training keeps the inputs of the sublayers alone and computes the rest again: far less
                           // memory, a third more time

  int64_t key_head_count() const { return key_heads.value_or(heads); }
  int64_t decoder_depth() const { return decoder_layers.value_or(layers); }
  float attention_rate() const { return attention_dropout.value_or(dropout); }

  ModelFacts facts() const;
  /// Names and shapes of all parameters of encoder and decoder.
  std::vector<NamedShape> layout(const VocabularySizes& words) const;
  /// Refuses sizes that do not fit together.
  void check() const;

  void fields(auto&& f) {
    f("attention", Text{"how queries score keys", "注意力评分函数"}, attention,
      std::vector{ScorerKind::additive, ScorerKind::dot, ScorerKind::scaled_dot, ScorerKind::bilinear,
                  ScorerKind::cosine, ScorerKind::gaussian});
    f("hidden", Text{"width of the states", "隐状态宽度"}, hidden, 1, 65536);
    f("layers", Text{"layers of encoder and decoder", "编码器与解码器的层数"}, layers, 1, 64);
    f("dropout",
      Text{"of embeddings, of what a sublayer adds, and of attention weights unless attention_dropout is set",
           "词嵌入、子层的输出，以及注意力权重（除非设置 attention_dropout）"},
      dropout, 0, 0.99);
    f("heads", Text{"heads of every attention; they divide hidden", "注意力头数，须整除 hidden"}, heads, 1, 1024);
    f("key_heads",
      Text{"heads of keys and values, shared by several query heads; same: as many as heads",
           "键和值的头数，由多个查询头共用；same 与 heads 相同"},
      key_heads, Open{"same", "0"}, 1, 1024);
    f("ffn", Text{"hidden units of the feed-forward network", "前馈网络的隐藏单元数"}, ffn, 1, 1'000'000);
    f("decoder_layers", Text{"layers of the decoder; same: as many as the encoder's", "解码器层数；same 与编码器相同"},
      decoder_layers, Open{"same", "0"}, 1, 64);
    f("norm",
      Text{"layer norm after the residual sum, or before each sublayer", "层规范化在残差之后（post）或子层之前（pre）"},
      norm);
    f("activation", Text{"of the feed-forward network", "前馈网络的激活函数"}, activation,
      std::vector{Activation::relu, Activation::gelu});
    f("positions", Text{"how a token knows its place", "位置编码"}, positions);
    f("max_positions", Text{"rows of a learned table of positions", "可学习位置表的行数"}, max_positions, 1,
      10'000'000);
    f("max_distance", Text{"distances of relative positions; what is farther counts as that far", "相对位置的最大距离"},
      max_distance, 0, 1'000'000);
    f("attention_dropout", Text{"of attention weights; same: as dropout", "注意力权重的 dropout；same 与 dropout 相同"},
      attention_dropout, Open{"same", "-1"}, 0, 0.99);
    f("bias", Text{"the projections of attention have biases", "注意力投影带偏置"}, bias);
    f("tied",
      Text{"one matrix for both embeddings and the output layer; needs shared_vocabulary",
           "两个词嵌入与输出层共用一个矩阵；需要 shared_vocabulary"},
      tied);
    f("init",
      Text{
          "scaled: Xavier-uniform layers, embeddings as large as positions; book: embeddings N(0, 1); pytorch: its layers' defaults and N(0, 1)",
          "scaled：Xavier 初始化，词嵌入与位置编码同量级；book：词嵌入 N(0, 1)；pytorch：其默认值与 N(0, 1)"},
      init);
    f("recompute",
      Text{
          "training keeps only the inputs of the sublayers and computes the rest twice: less memory, a third more time",
          "训练时只保留各子层的输入，其余重新计算：省内存，约慢三分之一"},
      recompute);
  }
};
constexpr std::array<std::string_view, 3> names(TransformerConfig::Init) { return {"scaled", "book", "pytorch"}; }

}  // namespace qkv
