// Colours and colour maps of figures.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

struct Colour {
  uint8_t red = 0, green = 0, blue = 0;
  bool operator==(const Colour&) const = default;
};

/// The default map: for non-negative numbers, such as weights and probabilities, reds, the book's map, dark at the top;
/// for numbers of both signs diverging, blue below zero, white at zero, red above. viridis and blues are used only on
/// request.
enum class ColourMap { viridis, reds, blues, diverging };

/// The map with this name; an error lists the names.
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
