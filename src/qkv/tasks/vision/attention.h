// What a vision Transformer attends to on an image.
#pragma once

#include "qkv/core/api.h"
#include "qkv/models/vision_transformer.h"
#include "qkv/tasks/attention_maps.h"

namespace QKV_API qkv {

/// Weights between all tokens of an image, and where they come from. With a class token, token 0 is that.
struct ImageAttention {
  Tensor weights, value_weighted;  // (layers, heads, tokens, tokens), as in AttentionMaps
  int64_t patch_rows = 0, patch_columns = 0;
  bool class_token = false;
};

/// image (1, channels, height, width). The maps of an edited attention are what is left after the edits.
ImageAttention image_attention(const VisionTransformer& model, const Tensor& image, const AttentionEdits& edits = {});

/// Whose attention is shown on the image: a patch's, or that of what the classes are read from, which is the class
/// token, or else the mean of all patches.
struct Viewer {
  std::optional<int64_t> patch = {};  // row by row
};

/// The rows of that viewer in maps (layers, heads, tokens, tokens), without the class token's column: (layers, heads,
/// patch rows, patch columns). What is left does not sum to 1 if the class token was seen too.
Tensor seen_patches(const ImageAttention& seen, const Tensor& maps, const Viewer& viewer);

}  // namespace qkv
