// Op-table rows: positions inside attention.
#include <algorithm>
#include <cmath>

#include "qkv/core/names.h"
#include "qkv/ops/diagonals.h"
#include "qkv/ops/rotary.h"
#include "qkv/ops/shape.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

// The number of keys follows from the number of diagonals.
OpCase dense_row(int64_t queries, std::vector<std::vector<Shape>> shapes) {
  return {.op = "dense_of_diagonals",
          .label = std::to_string(queries) + " queries",
          .shapes = std::move(shapes),
          .call =
              [=](const Tensors& x) {
                return dense_of_diagonals(x[0], queries, (x[0].defined() ? x[0].size(-1) : 0) + 1 - queries);
              },
          .reference =
              [=](const Arrays& x) {
                const int64_t count = x[0].shape[-1], keys = count + 1 - queries;
                Shape shape = x[0].shape;
                shape.set(-1, queries);
                shape.push_back(keys);
                Array y(shape);
                for (int64_t n = 0; n < y.numel(); ++n) {
                  const int64_t i = n / keys % queries, j = n % keys;
                  y[n] = x[0][n / keys / queries * count + j - i + queries - 1];
                }
                return y;
              }};
}

OpCase clipped_row(int64_t queries, int64_t keys, int64_t offset, std::vector<std::vector<Shape>> shapes) {
  return {.op = "clipped_diagonals",
          .label = std::to_string(queries) + " x " + std::to_string(keys) + " from " + std::to_string(offset),
          .shapes = std::move(shapes),
          .call = [=](const Tensors& x) { return clipped_diagonals(x[0], queries, keys, offset); },
          .reference =
              [=](const Arrays& x) {
                const int64_t heads = x[0].shape[0], width = x[0].shape[1], m = width / 2,
                              count = std::max<int64_t>(0, queries + keys - 1);
                Array y(Shape{heads, count});
                for (int64_t h = 0; h < heads; ++h)
                  for (int64_t i = 0; i < queries; ++i)
                    for (int64_t j = 0; j < keys; ++j) {
                      y[h * count + j - i + queries - 1] =
                          x[0][h * width + std::min(std::max(j - (offset + i), -m), m) + m];
                    }
                return y;
              }};
}

OpCase rotate_row(HeadAxis axis, int64_t offset, const Rotation& rotation, std::vector<std::vector<Shape>> shapes) {
  return {.op = "rotate",
          .label = std::string(axis == HeadAxis::outer ? "heads outer, " : "heads inner, ") +
                   std::string(name_of(rotation.pairs)),
          .shapes = std::move(shapes),
          .call = [=](const Tensors& x) { return rotate(x[0], axis, offset, rotation); },
          .reference =
              [=](const Arrays& x) {
                const Shape s = x[0].shape;
                const int64_t D = s[3];
                Array y(s);
                const bool halves = rotation.pairs == RotaryPairs::halves;
                for (int64_t row = 0; row < (D > 0 ? y.numel() / D : 0); ++row)
                  for (int64_t c = 0; c < D / 2; ++c) {
                    const int64_t place = axis == HeadAxis::outer ? row % s[2] : row / s[2] % s[1];
                    const double power = static_cast<double>(2 * c) / static_cast<double>(D);
                    const double angle = static_cast<double>(offset + place) / std::pow(rotation.base, power);
                    const int64_t a = row * D + (halves ? c : 2 * c), b = halves ? a + D / 2 : a + 1;
                    y[a] = x[0][a] * std::cos(angle) - x[0][b] * std::sin(angle);
                    y[b] = x[0][a] * std::sin(angle) + x[0][b] * std::cos(angle);
                  }
                return y;
              }};
}

// A width is even, so the smallest input is a pair: the same element twice.
OpCase rotate_one_row() {
  return {.op = "rotate",
          .label = "one element twice",
          .shapes = {{{1, 1, 1, 1}}},
          .call =
              [](const Tensors& x) {
                return rotate(concat({x[0], x[0]}, 3), HeadAxis::outer, 2);
              },
          .reference =
              [](const Arrays& x) {
                Array y(Shape{1, 1, 1, 2});
                y[0] = x[0][0] * std::cos(2) - x[0][0] * std::sin(2);
                y[1] = x[0][0] * std::sin(2) + x[0][0] * std::cos(2);
                return y;
              }};
}

}  // namespace

std::vector<OpCase> position_rows() {
  constexpr RotaryPairs kHalves = RotaryPairs::halves;
  return {
      rotate_row(HeadAxis::outer, 5, {},
                 {{{2, 2, 3, 4}}, {{1, 1, 1, 2}}, {{1, 2, 5, 18}}, {{0, 1, 2, 2}}, {{1, 1, 0, 2}}, {{1, 2, 3, 0}}}),
      rotate_one_row(),
      rotate_row(HeadAxis::inner, -3, {.base = 100}, {{{2, 3, 2, 4}}, {{1, 1, 1, 2}}, {{1, 5, 3, 14}}, {{2, 0, 1, 4}}}),
      rotate_row(HeadAxis::outer, 5, {.pairs = kHalves},
                 {{{2, 2, 3, 4}}, {{1, 1, 1, 2}}, {{1, 2, 5, 18}}, {{0, 1, 2, 2}}, {{1, 1, 0, 2}}, {{1, 2, 3, 0}}}),
      rotate_row(HeadAxis::inner, -3, {.base = 100, .pairs = kHalves},
                 {{{2, 3, 2, 4}}, {{1, 1, 1, 2}}, {{1, 5, 3, 14}}, {{1, 2, 1, 34}}, {{2, 0, 1, 4}}}),
      dense_row(3, {{{2, 7}}, {{1, 3}}, {{2, 3, 19}}, {{0, 5}}, {{7}}, {{2, 2}}}),
      dense_row(1, {{{1}}, {{2, 1}}, {{3, 17}}}),
      clipped_row(4, 6, 0, {{{2, 5}}, {{3, 1}}, {{1, 33}}, {{0, 3}}}),
      clipped_row(1, 9, 8, {{{2, 7}}}),
      clipped_row(1, 1, 0, {{{1, 1}}}),
      clipped_row(5, 3, 2, {{{2, 3}}}),
      clipped_row(0, 0, 0, {{{2, 3}}})};
}

}  // namespace qkv::tests
