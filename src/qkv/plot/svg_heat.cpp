// Heat maps in SVG: one rectangle per cell, or one embedded image if there are many cells.
#include <algorithm>
#include <cmath>

#include "qkv/plot/heat.h"
#include "qkv/plot/png.h"
#include "qkv/plot/svg_writer.h"

namespace qkv::plotting {
namespace {

constexpr int64_t kMostImageCells = 1024;

std::string base64(const std::string& bytes) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(bytes.size() * 4 / 3 + 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](size_t at) { return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0u; };
    const uint32_t word = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out += digits[word >> 18];
    out += digits[word >> 12 & 63];
    out += i + 1 < bytes.size() ? digits[word >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? digits[word & 63] : '=';
  }
  return out;
}

// A colour index per cell: 0 .. 254 along the map, 255 for NaN.
uint8_t colour_index(const ColourRange& range, float value) {
  const double t = range.fraction(value);
  return std::isnan(t) ? 255 : static_cast<uint8_t>(std::lround(std::clamp(t, 0.0, 1.0) * 254));
}

void embed_png(SvgWriter& w, const std::string& png, const Box& f) {
  w.open("image")
      .attribute("x", f.x)
      .attribute("y", f.y)
      .attribute("width", f.width)
      .attribute("height", f.height)
      .attribute("preserveAspectRatio", "none")
      .attribute("style", "image-rendering:pixelated")
      .attribute("href", "data:image/png;base64," + base64(png))
      .end();
}

void draw_image(SvgWriter& w, const Matrix& cells, const PanelPlan& plan) {
  std::vector<Colour> palette;
  for (int i = 0; i < 255; ++i) palette.push_back(colour_at(plan.colours.map, i / 254.0));
  palette.push_back(kNanColour);
  // Some viewers smooth images and would blur small ones: repeat cells until there are two image pixels per pixel on
  // the page.
  const int64_t again_x = std::max<int64_t>(1, std::llround(2 * plan.frame.width / static_cast<double>(cells.cols)));
  const int64_t again_y = std::max<int64_t>(1, std::llround(2 * plan.frame.height / static_cast<double>(cells.rows)));
  std::vector<uint8_t> pixels;
  pixels.reserve(cells.values.size() * again_x * again_y);
  for (int64_t i = 0; i < cells.rows * again_y; ++i)
    for (int64_t j = 0; j < cells.cols * again_x; ++j)
      pixels.push_back(colour_index(plan.colours, cells.at(i / again_y, j / again_x)));
  const std::string png = encode_png_indexed(pixels, cells.cols * again_x, cells.rows * again_y, palette);
  embed_png(w, png, plan.frame);
}

// Two image pixels per pixel on the page, as for cells alone. A cell covers the picture by its place on the colour
// scale.
void draw_over_picture(SvgWriter& w, const Matrix& cells, const Tensor& picture, const PanelPlan& plan) {
  constexpr double kMostCover = 0.72;
  const int64_t high = picture.size(0), wide = picture.size(1), channels = picture.size(2);
  const auto across = std::max<int64_t>(1, std::llround(2 * plan.frame.width)),
             down = std::max<int64_t>(1, std::llround(2 * plan.frame.height));
  std::vector<uint8_t> pixels;
  pixels.reserve(static_cast<size_t>(across * down * 3));
  for (int64_t y = 0; y < down; ++y)
    for (int64_t x = 0; x < across; ++x) {
      const double t = plan.colours.fraction(cells.at(y * cells.rows / down, x * cells.cols / across));
      const double cover = std::isnan(t) ? kMostCover : kMostCover * std::clamp(t, 0.0, 1.0);
      const Colour over = std::isnan(t) ? kNanColour : colour_at(plan.colours.map, t);
      const float* under = picture.ptr() + (y * high / down * wide + x * wide / across) * channels;
      const uint8_t parts[] = {over.red, over.green, over.blue};
      for (int64_t c = 0; c < 3; ++c) {
        const double light = 255 * std::clamp(double{under[channels == 3 ? c : 0]}, 0.0, 1.0);
        pixels.push_back(static_cast<uint8_t>(std::lround(light + cover * (parts[c] - light))));
      }
    }
  embed_png(w, encode_png_rgb(pixels, across, down), plan.frame);
}

void draw_cells(SvgWriter& w, const Matrix& cells, const PanelPlan& plan) {
  const Box& f = plan.frame;
  const double cw = f.width / static_cast<double>(cells.cols), ch = f.height / static_cast<double>(cells.rows);
  w.open("g").attribute("class", "cells").attribute("shape-rendering", "crispEdges").body();
  for (int64_t i = 0; i < cells.rows; ++i) {
    for (int64_t j = 0; j < cells.cols; ++j) {
      const double t = plan.colours.fraction(cells.at(i, j));
      const Colour colour = std::isnan(t) ? kNanColour : colour_at(plan.colours.map, t);
      w.rect({f.x + cw * static_cast<double>(j), f.y + ch * static_cast<double>(i), cw, ch})
          .attribute("fill", hex(colour))
          .end();
    }
  }
  w.close("g");
}

void draw_values(SvgWriter& w, const Matrix& cells, const PanelPlan& plan) {
  const Box& f = plan.frame;
  const double cw = f.width / static_cast<double>(cells.cols), ch = f.height / static_cast<double>(cells.rows);
  const double font = std::min(kCellFont, ch * 0.6);
  if (font < kLeastFont) return;
  for (int64_t i = 0; i < cells.rows; ++i) {
    for (int64_t j = 0; j < cells.cols; ++j) {
      const float v = cells.at(i, j);
      const std::string label = cell_number(v);
      if (text_width(label, font) > cw - 2) continue;
      const double t = plan.colours.fraction(v);
      const bool dark = luminance(std::isnan(t) ? kNanColour : colour_at(plan.colours.map, t)) < 0.3;
      w.text(f.x + cw * (static_cast<double>(j) + 0.5), f.y + ch * (static_cast<double>(i) + 0.5), label, font,
             Anchor::middle, 0, dark ? "#fff" : "#1a1a1a");
    }
  }
}

// A dark line on a white one: visible on every colour of every map.
void draw_boxes(SvgWriter& w, const HeatMap& map, const PanelPlan& plan) {
  const Box& f = plan.frame;
  const double cw = f.width / static_cast<double>(map.values.size(1)),
               ch = f.height / static_cast<double>(map.values.size(0));
  const double inset = std::min({1.6, cw / 5, ch / 5});
  for (const CellIndex& cell : map.boxes) {
    const Box box{f.x + cw * static_cast<double>(cell.col) + inset, f.y + ch * static_cast<double>(cell.row) + inset,
                  cw - 2 * inset, ch - 2 * inset};
    w.rect(box).attribute("fill", "none").attribute("stroke", "#fff").attribute("stroke-width", 2 * inset).end();
    w.rect(box)
        .attribute("class", "gold")
        .attribute("fill", "none")
        .attribute("stroke", "#111")
        .attribute("stroke-width", inset * 0.9)
        .end();
  }
}

}  // namespace

void draw_heat(SvgWriter& w, const HeatMap& map, const PanelPlan& plan, bool as_image) {
  if (map.values.numel() == 0) {
    const Box& f = plan.frame;
    w.text(f.x + f.width / 2, f.y + f.height / 2, "empty", kFont, Anchor::middle);
    return;
  }
  const Matrix cells = as_image ? averaged(map.values, kMostImageCells, kMostImageCells)
                                : averaged(map.values, map.values.size(0), map.values.size(1));
  if (map.picture.defined())
    draw_over_picture(w, cells, map.picture, plan);
  else if (as_image)
    draw_image(w, cells, plan);
  else
    draw_cells(w, cells, plan);
  if (map.cell_values && !as_image) draw_values(w, cells, plan);
  draw_boxes(w, map, plan);
}

}  // namespace qkv::plotting
