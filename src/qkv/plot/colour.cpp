// Colour maps by linear interpolation between control points in sRGB.
#include "qkv/plot/colour.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "qkv/core/check.h"

namespace qkv {
namespace {

constexpr std::array<uint32_t, 10> kViridis = {0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e,
                                               0x1f9e89, 0x35b779, 0x6dcd59, 0xb4de2c, 0xfde725};
constexpr std::array<uint32_t, 9> kReds = {0xfff5f0, 0xfee0d2, 0xfcbba1, 0xfc9272, 0xfb6a4a,
                                           0xef3b2c, 0xcb181d, 0xa50f15, 0x67000d};
constexpr std::array<uint32_t, 9> kBlues = {0xf7fbff, 0xdeebf7, 0xc6dbef, 0x9ecae1, 0x6baed6,
                                            0x4292c6, 0x2171b5, 0x08519c, 0x08306b};
constexpr std::array<uint32_t, 11> kDiverging = {0x053061, 0x2166ac, 0x4393c3, 0x92c5de, 0xd1e5f0, 0xf7f7f7,
                                                 0xfddbc7, 0xf4a582, 0xd6604d, 0xb2182b, 0x67001f};

std::span<const uint32_t> points(ColourMap map) {
  switch (map) {
    case ColourMap::reds:
      return kReds;
    case ColourMap::blues:
      return kBlues;
    case ColourMap::diverging:
      return kDiverging;
    case ColourMap::viridis:
      break;
  }
  return kViridis;
}

}  // namespace

ColourMap colour_map(std::string_view name) {
  if (name == "viridis") return ColourMap::viridis;
  if (name == "reds" || name == "Reds") return ColourMap::reds;
  if (name == "blues" || name == "Blues") return ColourMap::blues;
  if (name == "diverging") return ColourMap::diverging;
  refuse("unknown colour map \"{name}\", expected viridis, reds, blues or diverging", "name"_a = name);
}

Colour colour_at(ColourMap map, double t) {
  const std::span<const uint32_t> all = points(map);
  const double place = std::clamp(std::isnan(t) ? 0.0 : t, 0.0, 1.0) * static_cast<double>(all.size() - 1);
  const size_t i = std::min(static_cast<size_t>(place), all.size() - 2);
  const double part = place - static_cast<double>(i);
  const auto channel = [&](int shift) {
    const double a = (all[i] >> shift) & 255, b = (all[i + 1] >> shift) & 255;
    return static_cast<uint8_t>(std::lround(a + (b - a) * part));
  };
  return {channel(16), channel(8), channel(0)};
}

std::string hex(Colour colour) {
  constexpr char digits[] = "0123456789abcdef";
  std::string out = "#";
  for (uint8_t c : {colour.red, colour.green, colour.blue}) {
    out += digits[c >> 4];
    out += digits[c & 15];
  }
  return out;
}

double luminance(Colour colour) {
  const auto linear = [](uint8_t c) {
    const double s = c / 255.0;
    return s <= 0.04045 ? s / 12.92 : std::pow((s + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
}

}  // namespace qkv
