// Colours and colour maps of figures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

/// viridis is the default: ordered by lightness and safe for colour-blind readers. reds and blues are the book's, diverging
/// runs blue - white - red around zero.
enum class ColourMap { viridis, reds, blues, diverging };

/// The map of that name; fails with the list of names.
ColourMap colour_map(std::string_view name);

/// The colour at t in [0, 1]; values outside are clamped.
Colour colour_at(ColourMap map, double t);

/// The colour of a NaN cell: a grey that no map contains.
inline constexpr Colour kNanColour{178, 178, 178};

/// "#0072b2".
std::string hex(Colour colour);

/// Relative luminance in [0, 1] (WCAG 2.1): below 0.3 white text reads better than black.
double luminance(Colour colour);

}  // namespace qkv
