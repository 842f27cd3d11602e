// Settings of a vision Transformer: the block `model` of a configuration, and the argument of the constructor.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/image_size.h"
#include "qkv/models/transformer_config.h"

namespace QKV_API qkv {

/// What the classes are read from: the state of a class token that is added to the patches, or the mean of all patches.
enum class Pooling { cls, mean };
constexpr std::array<std::string_view, 2> names(Pooling) { return {"cls", "mean"}; }

struct VisionTransformerConfig {
  int64_t patch = 4;  // pixels per side
  int64_t hidden = 64, ffn = 128, heads = 4, layers = 4;
  Pooling pooling = Pooling::cls;
  PositionKind positions = PositionKind::learned;
  float dropout = 0.1f;            // on attention weights, and in the feed-forward network after both layers
  float embedding_dropout = 0.1f;  // on the sum of patches and positions
  NormPlace norm = NormPlace::pre;
  float norm_eps = kNormEps;
  Activation activation = Activation::gelu;
  ScorerKind attention = ScorerKind::scaled_dot;
  bool bias = false;  // in the projections of attention
  /// Layers Xavier-uniform and learned positions N(0, 0.02^2), or as the book's code has them: PyTorch's defaults and
  /// positions N(0, 1). The class token starts as zeros.
  enum class Init { scaled, pytorch } init = Init::scaled;
  bool recompute = false;  // as in TransformerConfig

  /// Patches of an image, and tokens: one more with a class token.
  int64_t patches(const ImageSize& size) const { return (size.height / patch) * (size.width / patch); }
  int64_t tokens(const ImageSize& size) const { return patches(size) + (pooling == Pooling::cls ? 1 : 0); }
  /// The stack of blocks.
  TransformerConfig blocks() const;
  ModelFacts facts() const;
  std::vector<NamedShape> layout(const ImageSize& size, int64_t classes) const;
  /// Refuses sizes that do not fit together; the second also those that do not fit the images.
  void check() const;
  void check(const ImageSize& size) const;

  void fields(auto&& f) {
    f("patch", tr("pixels per side of a patch; the image's sides must be multiples of it"), patch, 1, 4096);
    f("hidden", tr("width of the states"), hidden, 1, 65536);
    f("layers", tr("layers"), layers, 1, 64);
    f("heads", tr("attention heads; hidden must be divisible by it"), heads, 1, 1024);
    f("ffn", tr("hidden units of the feed-forward network"), ffn, 1, 1'000'000);
    f("pooling", tr("read the classes from a class token, or from the mean of all patches"), pooling);
    f("positions", tr("kind of positional encoding of the patches"), positions,
      std::vector{PositionKind::none, PositionKind::sinusoidal, PositionKind::learned});
    f("dropout", tr("dropout on attention weights and after both layers of the feed-forward network"), dropout, 0,
      0.99);
    f("embedding_dropout", tr("dropout on the sum of patches and positions"), embedding_dropout, 0, 0.99);
    f("norm", tr("layer norm after the residual sum, or before each sublayer"), norm);
    f("norm_eps", tr("added to the variance in layer norms"), norm_eps, 1e-12, 1);
    f("activation", tr("activation of the feed-forward network"), activation,
      std::vector{Activation::relu, Activation::gelu, Activation::gelu_tanh});
    f("attention", tr("attention scoring function"), attention,
      std::vector{ScorerKind::additive, ScorerKind::dot, ScorerKind::scaled_dot, ScorerKind::bilinear,
                  ScorerKind::cosine, ScorerKind::gaussian});
    f("bias", tr("the projections of attention have biases"), bias);
    f("initial",
      tr("scaled: Xavier-uniform layers, positions N(0, 0.02); pytorch: PyTorch's defaults, positions N(0, 1)"), init);
    f("recompute",
      tr("training keeps only the inputs of the sublayers and recomputes the rest: less memory, a third more time"),
      recompute);
  }
};
constexpr std::array<std::string_view, 2> names(VisionTransformerConfig::Init) { return {"scaled", "pytorch"}; }

}  // namespace qkv
