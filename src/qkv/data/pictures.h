// Small drawn pictures of ten classes, for models that see: shapes, strokes and textures, each somewhere else, of
// another size, angle, thickness and brightness, in noise and with a line across some of them.
#pragma once

#include <cstdint>

#include "qkv/core/api.h"
#include "qkv/data/images.h"

namespace QKV_API qkv {

/// Two parts that have no picture in common.
enum class PicturePart { train, valid };

struct PicturesOptions {
  int64_t count = 20000;
  int64_t side = 28;  // pixels, 8 or more
  uint64_t seed = 1;
  PicturePart part = PicturePart::train;
};

/// Grey pictures of side x side pixels. Picture i depends on seed, part, side and i alone, and its class is i mod 10: a
/// larger set begins with the smaller one.
ImageSet drawn_pictures(const PicturesOptions& options);

}  // namespace qkv
