// What a recurrent encoder and decoder are made of: the block `model` of a configuration, and what the constructor
// takes.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "qkv/attention/any_scorer.h"
#include "qkv/core/language.h"
#include "qkv/models/model_facts.h"
#include "qkv/nn/recurrent.h"

namespace qkv {

/// What attention averages: the encoder's states, which know their neighbours too; or the source words alone, their
/// embeddings by a linear layer, while states are only compared: then the weights must sit on the words that a
/// translation needs.
enum class SourceValues { states, words };
constexpr std::array<std::string_view, 2> names(SourceValues) { return {"states", "words"}; }

struct Seq2SeqConfig {
  int64_t embed = 256, hidden = 256, layers = 1;
  float dropout = 0.1f;  // of attention weights, and between recurrent layers
  CellKind cell = CellKind::gru;
  ScorerKind attention =
      ScorerKind::additive;    // of the encoder's states; none: the decoder reads the last one in every step instead
  bool bidirectional = false;  // the encoder; its states are twice as wide, and a linear layer (with tanh) makes the
                               // decoder's first state
  bool skip_padding = true;    // false: the encoder runs through the padding, as the book's does
  float embed_dropout = 0;     // of embeddings and of what the output layer reads
  SourceValues values = SourceValues::states;

  int64_t encoder_width() const { return bidirectional ? 2 * hidden : hidden; }

  ModelFacts facts() const;
  /// Names and shapes of all parameters.
  std::vector<NamedShape> layout(const VocabularySizes& words) const;
  /// Refuses what does not fit together.
  void check() const;

  void fields(auto&& f) {
    f("attention",
      Text{"how queries score keys; none: a decoder that reads the encoder's last state",
           "注意力评分函数；none：解码器只读编码器的最后状态"},
      attention,
      std::vector{ScorerKind::none, ScorerKind::additive, ScorerKind::dot, ScorerKind::scaled_dot, ScorerKind::bilinear,
                  ScorerKind::cosine});
    f("hidden", Text{"width of the states", "隐状态宽度"}, hidden, 1, 65536);
    f("layers", Text{"layers of encoder and decoder", "编码器与解码器的层数"}, layers, 1, 64);
    f("dropout", Text{"of attention weights and between layers", "注意力权重与层间"}, dropout, 0, 0.99);
    f("cell", Text{"the recurrent cell", "循环单元"}, cell, std::vector{CellKind::gru, CellKind::lstm});
    f("embed", Text{"width of the embeddings", "词嵌入宽度"}, embed, 1, 65536);
    f("bidirectional", Text{"the encoder reads both ways", "双向编码器"}, bidirectional);
    f("skip_padding",
      Text{"the encoder stops at a sentence's end; the book's runs on through the padding",
           "编码器在句末停止；书中的编码器会经过填充"},
      skip_padding);
    f("values",
      Text{"what attention averages: the encoder's states, or the words alone, which gives sharper alignments",
           "注意力所平均的值：编码器状态，或仅词嵌入（对齐更清晰）"},
      values);
    f("embed_dropout", Text{"of embeddings and before the output layer", "词嵌入与输出层前的 dropout"}, embed_dropout,
      0, 0.99);
  }
};

}  // namespace qkv
