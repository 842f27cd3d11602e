// PNG files (RFC 2083) as bytes: read with every kind of pixel, and written with 8 bits per value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// Bytes of pixels, row by row: 1 channel is grey, 3 are red, green and blue.
struct Picture {
  int64_t height = 0, width = 0, channels = 1;
  std::vector<uint8_t> pixels;  // (height, width, channels)
};

/// Reads a PNG file of any kind, interlaced or not. Values of 16 bits are rounded to 8, palettes become colours, and an
/// alpha channel is dropped where all of the picture is opaque; transparent pixels are an error, because their colour
/// would depend on a background. Sizes are checked before memory is allocated.
Picture read_png(const std::string& path);
/// The same for the bytes of a file; `name` is for errors.
Picture decode_png(std::span<const std::byte> file, const std::string& name);

/// PNG's number of the kind of pixels.
enum class PngPixels : char { grey = 0, rgb = 2, palette = 3 };
/// A PNG file of width x height pixels of 8 bits per value; a palette is given as its bytes, three per colour.
std::string encode_png(std::span<const uint8_t> pixels, int64_t width, int64_t height, PngPixels kind,
                       const std::string& palette = {});
std::string encode_png(const Picture& picture);

}  // namespace qkv
