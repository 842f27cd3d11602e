// The vision Transformer (Dosovitskiy et al., 2021): an image as a sequence of patches, classified.
#pragma once

#include "qkv/core/api.h"
#include "qkv/models/transformer_stack.h"
#include "qkv/models/vision_transformer_config.h"

namespace QKV_API qkv {

struct VisionTransformer {
  VisionTransformerConfig config;
  ImageSize size;
  Linear embed;      // of patches: (width, channels patch patch)
  Tensor cls;        // (1, 1, width); absent without a class token
  Tensor positions;  // (tokens, width); absent without positions
  TransformerStack encoder;
  Linear output;  // (classes, width)

  VisionTransformer() = default;
  VisionTransformer(const VisionTransformerConfig& config, const ImageSize& size, int64_t classes, const Rng& rng);

  /// The input of the output layer: images (B, channels, height, width) -> (B, width). Probe: "encoder.0.self", ...;
  /// the class token, if there is one, is token 0, then come the patches, row by row.
  Tensor features(const Tensor& images, const Run& run) const;
  /// (B, classes).
  Tensor logits(const Tensor& images, const Run& run) const { return output(features(images, run)); }

  void visit(auto&& f) {
    f("embed", embed);
    f("cls", cls);
    if (config.positions == PositionKind::learned) f("positions", positions);
    f("encoder", encoder);
    f("output", output);
  }
};

}  // namespace qkv
