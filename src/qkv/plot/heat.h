// Heat maps: code shared by the backends.
#pragma once

#include <string>
#include <vector>

#include "qkv/plot/layout.h"

namespace qkv::plotting {

/// Row-major numbers to be drawn as cells.
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<float> values;
  float at(int64_t row, int64_t col) const { return values[row * cols + col]; }
};

/// A matrix (rows, cols) reduced to at most the given numbers of rows and columns: blocks of equal size are replaced by
/// their mean. A block with an infinity, or of NaN only, keeps it; other NaN are ignored.
Matrix averaged(const Tensor& matrix, int64_t most_rows, int64_t most_cols);

/// A number for a cell: two decimals below 10, one below 100, then none.
std::string cell_number(double value);

class SvgWriter;
void draw_heat(SvgWriter& w, const HeatMap& map, const PanelPlan& plan, bool as_image);

}  // namespace qkv::plotting
