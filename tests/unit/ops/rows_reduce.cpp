// Op-table rows: reductions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/ops/reduce.h"
#include "unit/ops/places.h"

namespace qkv::tests {
namespace {

// Folds every element into the result element it belongs to.
template <class Fold>
Array reduced(const Array& x, const std::vector<int>& axes, KeepDims keep, double start, Fold&& fold) {
  std::vector<bool> gone(static_cast<size_t>(x.shape.rank()), axes.empty());
  for (int axis : axes) gone[static_cast<size_t>(axis < 0 ? axis + x.shape.rank() : axis)] = true;
  Shape shape;
  for (size_t k = 0; k < gone.size(); ++k) {
    if (!gone[k])
      shape.push_back(x.shape[static_cast<int>(k)]);
    else if (keep == KeepDims::yes)
      shape.push_back(1);
  }
  Array y(shape, start);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const Place from = place_of(x.shape, i);
    Place to;
    for (size_t k = 0; k < gone.size(); ++k) {
      if (!gone[k])
        to.push_back(from[k]);
      else if (keep == KeepDims::yes)
        to.push_back(0);
    }
    double& sum = y[flat_of(shape, to)];
    sum = fold(sum, x[i]);
  }
  return y;
}

struct Pattern {
  std::string label;
  std::vector<int> axes;
  KeepDims keep;
  std::vector<std::vector<Shape>> shapes;
};

std::vector<OpCase> rows_of(const Pattern& p) {
  const auto plus = [](double sum, double x) { return sum + x; };
  const auto larger = [](double most, double x) { return std::isnan(most) || x < most ? most : x; };
  const auto smaller = [](double least, double x) { return std::isnan(least) || x > least ? least : x; };
  std::vector<std::vector<Shape>> not_empty;  // no result is of nothing; there may be no results
  for (const auto& shapes : p.shapes)
    if (shapes[0].numel() > 0 || reduced(Array(shapes[0]), p.axes, p.keep, 0, plus).numel() == 0)
      not_empty.push_back(shapes);
  return {{.op = "sum",
           .label = p.label,
           .shapes = p.shapes,
           .call = [p](const Tensors& x) { return sum(x[0], std::span<const int>(p.axes), p.keep); },
           .reference = [p, plus](const Arrays& x) { return reduced(x[0], p.axes, p.keep, 0, plus); }},
          {.op = "mean",
           .label = p.label,
           .shapes = not_empty,
           .call = [p](const Tensors& x) { return mean(x[0], std::span<const int>(p.axes), p.keep); },
           .reference =
               [p, plus](const Arrays& x) {
                 Array y = reduced(x[0], p.axes, p.keep, 0, plus);
                 for (double& v : y.v) v *= static_cast<double>(y.numel()) / static_cast<double>(x[0].numel());
                 return y;
               }},
          {.op = "max",
           .label = p.label,
           .shapes = not_empty,
           .call = [p](const Tensors& x) { return max(x[0], std::span<const int>(p.axes), p.keep); },
           .reference =
               [p, larger](const Arrays& x) {
                 return reduced(x[0], p.axes, p.keep, -std::numeric_limits<double>::infinity(), larger);
               },
           .step = 1e-6},  // two maxima are rarely closer
          {.op = "min",
           .label = p.label,
           .shapes = not_empty,
           .call = [p](const Tensors& x) { return min(x[0], std::span<const int>(p.axes), p.keep); },
           .reference =
               [p, smaller](const Arrays& x) {
                 return reduced(x[0], p.axes, p.keep, std::numeric_limits<double>::infinity(), smaller);
               },
           .step = 1e-6}};
}

}  // namespace

std::vector<OpCase> reduce_rows() {
  const Pattern patterns[] = {
      {"all",
       {},
       KeepDims::no,
       {{{}}, {{1}}, {{7}}, {{8}}, {{9}}, {{33}}, {{0}}, {{3, 0}}, {{4, 5}}, {{2, 3, 4, 3, 2}}, {{700}}}},
      {"all, kept", {}, KeepDims::yes, {{{3, 5}}, {{2, 1, 3, 1, 2}}}},
      {"last axis",
       {-1},
       KeepDims::no,
       {{{5, 7}}, {{5, 8}}, {{3, 9}}, {{2, 33}}, {{1, 1}}, {{0, 3}}, {{3, 0}}, {{2, 2, 2, 2, 3}}, {{9, 129}}}},
      {"last axis, kept", {-1}, KeepDims::yes, {{{5, 7}}, {{2, 3, 9}}}},
      {"first axis",
       {0},
       KeepDims::no,
       {{{5, 7}},
        {{7, 8}},
        {{8, 9}},
        {{9, 33}},
        {{17, 2}},
        {{20, 40}},
        {{0, 3}},
        {{3, 0}},
        {{3, 2, 2, 2, 2}},
        {{2, 140}}}},
      {"middle axis", {1}, KeepDims::no, {{{3, 5, 4}}, {{2, 9, 33}}, {{2, 1, 5}}, {{2, 0, 3}}, {{10, 3, 2, 2}}}},
      {"two axes apart",
       {0, -1},
       KeepDims::no,
       {{{3, 5, 4}}, {{2, 3, 4, 5}}, {{2, 9, 1, 8}}, {{2, 0, 3}}, {{2, 2, 3, 2, 2}}}},
      {"two axes apart, kept", {2, 0}, KeepDims::yes, {{{3, 2, 4, 5}}}},
      {"two neighbours", {1, 2}, KeepDims::no, {{{3, 5, 4}}, {{2, 3, 4, 5}}, {{2, 3, 3, 1, 7}}}},
  };
  std::vector<OpCase> rows;
  for (const Pattern& p : patterns)
    for (OpCase& row : rows_of(p)) rows.push_back(std::move(row));
  return rows;
}

}  // namespace qkv::tests
