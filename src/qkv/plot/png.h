// Figures as PNG files: pixels of a palette or of colours, and SVG text rendered by librsvg.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "qkv/core/api.h"
#include "qkv/plot/colour.h"

namespace QKV_API qkv {
namespace plotting {

/// A PNG of width x height pixels from indices into at most 256 colours.
std::string encode_png_indexed(std::span<const uint8_t> pixels, int64_t width, int64_t height,
                               std::span<const Colour> palette);
/// A PNG of width x height pixels from red, green and blue bytes.
std::string encode_png_rgb(std::span<const uint8_t> pixels, int64_t width, int64_t height);

/// Renders SVG text at `scale` pixels per unit. The first call loads librsvg and cairo; if they are not installed, the
/// error names the Debian package.
std::string render_png(const std::string& svg, double scale);

}  // namespace plotting
}  // namespace qkv
