// Terminal cells.
#include "qkv/plot/text_canvas.h"

#include "qkv/plot/text.h"

namespace qkv::plotting {

void TextCanvas::put(int x, int y, char32_t glyph, std::optional<Colour> ink, std::optional<Colour> ground) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  Cell& cell = cells_[static_cast<size_t>(y) * width_ + x];
  const int columns = display_width(glyph);
  if (columns == 0) {
    append_utf8(cell.glyph, glyph);
    return;
  }
  cell = {"", ink, ground};
  if (columns == 2 && x + 1 >= width_) {
    cell.glyph = " ";
    return;
  }
  append_utf8(cell.glyph, glyph);
  if (columns == 2) (&cell)[1] = {"", ink, ground};
}

void TextCanvas::text(int x, int y, std::string_view utf8, std::optional<Colour> ink) {
  for (char32_t p : code_points(utf8)) {
    const int columns = display_width(p);
    put(columns == 0 ? x - 1 : x, y, p, ink);
    x += columns;
  }
}

void TextCanvas::centred(int x, int width, int y, std::string_view utf8) {
  const int columns = display_width(utf8);
  text(columns >= width ? x : x + (width - columns) / 2, y,
       columns > width ? cut_to(utf8, width, "~") : std::string(utf8));
}

void TextCanvas::copy(const TextCanvas& from, int x, int y) {
  for (int i = 0; i < from.height_ && y + i < height_; ++i)
    for (int j = 0; j < from.width_ && x + j < width_; ++j)
      cells_[static_cast<size_t>(y + i) * width_ + x + j] = from.cells_[static_cast<size_t>(i) * from.width_ + j];
}

std::string TextCanvas::str() const {
  std::string out;
  const auto code = [&](int kind, Colour c) {
    out += "\x1b[" + std::to_string(kind) + ";2;" + std::to_string(c.red) + ";" + std::to_string(c.green) + ";" +
           std::to_string(c.blue) + "m";
  };
  for (int y = 0; y < height_; ++y) {
    std::optional<Colour> ink, ground;
    for (int x = 0; x < width_; ++x) {
      const Cell& cell = cells_[static_cast<size_t>(y) * width_ + x];
      if ((ink && !cell.ink) || (ground && !cell.ground)) {
        out += "\x1b[0m";
        ink = ground = std::nullopt;
      }
      if (cell.ink && cell.ink != ink) code(38, *cell.ink);
      if (cell.ground && cell.ground != ground) code(48, *cell.ground);
      ink = cell.ink;
      ground = cell.ground;
      out += cell.glyph;
    }
    if (ink || ground) out += "\x1b[0m";
    out += '\n';
  }
  return out;
}

std::string cut_to(std::string_view utf8, int columns, std::string_view mark) {
  if (display_width(utf8) <= columns) return std::string(utf8);
  std::string out;
  int used = 0;
  for (char32_t p : code_points(utf8)) {
    if (used + display_width(p) > columns - 1) break;
    used += display_width(p);
    append_utf8(out, p);
  }
  return columns > 0 ? out + std::string(mark) : out;
}

}  // namespace qkv::plotting
