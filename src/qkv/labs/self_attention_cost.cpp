// Lab 10.6: what convolution, recurrence and self-attention cost: products counted, time measured.
#include <algorithm>
#include <cmath>
#include <functional>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/labs/self_attention.h"
#include "qkv/labs/show.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/nn/recurrent.h"
#include "qkv/ops/conv.h"
#include "qkv/ops/matmul.h"

namespace qkv::labs::self_attention {
namespace {

constexpr int64_t kKernel = 3;

// Where every factor is 1 every product is 1, so the sum of the results is their number.
int64_t products(const Tensor& result) {
  double sum = 0;
  for (float x : result.data()) sum += x;
  return static_cast<int64_t>(sum);
}

struct Counts {
  int64_t cnn, rnn, attention, projections;
};

Counts count(int64_t n, int64_t d) {
  const Tensor x = ones({n, d}), square = ones({d, d}), gates = ones({3 * d, d});
  return {.cnn = products(conv1d(ones({1, d, n + kKernel - 1}), ones({d, d, kKernel}))),
          .rnn = products(linear(x, gates)) + products(linear(x, gates)),
          .attention = products(matmul(x, x, Transpose::no, Transpose::yes)) + products(matmul(ones({n, n}), x)),
          .projections = 4 * products(linear(x, square))};
}

struct Times {
  double cnn = 1e9, rnn = 1e9, attention = 1e9;
};

// The best of several runs, taken in turn so that a busy moment affects all three; processor time on one thread.
Times race(int64_t n, int64_t d, int runs, const Rng& rng) {
  const SerialScope serial;
  const Tensor x = normal({1, n, d}, rng.at("x")), channels = normal({1, d, n}, rng.at("x"));
  const Tensor weight = normal({d, d, kKernel}, rng.at("weight"), 0, 0.1f);
  const Recurrent gru(d, d, {}, rng.at("gru"));
  Times best;
  for (int run = 0; run < runs; ++run) {
    best.cnn = std::min(best.cnn, thread_seconds([&] { conv1d(channels, weight, {}, {.padding = kKernel / 2}); }));
    best.rnn = std::min(best.rnn, thread_seconds([&] { gru(x, {}); }));
    best.attention = std::min(best.attention, thread_seconds([&] { attend(ScaledDot{}, x, x, x); }));
  }
  return best;
}

// The slope of log y over log x, for x from `from` on.
double exponent(const std::vector<double>& x, const std::vector<double>& y, double from) {
  double count = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i] < from) continue;
    const double u = std::log(x[i]), v = std::log(y[i]);
    count += 1;
    sx += u;
    sy += v;
    sxx += u * u;
    sxy += u * v;
  }
  return (count * sxy - sx * sy) / (count * sxx - sx * sx);
}

struct Race {
  double from;                                                         // where the fit begins
  std::vector<double> sizes = {}, cnn = {}, rnn = {}, attention = {};  // milliseconds
  double slope(const std::vector<double>& times) const { return exponent(sizes, times, from); }
};

Race race_over(const std::vector<int64_t>& sizes, double from, const std::function<Times(int64_t)>& at) {
  Race r{.from = from};
  for (int64_t size : sizes) {
    const Times t = at(size);
    r.sizes.push_back(static_cast<double>(size));
    r.cnn.push_back(t.cnn * 1e3);
    r.rnn.push_back(t.rnn * 1e3);
    r.attention.push_back(t.attention * 1e3);
  }
  return r;
}

Figure drawn(const Race& r, const Label& label) {
  return curves({{tr("CNN, exponent {exponent:.2f}", "exponent"_a = r.slope(r.cnn)), r.sizes, r.cnn, line_style("go-")},
                 {tr("RNN, exponent {exponent:.2f}", "exponent"_a = r.slope(r.rnn)), r.sizes, r.rnn, line_style("ro-")},
                 {tr("self-attention, exponent {exponent:.2f}", "exponent"_a = r.slope(r.attention)), r.sizes,
                  r.attention, line_style("bo-")}},
                {.label = label, .scale = AxisScale::log}, {.label = tr("milliseconds"), .scale = AxisScale::log});
}

std::vector<std::vector<std::string>> milliseconds(const Race& r) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < r.sizes.size(); ++i)
    rows.push_back({rounded(r.sizes[i], 0), rounded(r.cnn[i], 3), rounded(r.rnn[i], 3), rounded(r.attention[i], 3)});
  return rows;
}

}  // namespace

void operations(Page& page) {
  page.heading(tr("Three ways to connect tokens"));
  page.say(tr(
      "A layer that maps $n$ tokens of width $d$ to $n$ tokens of width $d$ can be a convolution with kernel $k$, a "
      "recurrence, or self-attention. The book compares the amount of computation, the number of steps that must run "
      "one after another, and the longest path that a signal takes from one token to another:"));
  page.word_table({tr("layer"), tr("computation"), tr("sequential steps"), tr("longest path")},
                  {{tr("CNN"), verbatim("$O(k n d^2)$"), verbatim("$O(1)$"), verbatim("$O(n / k)$")},
                   {tr("RNN"), verbatim("$O(n d^2)$"), verbatim("$O(n)$"), verbatim("$O(n)$")},
                   {tr("self-attention"), verbatim("$O(n^2 d)$"), verbatim("$O(1)$"), verbatim("$O(1)$")}});
  page.say(tr(
      "All of this can be checked. First the products. If all numbers are ones, every product is 1 and the sum of the "
      "results is the number of products. The RNN is a GRU, which has six $d \\times d$ matrices; self-attention's own "
      "products are the scores and the weighted sums; multi-head attention adds four projections."));
  std::vector<std::vector<std::string>> rows;
  bool exact = true;
  Counts narrow{}, wide{};
  for (const auto& [n, d] : {std::pair<int64_t, int64_t>{64, 64}, {512, 64}, {64, 256}, {512, 256}}) {
    const Counts c = count(n, d);
    exact = exact && c.cnn == kKernel * n * d * d && c.rnn == 6 * n * d * d && c.attention == 2 * n * n * d &&
            c.projections == 4 * n * d * d;
    if (n == 512 && d == 64) narrow = c;
    if (n == 64 && d == 256) wide = c;
    rows.push_back({std::to_string(n), std::to_string(d), grouped(c.cnn), grouped(c.rnn), grouped(c.attention),
                    grouped(c.projections)});
  }
  page.table(
      {verbatim("$n$"), verbatim("$d$"), tr("CNN, $k = 3$"), tr("GRU"), tr("self-attention"), tr("its projections")},
      rows);
  page.claim(exact, tr("The counts are exactly $k n d^2$, $6 n d^2$, $2 n^2 d$ and $4 n d^2$."),
             tr("self-attention, n = 512, d = 64: {count} = 2 × 512² × 64", "count"_a = grouped(narrow.attention)));
  page.claim(
      narrow.attention > narrow.cnn && wide.attention < wide.cnn,
      tr("Self-attention is the most expensive for long narrow sequences and the cheapest for short wide ones: it "
         "needs more products than the CNN where $2 n > k d$."),
      tr("{narrow:.1f} times the products of the CNN at n = 512, d = 64; {wide:.2f} times at n = 64, d = 256",
         "narrow"_a = static_cast<double>(narrow.attention) / static_cast<double>(narrow.cnn),
         "wide"_a = static_cast<double>(wide.attention) / static_cast<double>(wide.cnn)));
}

void times(Page& page) {
  page.heading(tr("The same in milliseconds"));
  page.say(tr(
      "Now the clock: the processor time of a forward pass of each layer on one thread, the best of several runs. On "
      "logarithmic axes a power is a straight line, and its slope is the exponent (fitted to the longer half, where "
      "fixed costs no longer show)."));
  const Rng rng = Rng(page.seed()).at("times");
  const Race length = race_over({64, 128, 256, 512, 1024, 2048}, 256, [&](int64_t n) {
    return race(n, 64, n <= 512 ? 9 : 5, rng.at(static_cast<uint64_t>(n)));
  });
  page.draw("time-by-length", drawn(length, tr("length n, width 64")),
            tr("Time against length. Self-attention grows with the square of the length, the others in proportion."));
  page.table({tr("$n$, $d = 64$"), tr("CNN, ms"), tr("RNN, ms"), tr("self-attention, ms")}, milliseconds(length));
  const Race width = race_over(
      {32, 64, 128, 256}, 64, [&](int64_t d) { return race(256, d, 5, rng.at("width").at(static_cast<uint64_t>(d))); });
  page.draw("time-by-width", drawn(width, tr("width d, length 256")),
            tr("Time against width. Here self-attention grows more slowly than the others."));
  const double own = length.slope(length.attention), cnn = length.slope(length.cnn), rnn = length.slope(length.rnn);
  named_table(page, {verbatim(""), tr("in $n$: counted"), tr("measured"), tr("in $d$: counted"), tr("measured")},
              {{tr("CNN"), {"1", rounded(cnn, 2), "2", rounded(width.slope(width.cnn), 2)}},
               {tr("RNN"), {"1", rounded(rnn, 2), "2", rounded(width.slope(width.rnn), 2)}},
               {tr("self-attention"), {"2", rounded(own, 2), "1", rounded(width.slope(width.attention), 2)}}});
  page.fact(
      tr("Self-attention has the larger exponent in the length: this is why long sequences are slow. In the width it "
         "is the other way round."),
      tr("measured on this machine: self-attention {attention_n:.2f} in n and {attention_d:.2f} in d, CNN {cnn_n:.2f} "
         "and {cnn_d:.2f}, RNN {rnn_n:.2f} and {rnn_d:.2f}",
         "attention_n"_a = own, "attention_d"_a = width.slope(width.attention), "cnn_n"_a = cnn,
         "cnn_d"_a = width.slope(width.cnn), "rnn_n"_a = rnn, "rnn_d"_a = width.slope(width.rnn)));
  page.say(tr(
      "Products do not account for all of the time. On short sequences the CNN can take longer than the GRU, although "
      "it has half the products: this program's convolution adds one row of $n$ numbers for every pair of channels and "
      "every tap, $k d^2$ = 12,288 rows at width 64, and with only 64 numbers per row much of the time goes into "
      "starting them. The GRU's input products are one large matrix product. As $n$ grows the rows get longer and the "
      "start-up counts for less."));
  const double n = length.sizes.back(), pairs = n * 64 * 64 / 1e6;
  page.say(tr(
      "At {n:.0f} tokens one thread did {cnn:.1f} products of the CNN, {attention:.1f} of self-attention and {rnn:.1f} "
      "of the GRU per nanosecond. One thread does not show the sequential steps of the table: a CNN and self-attention "
      "can spread their tokens over all available processors, while in a recurrence step $t$ must always wait for step "
      "$t - 1$.",
      "n"_a = n, "cnn"_a = 3 * pairs / length.cnn.back(),
      "attention"_a = 2 * n * n * 64 / 1e6 / length.attention.back(), "rnn"_a = 6 * pairs / length.rnn.back()));
}

}  // namespace qkv::labs::self_attention
