// Heat maps: what the backends share.
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

/// A matrix (rows, cols) with at most that many rows and columns: blocks of equal size replaced by their mean. A block
/// with an infinity or nothing but NaN keeps it; other NaN do not count.
Matrix averaged(const Tensor& matrix, int64_t most_rows, int64_t most_cols);

/// A number for a cell: two decimals below 10, none from 100 on.
std::string cell_number(double value);

class SvgWriter;
void draw_heat(SvgWriter& w, const HeatMap& map, const PanelPlan& plan, bool as_image);

}  // namespace qkv::plotting
