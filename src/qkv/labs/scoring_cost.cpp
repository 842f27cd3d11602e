// Lab 10.3: what the two scores cost, in operations, in memory traffic and in time.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/labs/scoring.h"
#include "qkv/labs/show.h"
#include "qkv/labs/stopwatch.h"

namespace qkv::labs::scoring {
namespace {

constexpr int64_t kWidth = 64;

// The hidden layer of the additive score is as wide as queries and keys.
struct Sizes {
  int64_t queries, keys, width = kWidth, values = kWidth;
  double pairs() const { return static_cast<double>(queries * keys); }
  double dot_operations() const { return 2 * pairs() * static_cast<double>(width + values); }
  double tanhs() const { return pairs() * static_cast<double>(width); }
};

struct Times {
  double additive, dot;  // the best of several runs, alternating so that a busy moment affects both
};

// Processor time of one thread.
Times race(const Sizes& s, int runs, const Rng& rng) {
  const SerialScope serial;
  const Tensor q = normal({s.queries, s.width}, rng.at("q")), k = normal({s.keys, s.width}, rng.at("k")),
               v = normal({s.keys, s.values}, rng.at("v"));
  const Additive additive = Additive::random(s.width, s.width, s.width, rng.at("additive"));
  Times best{1e9, 1e9};
  for (int run = 0; run < runs; ++run) {
    best.additive = std::min(best.additive, thread_seconds([&] { attend(additive, q, k, v); }));
    best.dot = std::min(best.dot, thread_seconds([&] { attend(ScaledDot{}, q, k, v); }));
  }
  return best;
}

// Each size doubled in turn: how operations and time grow.
void say_growth(Page& page, const Rng& rng) {
  constexpr int64_t n = 256;
  constexpr int kRuns = 9;
  page.say(
      tr("And each size on its own. From {n} queries and {n} keys of width {width}, with values of the same width, one "
         "of the four is doubled (the hidden units are always as many as a key is wide):",
         "n"_a = n, "width"_a = kWidth));
  const Sizes base{n, n};
  const Times once = race(base, kRuns, rng);
  const auto row = [&](const Text& name, const Sizes& s) {
    const Times t = race(s, kRuns, rng);
    return std::pair<Text, std::vector<std::string>>{
        name,
        {rounded(s.dot_operations() / base.dot_operations(), 2), rounded(t.dot / once.dot, 2),
         rounded(s.tanhs() / base.tanhs(), 2), rounded(t.additive / once.additive, 2)}};
  };
  named_table(
      page, {tr("twice as large"), tr("dot: operations"), tr("dot: time"), tr("additive: tanh"), tr("additive: time")},
      {row(tr("number of queries"), {2 * n, n}), row(tr("number of keys and values"), {n, 2 * n}),
       row(tr("width of queries and keys"), {n, n, 2 * kWidth}),
       row(tr("width of values"), {n, n, kWidth, 2 * kWidth})});
}

}  // namespace

void cost(Page& page) {
  page.exercise("11.3.3");
  page.say(tr(
      "For $n$ queries, $m$ keys, width $d$ and values of width $v$, the dot product takes $2nmd$ operations for the "
      "scores and $2nmv$ for the output: two matrix products, which processors do best. Additive attention with $h$ "
      "hidden units projects once, $2(n + m) d h$, and then needs $nmh$ evaluations of tanh and about $3nmh$ other "
      "operations. A plain implementation also stores $n \\times m \\times h$ numbers; here a fused kernel keeps them "
      "in registers. The table is for one head with $d = h = v = 64$ and $m = n$, on one thread."));
  const Rng rng = Rng(page.seed()).at("cost");
  std::vector<std::vector<std::string>> rows;
  std::vector<double> sizes, additive, dot;
  double slower = 0;
  for (int64_t n : {32, 64, 128, 256, 512}) {
    const Times t = race({n, n}, n <= 256 ? 9 : 3, rng.at(static_cast<uint64_t>(n)));
    sizes.push_back(static_cast<double>(n));
    additive.push_back(t.additive * 1e3);
    dot.push_back(t.dot * 1e3);
    if (n == 256) slower = t.additive / t.dot;
    const double pairs = static_cast<double>(n * n * kWidth);
    rows.push_back({std::to_string(n), rounded(4 * pairs / 1e6, 1), rounded(pairs / 1e6, 1),
                    rounded(4 * pairs / 1048576, 1), rounded(t.dot * 1e3, 3), rounded(t.additive * 1e3, 3),
                    rounded(t.additive / t.dot, 1)});
  }
  page.table({verbatim("$n$"), tr("dot: million operations"), tr("additive: million tanh"), tr("plain additive: MiB"),
              tr("dot, ms"), tr("additive, ms"), tr("ratio")},
             rows);
  page.draw(
      "cost",
      curves({{tr("additive"), sizes, additive, line_style("ro-")},
              {tr("scaled dot product"), sizes, dot, line_style("bo-")}},
             {.label = tr("n queries and n keys"), .scale = AxisScale::log},
             {.label = tr("milliseconds"), .scale = AxisScale::log}),
      tr("Time of a forward pass, the best of several runs. Both grow with the square of n; the additive score pays "
         "for its tanh."));
  page.fact(tr("With queries and keys of equal lengths the scaled dot product is the cheaper score."),
            tr("on this machine, n = 256: additive takes {slower:.1f} times as long", "slower"_a = slower));
  say_growth(page, rng.at("growth"));

  page.say(tr(
      "Operations are not the only cost. Keys and values must be read from memory once per pass, and a single query "
      "does only $2(d + v)$ operations on the $4(d + v)$ bytes of a pair: half an operation per byte, so memory sets "
      "the pace. Many queries at once share what was read. That is why a decoder, which has one query at a time, is "
      "slow for the operations it does, and why sharing keys between heads helps it."));
  const SerialScope serial;
  constexpr int64_t m = 16384;
  const Tensor k = normal({m, kWidth}, rng.at("k")), v = normal({m, kWidth}, rng.at("v"));
  std::vector<std::vector<std::string>> traffic;
  for (int64_t n : {1, 8, 64}) {
    const Tensor q = normal({n, kWidth}, rng.at("q"));
    double best = 1e9;
    for (int run = 0; run < 5; ++run) best = std::min(best, thread_seconds([&] { attend(ScaledDot{}, q, k, v); }));
    const double operations = 4.0 * static_cast<double>(n * m * kWidth),
                 bytes = 8.0 * static_cast<double>((n + m) * kWidth);
    traffic.push_back({std::to_string(n), rounded(operations / bytes, 1), rounded(best * 1e3, 3),
                       rounded(best * 1e6 / static_cast<double>(n), 1), rounded(operations / best / 1e9, 1)});
  }
  page.table({tr("queries, 16384 keys"), tr("operations per byte"), tr("ms"), tr("µs per query"),
              tr("billion operations per second")},
             traffic);
}

}  // namespace qkv::labs::scoring
