// Settings of a recurrent encoder and decoder: the block `model` of a configuration, and the argument of the
// constructor.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "qkv/attention/any_scorer.h"
#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/models/model_facts.h"
#include "qkv/nn/recurrent.h"

namespace QKV_API qkv {

/// What attention averages: the encoder's states, which also contain their neighbours; or only the source words (their
/// embeddings through a linear layer), while states are only compared: then the weights must be on the words that a
/// translation needs.
enum class SourceValues { states, words };
constexpr std::array<std::string_view, 2> names(SourceValues) { return {"states", "words"}; }

struct Seq2SeqConfig {
  int64_t embed = 256, hidden = 256, layers = 1;
  float dropout = 0.1f;  // on attention weights, and between recurrent layers
  CellKind cell = CellKind::gru;
  ScorerKind attention = ScorerKind::additive;  // none: the decoder reads the encoder's last state in every step
  bool bidirectional = false;  // the encoder; its states are twice as wide, and a linear layer (with tanh)
                               // makes the decoder's first state
  bool skip_padding = true;    // false: the encoder runs through the padding, like the book's
  float embed_dropout = 0;     // on embeddings and on the input of the output layer
  SourceValues values = SourceValues::states;

  int64_t encoder_width() const { return bidirectional ? 2 * hidden : hidden; }

  ModelFacts facts() const;
  /// Names and shapes of all parameters.
  std::vector<NamedShape> layout(const VocabularySizes& words) const;
  /// Refuses settings that do not fit together.
  void check() const;

  void fields(auto&& f) {
    f("attention", tr("attention scoring function; none: the decoder reads only the encoder's last state"), attention,
      std::vector{ScorerKind::none, ScorerKind::additive, ScorerKind::dot, ScorerKind::scaled_dot, ScorerKind::bilinear,
                  ScorerKind::cosine});
    f("hidden", tr("width of the states"), hidden, 1, 65536);
    f("layers", tr("layers of the encoder and of the decoder"), layers, 1, 64);
    f("dropout", tr("dropout on attention weights and between layers"), dropout, 0, 0.99);
    f("cell", tr("the recurrent cell"), cell, std::vector{CellKind::gru, CellKind::lstm});
    f("embed", tr("width of the embeddings"), embed, 1, 65536);
    f("bidirectional", tr("bidirectional encoder"), bidirectional);
    f("skip_padding", tr("the encoder stops at the end of a sentence; the book's continues through the padding"),
      skip_padding);
    f("values", tr("what attention averages: the encoder's states, or only the words, which gives sharper alignments"),
      values);
    f("embed_dropout", tr("dropout on embeddings and before the output layer"), embed_dropout, 0, 0.99);
  }
};

}  // namespace qkv
