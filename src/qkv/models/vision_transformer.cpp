// Patches, class token, positions and pooling around a stack of blocks.
#include "qkv/models/vision_transformer.h"

#include "qkv/core/check.h"
#include "qkv/nn/init.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv {

TransformerConfig VisionTransformerConfig::blocks() const {
  TransformerConfig out{.hidden = hidden, .ffn = ffn, .heads = heads, .layers = layers};
  out.dropout = dropout;
  out.self_dropout = 0.0f;  // as in the book, only its weights are dropped
  out.inner_dropout = dropout;
  out.norm = norm;
  out.norm_eps = norm_eps;
  out.activation = activation;
  out.positions = PositionKind::none;
  out.attention = attention;
  out.bias = bias;
  out.init = init == Init::pytorch ? TransformerConfig::Init::pytorch : TransformerConfig::Init::scaled;
  out.recompute = recompute;
  return out;
}

ModelFacts VisionTransformerConfig::facts() const {
  ModelFacts out{
      .summary = tr("vision transformer, patches of {patch} x {patch} pixels, {layers}, hidden {hidden}, {heads}, ffn "
                    "{ffn}, positions {positions}, norm {norm}, pooling {pooling}, attention {attention}",
                    "patch"_a = patch, "layers"_a = layer_count(layers), "hidden"_a = hidden,
                    "heads"_a = heads == 1 ? tr("1 head") : tr("{heads} heads", "heads"_a = heads), "ffn"_a = ffn,
                    "positions"_a = positions, "norm"_a = norm, "pooling"_a = pooling, "attention"_a = attention)};
  out.maps = {{"encoder", layers, heads}};
  return out;
}

std::vector<NamedShape> VisionTransformerConfig::layout(const ImageSize& size, int64_t classes) const {
  return layout_of([&] { return VisionTransformer(*this, size, classes, Rng(0)); });
}

void VisionTransformerConfig::check() const {
  require(hidden % heads == 0, "model.hidden {hidden} is not divisible by model.heads {heads}", "hidden"_a = hidden,
          "heads"_a = heads);
}

void VisionTransformerConfig::check(const ImageSize& size) const {
  check();
  require(size.height % patch == 0 && size.width % patch == 0,
          "model.patch is {patch}, but the images have {size} pixels, which are not multiples of it", "patch"_a = patch,
          "size"_a = size_text(size));
}

VisionTransformer::VisionTransformer(const VisionTransformerConfig& o, const ImageSize& images, int64_t classes,
                                     const Rng& rng)
    : config(o),
      size(images),
      embed(images.channels * o.patch * o.patch, o.hidden, rng.at("embed")),
      encoder(o.blocks(), o.layers, Cross::no, rng.at("encoder")),
      output(o.hidden, classes, rng.at("output")) {
  check(images.height % o.patch == 0 && images.width % o.patch == 0 && images.bytes() > 0, "[vision_transformer] ",
        images.height, " x ", images.width, " pixels cannot be cut into patches of size ", o.patch);
  check(classes > 0, "[vision_transformer] expected one class or more, got ", classes);
  const bool books = o.init == VisionTransformerConfig::Init::pytorch;
  if (o.pooling == Pooling::cls) cls = parameter(zeros({1, 1, o.hidden}));
  if (o.positions == PositionKind::learned)
    positions = parameter(normal({o.tokens(images), o.hidden}, rng.at("positions"), 0, books ? 1 : 0.02f));
  if (o.positions == PositionKind::sinusoidal && !ShapesOnly::active())
    positions = sinusoidal_positions(o.tokens(images), o.hidden);
  if (books) return;
  embed.weight = parameter(xavier_uniform(embed.weight.shape(), rng.at("xavier").at("embed")));
  output.weight = parameter(xavier_uniform(output.weight.shape(), rng.at("xavier").at("output")));
}

Tensor VisionTransformer::features(const Tensor& images, const Run& run) const {
  check(images.rank() == 4 && images.size(1) == size.channels && images.size(2) == size.height &&
            images.size(3) == size.width,
        "[vision_transformer] expected images (B, ", size.channels, ", ", size.height, ", ", size.width, "), got ",
        images.shape());
  const int64_t rows = images.size(0), width = config.hidden;
  Tensor x = embed(patches(images, config.patch));
  if (cls.defined()) x = concat({tile(cls, {rows, 1, 1}), x}, 1);
  if (positions.defined()) x = add(x, positions);
  x = dropout(x, config.embedding_dropout, run.at("embedding"));
  if (cls.defined()) return reshape(encoder.first_token(x, run.at("encoder")), {rows, width});
  return mean(encoder(x, Mask::none(), {}, run.at("encoder")), 1);
}

}  // namespace qkv
