// Lab 10.6: the positional encoding: its figures, its frequencies, and how it carries distances.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "qkv/attention/attend.h"
#include "qkv/attention/positions.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/self_attention.h"
#include "qkv/labs/show.h"

namespace qkv::labs::self_attention {
namespace {

constexpr int64_t kWidth = 32, kPositions = 60;

double dot(const float* a, const float* b) {
  double sum = 0;
  for (int64_t i = 0; i < kWidth; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

// How often a column changes its sign over these positions.
int64_t sign_changes(const Tensor& p, int64_t column) {
  int64_t changes = 0;
  for (int64_t i = 2; i < p.size(0); ++i) changes += (p.at({i, column}) > 0) != (p.at({i - 1, column}) > 0);
  return changes;
}

// M p_i for all pairs of columns at once.
std::array<float, kWidth> shifted(const float* p, int64_t distance) {
  std::array<float, kWidth> out{};
  for (int64_t j = 0; j < kWidth / 2; ++j) {
    const Tensor m = position_shift(distance, j, kWidth);
    for (int64_t r = 0; r < 2; ++r)
      out[static_cast<size_t>(2 * j + r)] = m.at({r, 0}) * p[2 * j] + m.at({r, 1}) * p[2 * j + 1];
  }
  return out;
}

// The explorer's bench with the encoding of this many positions.
report::BenchLink bench(int64_t positions) {
  return report::BenchLink("positions")
      .set("length", static_cast<double>(positions))
      .set("width", static_cast<double>(kWidth))
      .set("offset", 0.0);
}

}  // namespace

void encoding(Page& page) {
  page.heading(tr("Positions as sines and cosines"));
  page.say(tr(
      "So every token is told its position: a vector $p_i$ for position $i$ is added to the token's vector. The book "
      "uses fixed vectors (Vaswani and others, 2017). Columns come in pairs, a sine and a cosine of one frequency "
      "$\\omega_j$:"));
  page.formula(
      "p_{i, 2j} = \\sin(\\omega_j i), \\quad p_{i, 2j + 1} = \\cos(\\omega_j i), \\quad \\omega_j = 10000^{-2j/d}");
  const Tensor p = sinusoidal_positions(kPositions, kWidth);
  std::vector<Series> columns;
  for (int64_t c = 6; c < 10; ++c) {
    Series s{tr("Col {column}", "column"_a = c), {}, {}};
    for (int64_t i = 0; i < kPositions; ++i) {
      s.x.push_back(static_cast<double>(i));
      s.y.push_back(p.at({i, c}));
    }
    columns.push_back(std::move(s));
  }
  Figure figure = curves(std::move(columns), {.label = tr("Row (position)")});
  figure.size = FigureSize{6, 2.5};
  page.draw(
      "position-columns", figure,
      tr("Columns 6 to 9 of 32 over 60 positions. 6 and 7 oscillate faster than 8 and 9; within a pair only the phase "
         "differs."),
      bench(kPositions));
  page.beside_the_book(tr("position 1, width 32: the first four numbers"), ".8415 .5403 .5332 .8460",
                       shown(p.part(kWidth, {4})));
  const float row_1[] = {.8415f, .5403f, .5332f, .8460f, .3110f, .9504f, .1769f, .9842f, .0998f, .9950f};
  double off = 0;
  bool start = true;
  for (int64_t c = 0; c < 10; ++c) off = std::max(off, static_cast<double>(std::abs(p.at({1, c}) - row_1[c])));
  for (int64_t c = 0; c < kWidth; ++c) start = start && p.at({0, c}) == static_cast<float>(c % 2);
  page.claim(off < 6e-5 && start,
             tr("Position 0 is 0, 1, 0, 1, ...; position 1 begins 0.8415, 0.5403, 0.5332, 0.8460."),
             tr("position 1: {values}", "values"_a = shown(p.part(kWidth, {4}))));
}

void binary(Page& page) {
  page.heading(tr("Like counting in binary"));
  page.say(tr(
      "Write the numbers 0 to 7 in binary. The lowest bit changes with every number, the next one with every second, "
      "the highest with every fourth:"));
  std::vector<Text> list;
  for (int i = 0; i < 8; ++i)
    list.push_back(tr("{number} in binary is {bits}", "number"_a = i, "bits"_a = fmt::format("{:03b}", i)));
  page.print(in_lines(list));
  std::array<int, 3> flips{};
  for (int i = 1; i < 8; ++i)
    for (size_t bit = 0; bit < 3; ++bit) flips[bit] += ((i ^ (i - 1)) >> bit) & 1;
  page.fact(tr("Counting from 0 to 7, lower bits alternate faster."),
            tr("the lowest bit changes {lowest} times, the next {next}, the highest {highest}", "lowest"_a = flips[0],
               "next"_a = flips[1], "highest"_a = flips[2]));
  page.say(
      tr("The encoding does the same with smooth waves, which suit real numbers better than bits do. The column index "
         "takes the place of the bit:"));
  page.draw("position-map",
            heatmaps(sinusoidal_positions(kPositions, kWidth), tr("Column (encoding dimension)"), tr("Row (position)"),
                     {}, {.colours = {.low = -1, .high = 1}}),
            tr("The encoding of 60 positions, 32 columns: the frequency falls from left to right."), bench(kPositions));
  const Tensor p = sinusoidal_positions(40000, kWidth);
  std::vector<std::vector<std::string>> rows;
  std::vector<int64_t> changes;
  for (int64_t j = 0; j < kWidth / 2; ++j) {
    changes.push_back(sign_changes(p, 2 * j));
    if (j % 3 == 0)
      rows.push_back({fmt::format("{}, {}", 2 * j, 2 * j + 1),
                      rounded(std::pow(10000.0, -2.0 * static_cast<double>(j) / kWidth), 6),
                      rounded(2 * std::numbers::pi * std::pow(10000.0, 2.0 * static_cast<double>(j) / kWidth), 1),
                      grouped(changes.back())});
  }
  page.table({tr("columns"), verbatim("$\\omega_j$"), tr("wavelength, positions"), tr("sign changes in 40,000")}, rows);
  page.claim(std::is_sorted(changes.rbegin(), changes.rend()) && changes.front() > 10000 * changes.back() / 2 &&
                 changes.back() >= 1,
             tr("From pair to pair the sign changes become rarer."),
             tr("{first} sign changes in the first pair, {last} in the last", "first"_a = grouped(changes.front()),
                "last"_a = changes.back()));
}

void relative_positions(Page& page) {
  page.heading(tr("Distances are rotations"));
  page.say(
      tr("Why a sine and a cosine? Because a step of $\\delta$ positions then rotates every pair by the angle $\\delta "
         "\\omega_j$, wherever it starts:"));
  page.formula("p_{i + \\delta, 2j} = \\cos(\\delta \\omega_j) p_{i, 2j} + \\sin(\\delta \\omega_j) p_{i, 2j + 1}");
  page.formula(
      "p_{i + \\delta, 2j + 1} = -\\sin(\\delta \\omega_j) p_{i, 2j} + \\cos(\\delta \\omega_j) p_{i, 2j + 1}");
  page.say(
      tr("The matrix does not depend on $i$. So a linear map can turn \"where I am\" into \"three before me\", and "
         "attention applies two linear maps before its scores."));
  const int64_t last = 300;
  const Tensor p = sinusoidal_positions(last, kWidth);
  double worst = 0, norm_off = 0, spread = 0;
  for (int64_t distance : {1, 2, 5, 10, 60, -3})
    for (int64_t i = std::max<int64_t>(0, -distance); i + distance < last && i < last; ++i) {
      const auto moved = shifted(p.ptr() + i * kWidth, distance);
      for (int64_t c = 0; c < kWidth; ++c)
        worst = std::max(worst, static_cast<double>(std::abs(moved[static_cast<size_t>(c)] - p.at({i + distance, c}))));
    }
  page.claim(
      worst < 1e-6, tr("For each distance and pair, one matrix moves every position by that distance."),
      tr("largest error {error} over all pairs, 300 positions and δ = 1, 2, 5, 10, 60, −3", "error"_a = tiny(worst)));
  const double norm = std::sqrt(kWidth / 2.0);
  std::vector<Series> lines;
  const int64_t starts[] = {0, 50, 200};
  for (size_t s = 0; s < 3; ++s) {
    Series line{fmt::format("i = {}", starts[s]), {}, {}};
    for (int64_t d = 0; d < 100; ++d) {
      line.x.push_back(static_cast<double>(d));
      line.y.push_back(dot(p.ptr() + starts[s] * kWidth, p.ptr() + (starts[s] + d) * kWidth));
    }
    lines.push_back(std::move(line));
  }
  for (int64_t i = 0; i < last; ++i)
    norm_off = std::max(norm_off, std::abs(std::sqrt(dot(p.ptr() + i * kWidth, p.ptr() + i * kWidth)) - norm));
  for (int64_t d = 0; d < 100; ++d)
    for (int64_t i = 0; i + d < last; ++i)
      spread = std::max(
          spread, std::abs(dot(p.ptr() + i * kWidth, p.ptr() + (i + d) * kWidth) - lines[0].y[static_cast<size_t>(d)]));
  page.draw(
      "position-products", curves(lines, {.label = tr("distance")}, {.label = tr("dot product of two positions")}),
      tr("The three curves coincide: the product depends only on the distance, and is largest at 0."), bench(100));
  page.claim(norm_off < 1e-5 && spread < 1e-4,
             tr("All $p_i$ have length $\\sqrt{d / 2} = 4$, and $p_i^\\top p_{i + \\delta} = \\sum_j \\cos(\\delta "
                "\\omega_j)$ for any $i$."),
             tr("largest deviation of a length {length}, of a product {product}", "length"_a = tiny(norm_off),
                "product"_a = tiny(spread)));
}

void looking_back(Page& page) {
  page.heading(tr("A head that looks three tokens back, without training"));
  page.say(
      tr("Take $W_q$ to be the rotation by $-3$ and $W_k$ the identity, times a factor: the score of query $i$ and key "
         "$j$ is then a multiple of $p_{i - 3}^\\top p_j$, which is largest at $j = i - 3$."));
  const int64_t n = 20;
  const Tensor p = sinusoidal_positions(n, kWidth);
  Tensor q = Tensor::empty({n, kWidth});
  for (int64_t i = 0; i < n; ++i)
    std::copy_n(shifted(p.ptr() + i * kWidth, -3).data(), kWidth, q.mutable_ptr() + i * kWidth);
  const Attended seen = attend(ScaledDot{.scale = 4.0f}, q, p, p);
  const Tensor w = seen.weights.matrix().viewed({n, n});
  bool found = true;
  for (int64_t i = 3; i < n; ++i) found = found && seen.weights.top_k(0, 0, i, 1)[0].key == i - 3;
  page.draw("three-back", heatmaps(w, tr("Keys"), tr("Queries"), {}, {.colours = {.low = 0, .high = 1}}),
            tr("The weights of this head: every query looks at the key three before it (the first three have none)."));
  page.claim(found, tr("From position 3 on every query gives its largest weight to the token three before it."),
             tr("position 10 gives position 7 a weight of {weight:.2f}", "weight"_a = w.at({10, 7})));
}

}  // namespace qkv::labs::self_attention
