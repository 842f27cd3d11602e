// Lab 10.3: what the two scores cost, in operations, in memory traffic and in time.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/scoring.h"
#include "qkv/labs/show.h"
#include "qkv/labs/stopwatch.h"

namespace qkv::labs::scoring {
namespace {

constexpr int64_t kWidth = 64;

struct Times {
  double additive, dot;  // the best of several runs, in turn, so that a busy moment hits both
};

Times race(int64_t n, int runs, const Rng& rng) {
  const Tensor q = normal({n, kWidth}, rng.at("q")), k = normal({n, kWidth}, rng.at("k")),
               v = normal({n, kWidth}, rng.at("v"));
  const Additive additive = Additive::random(kWidth, kWidth, kWidth, rng.at("additive"));
  Times best{1e9, 1e9};
  for (int run = 0; run < runs; ++run) {
    best.additive = std::min(best.additive, seconds([&] { attend(additive, q, k, v); }));
    best.dot = std::min(best.dot, seconds([&] { attend(ScaledDot{}, q, k, v); }));
  }
  return best;
}

}  // namespace

void cost(Page& page) {
  page.heading({"What a score costs (exercise 11.3.3, English edition)", "评分的代价（英文版练习 11.3.3）"});
  page.say(
      {"For $n$ queries, $m$ keys, width $d$ and values of width $v$, the dot product takes $2nmd$ operations for the scores and $2nmv$ "
       "for the output: it is two matrix products, what processors do best. Additive attention with $h$ hidden units projects once, $2(n + "
       "m) d h$, and then needs $nmh$ tanh besides about $3nmh$ operations. Done plainly it also stores $n \\times m \\times h$ numbers; "
       "here a fused kernel keeps them in registers. The table is for one head with $d = h = v = 64$ and $m = n$.",
       "设有 $n$ 个查询、$m$ 个键，宽度 $d$，值的宽度 $v$。点积的分数需要 $2nmd$ 次运算，输出需要 $2nmv$ 次：两次矩阵乘法，正是处理器最擅长"
       "的。有 $h$ 个隐藏单元的加性注意力先投影一次，$2(n + m) d h$，然后除约 $3nmh$ 次运算外还要 $nmh$ 次 tanh。直接实现还要存放 $n "
       "\\times m \\times h$ 个数；这里的融合内核把它们留在寄存器中。表中为单头，$d = h = v = 64$，$m = n$。"});
  const Rng rng = Rng(page.seed()).at("cost");
  std::vector<std::vector<std::string>> rows;
  std::vector<double> sizes, additive, dot;
  double slower = 0;
  for (int64_t n : {32, 64, 128, 256, 512}) {
    const Times t = race(n, n <= 256 ? 9 : 3, rng.at(static_cast<uint64_t>(n)));
    sizes.push_back(static_cast<double>(n)), additive.push_back(t.additive * 1e3), dot.push_back(t.dot * 1e3);
    if (n == 256) slower = t.additive / t.dot;
    const double pairs = static_cast<double>(n * n * kWidth);
    rows.push_back({std::to_string(n), rounded(4 * pairs / 1e6, 1), rounded(pairs / 1e6, 1),
                    rounded(4 * pairs / 1048576, 1), rounded(t.dot * 1e3, 3), rounded(t.additive * 1e3, 3),
                    rounded(t.additive / t.dot, 1)});
  }
  page.table({{"$n$", "$n$"},
              {"dot: million operations", "点积：百万次运算"},
              {"additive: million tanh", "加性：百万次 tanh"},
              {"plain additive: MiB", "直接实现的加性：MiB"},
              {"dot, ms", "点积，毫秒"},
              {"additive, ms", "加性，毫秒"},
              {"ratio", "比值"}},
             rows);
  page.draw(
      "cost",
      curves({{"additive", sizes, additive, line_style("ro-")}, {"scaled dot product", sizes, dot, line_style("bo-")}},
             {.label = "n queries and n keys", .scale = AxisScale::log},
             {.label = "milliseconds", .scale = AxisScale::log}),
      {"Time of a forward pass, the best of several. Both grow with the square of n; the additive score pays for its tanh.",
       "一次前向计算的时间，取多次中最好的。两者都随 n 的平方增长；加性评分要为 tanh 付出代价。"});
  page.fact({"With queries and keys of equal lengths the scaled dot product is the cheaper score.",
             "查询与键长度相同时，缩放点积是更省的评分。"},
            fmt::format("on this machine, n = 256: additive takes {:.1f} times as long", slower));

  page.say(
      {"Time is not only operations. Keys and values must be read from memory once for each pass over them, and a single query does only "
       "$2(d + v)$ operations on the $4(d + v)$ bytes of a pair: half an operation per byte, so the memory sets the pace. Many queries at "
       "once share what was read. That is why a decoder, which has one query at a time, is slow for its operations, and why keys shared by "
       "several heads help it.",
       "时间不只取决于运算次数。键和值每遍都要从内存读一次，而单个查询对一对键值的 $4(d + v)$ 个字节只做 $2(d + v)$ "
       "次运算：每字节半次，所以速度由内存决定。许多查询一起算，就能共用读入的数据。"
       "所以每次只有一个查询的解码器，相对其运算量来说很慢；让几个头共用键对它有帮助。"});
  constexpr int64_t m = 16384;
  const Tensor k = normal({m, kWidth}, rng.at("k")), v = normal({m, kWidth}, rng.at("v"));
  std::vector<std::vector<std::string>> traffic;
  for (int64_t n : {1, 8, 64}) {
    const Tensor q = normal({n, kWidth}, rng.at("q"));
    double best = 1e9;
    for (int run = 0; run < 5; ++run) best = std::min(best, seconds([&] { attend(ScaledDot{}, q, k, v); }));
    const double operations = 4.0 * static_cast<double>(n * m * kWidth),
                 bytes = 8.0 * static_cast<double>((n + m) * kWidth);
    traffic.push_back({std::to_string(n), rounded(operations / bytes, 1), rounded(best * 1e3, 3),
                       rounded(best * 1e6 / static_cast<double>(n), 1), rounded(operations / best / 1e9, 1)});
  }
  page.table({{"queries, 16384 keys", "查询数（16384 个键）"},
              {"operations per byte", "每字节运算数"},
              {"ms", "毫秒"},
              {"µs per query", "每查询微秒"},
              {"billion operations per second", "每秒十亿次运算"}},
             traffic);
}

}  // namespace qkv::labs::scoring
