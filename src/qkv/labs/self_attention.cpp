// Lab 10.6: self-attention and positional encoding. Tokens that ask each other, and why they need to know their places.
#include "qkv/labs/self_attention.h"

#include <fmt/format.h>

#include "qkv/attention/multi_head.h"
#include "qkv/attention/positions.h"
#include "qkv/data/shuffle.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/reduce.h"

namespace qkv::labs {
namespace self_attention {
namespace {

// Rows of (1, n, D) in another order.
Tensor reordered(const Tensor& x, const std::vector<int64_t>& order) {
  std::vector<int32_t> ids(order.begin(), order.end());
  return embedding(x.viewed({x.size(1), x.size(2)}), Ids({x.size(1)}, ids)).viewed(x.shape());
}

Tensor attend_to_self(const MultiHead& heads, const Tensor& x, const Mask& mask = Mask::none()) {
  return heads(x, x, x, mask, {});
}

}  // namespace

void definition(Page& page) {
  page.heading({"Tokens that ask each other", "词元互相询问"});
  page.say(
      {"In **self-attention** the queries, keys and values are the same tokens: every token asks all tokens, itself "
       "included, and gets an answer of its own.",
       "在**自注意力**中，查询、键和值是同一批词元：每个词元都询问所有词元（包括自己），并得到自己的回答。"});
  page.formula("y_i = f(x_i, (x_1, x_1), \\ldots, (x_n, x_n))");
  page.say({"The book's demo: width 100, 5 heads, dropout 0.5, a batch of 2 with 4 tokens, of which 3 and 2 count.",
            "书中的演示：宽度 100，5 个头，暂退率 0.5，批量大小 2，各 4 个词元，其中 3 个和 2 个有效。"});
  const MultiHead heads({.width = 100, .heads = 5, .dropout = 0.5f}, Rng(page.seed()).at("demo"));
  const Tensor x = ones({2, 4, 100}), y = attend_to_self(heads, x, Mask::valid_lens(Ids({2}, {3, 2})));
  page.print(fmt::format("{} -> {}", x.shape().str(), y.shape().str()));
  page.fact({"What comes out has the shape of what went in, so such layers can be stacked.",
             "输出与输入形状相同，所以这样的层可以堆叠。"});
}

void order_is_lost(Page& page) {
  page.heading({"A set, not a sequence", "是集合，不是序列"});
  page.say(
      {"A weighted sum does not care in which order its terms come. If the tokens change places, the outputs change "
       "places with them and nothing else happens: for a permutation $P$, $f(P x) = P f(x)$. Take \"dog bites man\" "
       "and \"man bites dog\", and average what self-attention makes of each:",
       "加权和不在乎各项的次序。词元交换位置，输出也跟着交换位置，此外什么都不变：对任一置换 $P$，$f(P x) = P f(x)$。"
       "取 \"dog bites man\" 与 \"man bites dog\"，把自注意力对两句的输出各取平均："});
  const Rng rng = Rng(page.seed()).at("order");
  const int64_t width = 32;
  const MultiHead heads({.width = width, .heads = 4}, rng.at("heads"));
  const Tensor words = normal({3, width}, rng.at("words"));
  const Tensor one = embedding(words, Ids({1, 3}, {0, 1, 2})), other = embedding(words, Ids({1, 3}, {2, 1, 0}));
  const Tensor places = sinusoidal_positions(3, width);
  const auto meaning = [&](const Tensor& x) { return mean(attend_to_self(heads, x), 1); };
  const double plain = largest_difference(meaning(one), meaning(other));
  const double placed = largest_difference(meaning(one + places), meaning(other + places));
  named_table(page, {{"", " "}, {"largest difference", "最大差别"}},
              {{{"words alone", "只有词"}, {tiny(plain)}}, {{"words and positions", "词与位置"}, {tiny(placed)}}});
  page.claim(plain < 1e-6 && placed > 1e-2,
             {"Without positions the two sentences are the same; with a vector for each position added they are not.",
              "没有位置，两句话就是一样的；加上每个位置的向量，就不一样了。"},
             fmt::format("the two differ by {} without positions, by {:.2f} with them", tiny(plain), placed));

  page.say({"The same for ten tokens in random order:", "十个词元随机换序，也是如此："});
  const int64_t n = 10;
  const Tensor x = normal({1, n, width}, rng.at("x")), p = sinusoidal_positions(n, width);
  const std::vector<int64_t> order = shuffled(n, rng.at("shuffle"));
  const auto broken = [&](const auto& f) { return largest_difference(f(reordered(x, order)), reordered(f(x), order)); };
  const double none = broken([&](const Tensor& t) { return attend_to_self(heads, t); });
  const double with = broken([&](const Tensor& t) { return attend_to_self(heads, t + p); });
  const double causal = broken([&](const Tensor& t) { return attend_to_self(heads, t, Mask::causal()); });
  named_table(page, {{"", " "}, {"$f(P x)$ and $P f(x)$ differ by", "$f(P x)$ 与 $P f(x)$ 相差"}},
              {{{"self-attention", "自注意力"}, {tiny(none)}},
               {{"with positions added", "加上位置"}, {tiny(with)}},
               {{"without positions, causal mask", "无位置，因果掩蔽"}, {tiny(causal)}}});
  page.claim(
      none < 1e-6 && with > 1e-2 && causal > 1e-2,
      {"Self-attention alone commutes with every change of order (to rounding: sums are taken in another order too). "
       "Positions break this, and so does a causal mask.",
       "自注意力本身与任何换序可交换（仅差舍入：求和次序也变了）。位置会打破这一点，因果掩蔽也会。"},
      fmt::format("differ by {} alone, {:.2f} with positions, {:.2f} with a causal mask", tiny(none), with, causal));
}

}  // namespace self_attention

Lab self_attention_lab() {
  using namespace self_attention;
  return {"10.6",
          "self-attention",
          {"Self-attention and positional encoding", "自注意力和位置编码"},
          {definition, operations, times, five_tokens, layers_needed, gradients_by_distance, order_is_lost, encoding,
           binary, relative_positions, looking_back, deep_stacks, deep_gradients, learned_positions, where_they_look,
           relative_biases},
          false,
          4};
}

}  // namespace qkv::labs
