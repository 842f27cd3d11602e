// Figure: a grid of panels (heat maps, curves with points and bands, bars, histograms) that svg.h, save.h and
// terminal.h draw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/plot/colour.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Words on a figure: a plain string is the same in every language, a tr("...") is said in the language of the page.
class Label {
 public:
  Label() = default;
  Label(const char* words) : Label(std::string(words)) {}
  Label(std::string words) : text_(std::move(words)) {}
  Label(Text text) : text_(std::move(text)) {}

  std::string in(Language language) const { return text_.in(language); }
  /// Its English; on a figure in one language, the words of that language.
  std::string str() const { return in(Language::en); }
  bool empty() const { return text_.empty(); }
  friend bool operator==(const Label& label, std::string_view words) { return label.str() == words; }

 private:
  Text text_;
};

std::vector<Label> labels(const std::vector<std::string>& words);
inline void append_text(std::string& out, const Label& label) { out += label.str(); }

enum class AxisScale { linear, log };

/// An axis; unset limits follow the data.
struct Axis {
  Label label = {};
  std::optional<double> low = {}, high = {};
  AxisScale scale = AxisScale::linear;
};

struct CellIndex {
  int64_t row, col;
};

/// Numbers at the centres of the first and the last cell; the centres between are evenly spaced.
struct CellSpan {
  double first, last;
};

struct HeatMap {
  Tensor values;                                          // (rows, cols); row 0 is drawn on top
  std::vector<std::string> x_tokens = {}, y_tokens = {};  // one per column, one per row; empty: the axis shows indices
  std::vector<CellIndex> boxes = {};                      // framed cells: gold alignments
  bool cell_values = false;                               // write each number into its cell if it fits
  bool square_cells = true;
  std::optional<CellSpan> x_span = {}, y_span = {};  // without tokens: columns and rows are positions on a numeric axis
  Tensor picture = {};  // (height, width, 1 or 3), brightness from 0 to 1: drawn below cells that cover it the more the
                        // larger they are; a terminal shows the cells alone
};

enum class Dash { solid, dashed, dash_dot, dotted, none };

struct LineStyle {
  std::optional<Colour> colour = {};  // not set: from the palette, by position
  Dash dash = Dash::solid;
  bool circles = false;
  double alpha = 1;
  double width = 1.5;
};

/// The style of a format string as in the book: "-", "m--", "g-.", "r:", "o", "ko-" (a colour of bgrcmyk, a line, a
/// circle).
LineStyle line_style(std::string_view format);

/// Points (x[i], y[i]) in order; a value that is not finite breaks the line.
struct Series {
  Label name;  // in the legend; empty: no entry
  std::vector<double> x, y;
  std::optional<LineStyle> style = {};  // not set: "-", "m--", "g-.", "r:" and so on through the palette, by position
};

/// The area between low[i] and high[i] over x[i]: a confidence band.
struct Band {
  Label name;
  std::vector<double> x, low, high;
  std::optional<Colour> colour = {};
};

struct Curves {
  std::vector<Series> series;
  std::vector<Band> bands = {};  // drawn below the series
  bool grid = true;
};

struct NamedValues {
  Label name;
  std::vector<double> values;
};

/// Groups of bars: series[s].values[c] is drawn at categories[c].
struct Bars {
  std::vector<Label> categories;
  std::vector<NamedValues> series;
  bool bar_values = false;  // write each number above its bar if it fits
};

/// Counts of several samples in the same equal bins over their joint range; the second is hatched.
struct Histogram {
  std::vector<NamedValues> samples;
  int bins = 10;
};

struct Panel {
  std::variant<HeatMap, Curves, Bars, Histogram> content;
  Label title = {};
  Axis x = {}, y = {};
  Label short_title = {};  // used if a terminal has no room for the title; empty: the title is cut
};

/// How the heat maps of a figure turn numbers into colours. By default one scale, from the smallest finite value of all
/// panels to the largest (around zero for the diverging map), and one bar.
struct ColourScale {
  std::optional<ColourMap> map = {};  // not set: by the rule of colour.h
  std::optional<double> low = {}, high = {};
  bool per_panel = false;  // each panel has its own scale and bar
  bool bar = true;
};

/// paper: black on white. inherit: no background, text in the colour of the surrounding page, for pages with a dark
/// mode.
enum class Theme { paper, inherit };

/// The width in pixels that a page of the report has for a figure.
inline constexpr double kPageWidth = 776;

/// Inches, like the book's figsize, at 96 pixels per inch.
struct FigureSize {
  double width, height;
};

struct Figure {
  int rows = 1, cols = 1;
  std::vector<Panel> panels;  // rows x cols, row by row
  Label title;
  bool share_x = false, share_y = false;  // one range for all panels, tick labels on the outer ones only
  ColourScale colours;
  std::optional<FigureSize> size;  // not set: from the content; rows of panels wider than `widest` pixels are broken
  double widest = kPageWidth;
  std::string id = "fig";  // prefix of every id in the SVG: figures on one page need different ones
  Theme theme = Theme::paper;
};

struct HeatMapOptions {
  ColourScale colours = {};
  std::optional<FigureSize> size = {};
  std::vector<std::string> x_tokens = {}, y_tokens = {};  // shared by all panels
  bool cell_values = false;
};

/// The book's show_heatmaps: values (rows, cols, queries, keys) as rows x cols panels; (n, queries, keys) is one row,
/// (queries, keys) one panel. Titles, one per column or none, go on the top row; x_label on the bottom row; y_label on
/// the first column.
Figure heatmaps(const Tensor& values, const Label& x_label, const Label& y_label, const std::vector<Label>& titles = {},
                const HeatMapOptions& options = {});

/// One panel of curves, the book's plot: curves({{"sin", x, y}}, {.label = "x"}, {.label = "f(x)", .low = -1}).
Figure curves(std::vector<Series> series, Axis x = {}, Axis y = {});
Figure bars(std::vector<Label> categories, std::vector<NamedValues> series, Axis x = {}, Axis y = {});
Figure histogram(std::vector<NamedValues> samples, Axis x = {}, Axis y = {}, int bins = 10);

/// Vectors x (n) and y (n) as a series; the format as in line_style, "" for the palette's.
Series series(const Label& name, const Tensor& x, const Tensor& y, std::string_view format = "");

/// Bin edges (bins + 1) and for each sample its counts (bins); a value on an inner edge belongs to the bin above it.
struct HistogramCounts {
  std::vector<double> edges;
  std::vector<std::vector<double>> counts;
};
HistogramCounts histogram_counts(const Histogram& histogram);

/// The same figure with every label in one language, as plain words.
Figure translated(Figure figure, Language language);

/// Fails if parts of a figure do not fit together; the error names both counts. Every backend calls it.
void validate(const Figure& figure);

}  // namespace qkv
