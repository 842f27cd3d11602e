// A rectangle of coloured terminal cells, written out line by line.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/plot/colour.h"

namespace qkv::plotting {

class TextCanvas {
 public:
  TextCanvas(int width, int height) : width_(width), height_(height), cells_(static_cast<size_t>(width) * height) {}

  int width() const { return width_; }
  int height() const { return height_; }

  /// Writes one character; outside the canvas it is ignored. A wide one takes two cells, or leaves a blank if only one
  /// is left.
  void put(int x, int y, char32_t glyph, std::optional<Colour> ink = {}, std::optional<Colour> ground = {});
  /// Writes text starting at x, cut at the edge.
  void text(int x, int y, std::string_view utf8, std::optional<Colour> ink = {});
  /// Writes text centred in [x, x + width), or cut to it.
  void centred(int x, int width, int y, std::string_view utf8);
  void copy(const TextCanvas& from, int x, int y);

  /// All lines; colours as 24-bit escape codes, reset at the end of each line.
  std::string str() const;

 private:
  struct Cell {
    std::string glyph = " ";
    std::optional<Colour> ink, ground;
    bool operator==(const Cell&) const = default;
  };
  int width_, height_;
  std::vector<Cell> cells_;  // the right half of a wide character has an empty glyph
};

/// The text cut to `columns` columns; if it was cut, the last one is `mark`.
std::string cut_to(std::string_view utf8, int columns, std::string_view mark);

}  // namespace qkv::plotting
