// Lab 10.6: what convolution, recurrence and self-attention cost: products counted, time measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/labs/both.h"
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

// The best of several runs, in turn, so that a busy moment hits all three; on one thread, whose own time is what
// counts.
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
    count += 1, sx += u, sy += v, sxx += u * u, sxy += u * v;
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
    r.cnn.push_back(t.cnn * 1e3), r.rnn.push_back(t.rnn * 1e3), r.attention.push_back(t.attention * 1e3);
  }
  return r;
}

Figure drawn(const Race& r, const std::string& label) {
  return curves(
      {{fmt::format("CNN, exponent {:.2f}", r.slope(r.cnn)), r.sizes, r.cnn, line_style("go-")},
       {fmt::format("RNN, exponent {:.2f}", r.slope(r.rnn)), r.sizes, r.rnn, line_style("ro-")},
       {fmt::format("self-attention, exponent {:.2f}", r.slope(r.attention)), r.sizes, r.attention, line_style("bo-")}},
      {.label = label, .scale = AxisScale::log}, {.label = "milliseconds", .scale = AxisScale::log});
}

std::vector<std::vector<std::string>> milliseconds(const Race& r) {
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < r.sizes.size(); ++i)
    rows.push_back({rounded(r.sizes[i], 0), rounded(r.cnn[i], 3), rounded(r.rnn[i], 3), rounded(r.attention[i], 3)});
  return rows;
}

}  // namespace

void operations(Page& page) {
  page.heading({"Three ways to let tokens meet", "让词元相遇的三种方式"});
  page.say(
      {"A layer that maps $n$ tokens of width $d$ to $n$ tokens of width $d$ can be a convolution with kernel $k$, a "
       "recurrence, or self-attention. The book compares them by what they compute, how many steps must wait for "
       "each other, and how long the longest path is that a signal takes from one token to another:",
       "把 $n$ 个宽 $d$ 的词元变为 $n$ 个宽 $d$ 的词元，可以用核为 $k$ 的卷积、循环，或自注意力。书中从三方面比较：计"
       "算量、必须依次等待的步数，以及信号从一个词元到另一个词元的最长路径："});
  page.word_table(
      {{"layer", "层"}, {"computation", "计算量"}, {"sequential steps", "顺序步数"}, {"longest path", "最长路径"}},
      {{{"CNN", "卷积"}, {"$O(k n d^2)$", "$O(k n d^2)$"}, {"$O(1)$", "$O(1)$"}, {"$O(n / k)$", "$O(n / k)$"}},
       {{"RNN", "循环"}, {"$O(n d^2)$", "$O(n d^2)$"}, {"$O(n)$", "$O(n)$"}, {"$O(n)$", "$O(n)$"}},
       {{"self-attention", "自注意力"}, {"$O(n^2 d)$", "$O(n^2 d)$"}, {"$O(1)$", "$O(1)$"}, {"$O(1)$", "$O(1)$"}}});
  page.say(
      {"None of this need be believed. First the products. If all numbers are ones, every product is 1 and the sum of the results is the "
       "number of products. The RNN is a GRU, which has six $d \\times d$ matrices; self-attention's own products are the scores and the "
       "weighted sums, beside which multi-head attention has four projections.",
       "这些不必轻信。先数乘积。所有数都是一时，每个乘积都是 1，结果之和就是乘积的个数。RNN 用 GRU，"
       "有六个 $d \\times d$ 矩阵；自注意力自身的乘积是分数和加权和，此外多头注意力还有四个投影。"});
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
  page.table({{"$n$", "$n$"},
              {"$d$", "$d$"},
              {"CNN, $k = 3$", "卷积，$k = 3$"},
              {"GRU", "GRU（循环）"},
              {"self-attention", "自注意力"},
              {"its projections", "其投影"}},
             rows);
  page.claim(exact,
             {"The counts are exactly $k n d^2$, $6 n d^2$, $2 n^2 d$ and $4 n d^2$.",
              "计数恰好是 $k n d^2$、$6 n d^2$、$2 n^2 d$ 和 $4 n d^2$。"},
             fmt::format("self-attention, n = 512, d = 64: {} = 2 × 512² × 64", grouped(narrow.attention)));
  page.claim(narrow.attention > narrow.cnn && wide.attention < wide.cnn,
             {"Self-attention is the most expensive for long narrow sequences and the cheapest for short wide ones: it "
              "needs more products than the CNN where $2 n > k d$.",
              "序列长而窄时自注意力最贵，短而宽时最省：$2 n > k d$ 时它超过卷积。"},
             fmt::format("products of the CNN's: n = 512, d = 64: {:.1f} times as many; n = 64, d = 256: {:.2f} times",
                         static_cast<double>(narrow.attention) / static_cast<double>(narrow.cnn),
                         static_cast<double>(wide.attention) / static_cast<double>(wide.cnn)));
}

void times(Page& page) {
  page.heading({"The same in milliseconds", "用毫秒来量"});
  page.say(
      {"Now the clock: the processor time of a forward pass of each layer on one thread, the best of several runs. On axes with logarithms "
       "a power is a straight line, and its slope is the exponent (fitted to the longer half, where fixed costs no longer show).",
       "现在看时钟：每种层在一个线程上做一次前向计算所用的处理器时间，取多次中最好的。在对数坐标上，幂函数是直线，斜"
       "率就是指数（用较大的一半拟合，那里固定开销已不明显）。"});
  const Rng rng = Rng(page.seed()).at("times");
  const Race length = race_over({64, 128, 256, 512, 1024, 2048}, 256, [&](int64_t n) {
    return race(n, 64, n <= 512 ? 9 : 5, rng.at(static_cast<uint64_t>(n)));
  });
  page.draw("time-by-length", drawn(length, "length n, width 64"),
            {"Time against length. Self-attention grows with the square, the others in proportion.",
             "时间随长度的变化。自注意力按平方增长，其他的按比例增长。"});
  page.table({{"$n$, $d = 64$", "$n$，$d = 64$"},
              {"CNN, ms", "卷积，毫秒"},
              {"RNN, ms", "循环，毫秒"},
              {"self-attention, ms", "自注意力，毫秒"}},
             milliseconds(length));
  const Race width = race_over(
      {32, 64, 128, 256}, 64, [&](int64_t d) { return race(256, d, 5, rng.at("width").at(static_cast<uint64_t>(d))); });
  page.draw("time-by-width", drawn(width, "width d, length 256"),
            {"Time against width. Here self-attention grows more slowly than the others.",
             "时间随宽度的变化。这里自注意力增长得比其他的慢。"});
  const double own = length.slope(length.attention), cnn = length.slope(length.cnn), rnn = length.slope(length.rnn);
  named_table(
      page,
      {{"", " "},
       {"in $n$: counted", "对 $n$：计数"},
       {"measured", "实测"},
       {"in $d$: counted", "对 $d$：计数"},
       {"measured", "实测"}},
      {{{"CNN", "卷积"}, {"1", rounded(cnn, 2), "2", rounded(width.slope(width.cnn), 2)}},
       {{"RNN", "循环"}, {"1", rounded(rnn, 2), "2", rounded(width.slope(width.rnn), 2)}},
       {{"self-attention", "自注意力"}, {"2", rounded(own, 2), "1", rounded(width.slope(width.attention), 2)}}});
  page.fact(
      {"In the length self-attention has the larger exponent: this is why long sequences are slow. In the width it is the other "
       "way round.",
       "对长度而言，自注意力的指数更大：这就是长序列慢的原因。对宽度而言则相反。"},
      fmt::format(
          "measured on this machine: self-attention {:.2f} in n and {:.2f} in d, CNN {:.2f} and {:.2f}, RNN {:.2f} and {:.2f}",
          own, width.slope(width.attention), cnn, width.slope(width.cnn), rnn, width.slope(width.rnn)));
  page.say(
      {"Products are not the whole of the time. On short sequences the CNN can take longer than the GRU, although it has half the products: "
       "this program's convolution adds one row of $n$ numbers for every pair of channels and every tap, $k d^2$ = 12,288 rows at width 64, "
       "and with 64 numbers each a good part of the time goes into starting them. The GRU's input products are one large matrix product. "
       "With growing $n$ the rows get longer and the start counts for less.",
       "时间不只取决于乘积的个数。序列短时，卷积的乘积虽只有 GRU 的一半，却可能更慢：本程序的卷积对每一对通道、核的每个位置都累加一行 "
       "$n$ 个数，宽度 64 时共 $k d^2$ = 12,288 行，每行只有 64 个数时，相当一部分时间花在每行的启动上；而 GRU 对输入的乘积是一次大的矩阵"
       "乘法。$n$ 增大，每行变长，启动的份量就小了。"});
  const double n = length.sizes.back(), pairs = n * 64 * 64 / 1e6;
  page.say(both(
      "At {:.0f} tokens one thread did {:.1f} products of the CNN, {:.1f} of self-attention and {:.1f} of the GRU per "
      "nanosecond. What one thread does not show are the sequential steps of the table: a CNN and self-attention can give their "
      "tokens to as many processors as there are, while in a recurrence step $t$ must wait for step $t - 1$, whoever computes "
      "it.",
      "{:.0f} 个词元时，一个线程每纳秒做卷积的 {:.1f} 个乘积、自注意力的 {:.1f} 个、GRU 的 {:.1f} 个。一个线程显示不出的是表中的"
      "顺序步数：卷积和自注意力可以把词元分给任意多的处理器，而循环的第 $t$ 步必须等第 $t - 1$ 步，无论由谁计算。",
      n, 3 * pairs / length.cnn.back(), 2 * n * n * 64 / 1e6 / length.attention.back(), 6 * pairs / length.rnn.back()));
}

}  // namespace qkv::labs::self_attention
