// Settings of a Transformer: the block `model` of a configuration, and the argument of the constructor.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "qkv/attention/multi_head.h"
#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/core/open.h"
#include "qkv/models/model_facts.h"

namespace QKV_API qkv {

/// Where norms are: after the residual sum, as in the book, or before the sublayer, with one more at the
/// end.
enum class NormPlace { post, pre };
constexpr std::array<std::string_view, 2> names(NormPlace) { return {"post", "pre"}; }

/// The attentions of a Transformer: an encoder's, a decoder's own (and those of a stack alone), and to the encoder.
enum class AttentionPart { encoder, decoder, cross };

struct TransformerConfig {
  int64_t hidden = 256, ffn = 1024, heads = 4;
  std::optional<int64_t> key_heads = {};  // absent: as many as heads
  // Heads of every layer after pruning, "4 2 3"; empty: `heads`. Their width is hidden / heads in any case.
  std::string encoder_heads = {}, decoder_heads = {}, cross_heads = {};
  int64_t layers = 1;
  std::optional<int64_t> decoder_layers = {};   // absent: as many as the encoder's
  float dropout = 0.1f;                         // on embeddings and on the output of every sublayer
  std::optional<float> attention_dropout = {};  // on attention weights; absent: as dropout
  // Other places of dropout, which configuration files cannot name: on the outputs of self-attention instead of
  // `dropout`, and inside the feed-forward network, after its activation.
  std::optional<float> self_dropout = {};
  float inner_dropout = 0;
  NormPlace norm = NormPlace::post;
  NormKind norm_kind = NormKind::layer;
  float norm_eps = kNormEps;
  FeedForwardKind ffn_kind = FeedForwardKind::plain;
  Activation activation = Activation::relu;
  PositionKind positions = PositionKind::sinusoidal;
  Waves waves = Waves::pairs;    // of sinusoidal positions
  int64_t max_positions = 1000;  // of a learned table
  int64_t max_distance = 32;     // of relative positions; larger distances are clipped to it
  double rotary_base = 10000;    // of rotary positions
  RotaryPairs rotary_pairs = RotaryPairs::neighbours;
  ScorerKind attention = ScorerKind::scaled_dot;
  ScorerMaker own_scorer = {};  // your own scorer in every attention instead; configuration files cannot name it
  /// For self-attention. An attention from a decoder to its encoder is exact, and so is a decoder's own if the kind has
  /// no causal form. `positions` and `seed` are not settings: linformer has max_positions.
  AttentionKindOptions kind = {};
  bool bias = false;  // in the projections of attention
  bool ffn_bias = true, norm_bias = true, output_bias = true;
  bool scale_embeddings = true;  // embeddings times sqrt(hidden)
  bool tied = false;             // one matrix for both embeddings and the output layer
  /// Linear layers start Xavier-uniform, or with PyTorch's defaults; embeddings as N(0, 1), as in the book, or scaled,
  /// N(0, 1 / hidden). Scaled embeddings, times sqrt(hidden), are as large as the positions added to them, so that
  /// positions matter from the first step on. GPT-2's start: every matrix N(0, 0.02^2), those that write into the
  /// residual sum smaller by sqrt(2 layers), biases 0 (Radford et al., 2019).
  enum class Init { scaled, book, pytorch, gpt2 } init = Init::scaled;
  bool recompute = false;  // training keeps only the inputs of the sublayers and recomputes the rest: far less memory,
                           // a third more time

  int64_t key_head_count() const { return key_heads.value_or(heads); }
  /// Query heads of a layer, and how many of them share a key head.
  int64_t heads_of(AttentionPart part, int64_t layer) const;
  int64_t shared_heads() const { return heads / key_head_count(); }
  /// Sets the heads of every layer of a part; equal to `heads` everywhere is written as nothing.
  void set_heads(AttentionPart part, const std::vector<int64_t>& counts);
  int64_t decoder_depth() const { return decoder_layers.value_or(layers); }
  /// The kind of self-attention in a stack, with the positions of linformer.
  AttentionKindOptions kind_of(bool causal) const;
  float attention_rate() const { return attention_dropout.value_or(dropout); }

  ModelFacts facts() const;
  /// Names and shapes of all parameters of encoder and decoder.
  std::vector<NamedShape> layout(const VocabularySizes& words) const;
  /// Refuses sizes that do not fit together.
  void check() const;

  void fields(auto&& f) {
    f("attention", tr("attention scoring function"), attention,
      std::vector{ScorerKind::additive, ScorerKind::dot, ScorerKind::scaled_dot, ScorerKind::bilinear,
                  ScorerKind::cosine, ScorerKind::gaussian});
    f("attention_kind", tr("exact, or a cheaper self-attention for long inputs (docs/long-inputs.md)"), kind.kind);
    f("window", tr("window and dilated: keys that a token sees on each side"), kind.window, 0, 1'000'000);
    f("dilation", tr("dilated: distance between two of these keys"), kind.dilation, 1, 100'000);
    f("global_tokens", tr("window, dilated and block-sparse: the first tokens see all others and are seen by all"),
      kind.global_tokens, 0, 1'000'000);
    f("block", tr("block-sparse: tokens per block; a block sees itself and one more on each side"), kind.block, 1,
      1'000'000);
    f("random_blocks", tr("block-sparse: random blocks that each block sees as well"), kind.random_blocks, 0, 1000);
    f("features", tr("performer: random features"), kind.features, 1, 65536);
    f("rank", tr("linformer: rows that keys and values are projected to"), kind.rank, 1, 1'000'000);
    f("landmarks", tr("nystrom: landmarks"), kind.landmarks, 1, 65536);
    f("hidden", tr("width of the states"), hidden, 1, 65536);
    f("layers", tr("layers of the encoder and of the decoder"), layers, 1, 64);
    f("dropout",
      tr("dropout on embeddings, on sublayer outputs, and on attention weights unless attention_dropout is set"),
      dropout, 0, 0.99);
    f("heads", tr("attention heads; hidden must be divisible by it"), heads, 1, 1024);
    f("key_heads", tr("heads of keys and values, shared by several query heads; same: as many as heads"), key_heads,
      Open{"same", "0"}, 1, 1024);
    f("encoder_heads", tr("heads of each layer of the encoder, \"4 2 3\", as qkv prune writes them; empty: heads"),
      encoder_heads, "COUNTS");
    f("decoder_heads", tr("the same for the decoder's self-attention"), decoder_heads, "COUNTS");
    f("cross_heads", tr("the same for the decoder's attention to the encoder"), cross_heads, "COUNTS");
    f("ffn", tr("hidden units of the feed-forward network"), ffn, 1, 1'000'000);
    f("decoder_layers", tr("layers of the decoder; same: as many as the encoder's"), decoder_layers, Open{"same", "0"},
      1, 64);
    f("norm", tr("norms after the residual sum, or before each sublayer"), norm);
    f("activation", tr("activation of the feed-forward network"), activation,
      std::vector{Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::silu});
    f("norm_kind", tr("layer: norms divide by the deviation from the mean; rms: by the root mean square"), norm_kind);
    f("norm_eps", tr("added to the variance or the mean square in norms"), norm_eps, 1e-12, 1);
    f("ffn_kind", tr("gated: the hidden units of the feed-forward network are multiplied by a second projection"),
      ffn_kind);
    f("positions", tr("kind of positional encoding"), positions);
    f("waves",
      tr("sinusoidal positions: sines and cosines in pairs, as in the book, or sines in the first half of the columns "
         "and cosines in the second"),
      waves);
    f("max_positions", tr("rows of a learned table of positions, and the longest text of linformer"), max_positions, 1,
      10'000'000);
    f("max_distance", tr("largest distance of relative positions; larger ones are clipped to it"), max_distance, 0,
      1'000'000);
    f("rotary_base", tr("rotary positions: pair c of a head of width D turns by base^(-2c / D) per token"), rotary_base,
      1, 1e12);
    f("rotary_pairs",
      tr("rotary positions: elements 2c and 2c + 1 of a head are a pair, or element c and that half a head further"),
      rotary_pairs);
    f("attention_dropout", tr("dropout on attention weights; same: as dropout"), attention_dropout, Open{"same", "-1"},
      0, 0.99);
    f("bias", tr("the projections of attention have biases"), bias);
    f("ffn_bias", tr("the feed-forward network has biases"), ffn_bias);
    f("norm_bias", tr("norms of kind layer have biases"), norm_bias);
    f("output_bias", tr("the output layer has a bias"), output_bias);
    f("scale_embeddings", tr("embeddings are multiplied by the square root of hidden"), scale_embeddings);
    f("tied", tr("one matrix for both embeddings and the output layer; needs shared_vocabulary"), tied);
    f("initial",
      tr("scaled: Xavier-uniform layers, embeddings as large as positions; book: embeddings N(0, 1); pytorch: "
         "PyTorch's defaults and N(0, 1); gpt2: N(0, 0.02), residual projections smaller, biases 0"),
      init);
    f("recompute",
      tr("training keeps only the inputs of the sublayers and recomputes the rest: less memory, a third more time"),
      recompute);
  }
};
constexpr std::array<std::string_view, 4> names(TransformerConfig::Init) {
  return {"scaled", "book", "pytorch", "gpt2"};
}

}  // namespace qkv
