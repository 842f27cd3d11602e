// The size of an image.
#pragma once

#include <cstdint>

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// Channels, height and width; 1 channel is grey, 3 are red, green and blue.
struct ImageSize {
  int64_t channels = 1, height = 0, width = 0;
  int64_t bytes() const { return channels * height * width; }
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// "28 x 28", or "28 x 28 in colour".
inline Text size_text(const ImageSize& size) {
  if (size.channels == 1) return verbatim(text(size.height, " x ", size.width));
  return tr("{height} x {width} in colour", "height"_a = size.height, "width"_a = size.width);
}

}  // namespace qkv
