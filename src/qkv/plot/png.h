// PNG files: our own encoder, and pictures of SVG text through librsvg.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "qkv/plot/colour.h"

namespace qkv::plotting {

/// A PNG of width x height pixels: indices into at most 256 colours.
std::string encode_png_indexed(std::span<const uint8_t> pixels, int64_t width, int64_t height,
                               std::span<const Colour> palette);
/// A PNG of width x height pixels: red, green, blue bytes.
std::string encode_png_rgb(std::span<const uint8_t> pixels, int64_t width, int64_t height);

/// The picture of an SVG text, `scale` pixels a unit. Loads librsvg and cairo when first called; fails naming the
/// Debian package when they are not installed.
std::string render_png(const std::string& svg, double scale);

}  // namespace qkv::plotting
