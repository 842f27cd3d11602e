// Lab 10.3: scoring functions. The definition, masked softmax, and the batched product.
#include "qkv/labs/scoring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "qkv/attention/attend.h"
#include "qkv/attention/masked_softmax.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/shape.h"

namespace qkv::labs {
namespace scoring {

void definition(Page& page) {
  page.heading({"A score for every pair", "给每一对打分"});
  page.say(
      {"Lab 10.2 asked three people for the body mass of a fourth (waists 51, 56, 58 cm; 40, 43, 48 kg; query 57 cm). What it did there by a "
       "kernel is here taken apart: a **scoring function** $a(q, k)$ says how well a query fits a key, softmax turns the scores into weights, "
       "and the answer is the weighted mean of the values. Whatever else this section does, it changes $a$ and nothing else.",
       "实验 10.2 用三个人来推断第四个人的体重（腰围 51、56、58 厘米，体重 40、43、48 公斤，查询为 57 厘米）。那里用核来做的事，这里拆开来看："
       "**注意力评分函数** $a(q, k)$ 说明查询与键有多匹配，softmax 把分数变为权重，答案是值的加权平均。本节所做的一切，都只是更换 $a$。"});
  page.formula(
      "\\alpha(q, k_i) = \\softmax_i(a(q, k_i)), \\quad f(q) = \\sum_i \\alpha(q, k_i) v_i, \\quad a(q, k) = -\\frac{1}{2} (q - k)^2");
  const Attended a =
      attend(Gaussian{}, Tensor({1, 1}, {57}), Tensor({3, 1}, {51, 56, 58}), Tensor({3, 1}, {40, 43, 48}));
  const Tensor w = a.weights.row(0, 0, 0);
  page.claim(
      std::abs(a.output.item() - 45.5) < 1e-4 && std::abs(w.ptr()[0] - 1.2555e-8) < 1e-12,
      {"With the Gaussian score the answer is 45.5 as there: the far person is asked too, with a weight that hardly counts.",
       "用高斯评分，答案与那里一样是 45.5：较远的人也问到了，只是权重微乎其微。"},
      fmt::format("f(57) = {:.5f}, weights {:.1e}, {:.3f}, {:.3f}", a.output.item(), w.ptr()[0], w.ptr()[1],
                  w.ptr()[2]));
}

void masking(Page& page) {
  page.heading({"Masked softmax", "掩蔽 softmax"});
  page.say(
      {"Sentences of a batch have different lengths and are filled up with padding, which must get no weight. **Masked softmax** takes the "
       "softmax over the first entries of each row only, as many as its **valid length** says, and gives the others exactly 0. The scores "
       "have shape (2, 2, 4): two batch elements, two queries, four keys. A length for each batch element counts for both its queries; "
       "here 2 and 3:",
       "一个批量中的句子长短不一，要用填充补齐，而填充不应得到权重。**掩蔽 softmax** 只对每行开头的若干项（其数目称为**有效长度**）做 "
       "softmax，其余恰好为 0。"
       "分数的形状是 (2, 2, 4)：两个批量元素、两个查询、四个键。每个批量元素一个长度时，它对其两个查询都有效；这里是 2 和 3："});
  const Tensor x = uniform({2, 2, 4}, Rng(page.seed()).at("masking"));
  const Tensor one = masked_softmax(x, Ids({2}, {2, 3})), two = masked_softmax(x, Ids({2, 2}, {1, 3, 2, 4}));
  page.print(shown(one));
  page.say({"A length for each query makes a (2, 2) matrix, here 1, 3 and 2, 4:",
            "每个查询一个长度，则组成 (2, 2) 矩阵，这里是 1、3 和 2、4："});
  page.print(shown(two));
  const Tensor both = reshape(stack({one, two}), {2, 4, 4});
  page.draw(
      "masked-softmax",
      heatmaps(both, "Keys", "batch × queries", {"lengths 2, 3", "lengths 1, 3, 2, 4"},
               {.colours = {.low = 0, .high = 1}, .cell_values = true}),
      {"The four rows of both results: nothing beyond the valid length.", "两个结果的四行：有效长度之外什么也没有。"});
  bool zeros_beyond = true;
  double worst = 0;
  const int lengths[2][4] = {{2, 2, 3, 3}, {1, 3, 2, 4}};
  for (int64_t p = 0; p < 2; ++p)
    for (int64_t r = 0; r < 4; ++r) {
      double total = 0;
      for (int64_t c = 0; c < 4; ++c) {
        const float w = both.at({p, r, c});
        total += w;
        zeros_beyond = zeros_beyond && (c < lengths[p][r] ? w > 0 : w == 0);
      }
      worst = std::max(worst, std::abs(total - 1));
    }
  page.claim(zeros_beyond && worst < 1e-6 && both.at({1, 0, 0}) == 1,
             {"Rows sum to one, entries beyond the length are exactly 0, and a length of 1 gives exactly 1.",
              "每行之和为一，超出长度的项恰为 0，长度为 1 时权重恰为 1。"},
             "largest |Σα − 1| " + tiny(worst));
}

void minus_a_million(Page& page) {
  page.heading({"Why not minus a million", "为什么不用负一百万"});
  page.say(
      {"The book masks by overwriting scores with $-10^6$ before an ordinary softmax. That works as long as a visible score is well above. "
       "There are two corner cases. A row of length 0 has nothing but $-10^6$ in it, and softmax makes that uniform: a query that may see "
       "nothing attends to the padding. And where visible scores are themselves near $-10^6$, the masked keys come back. Here a masked "
       "entry is left out of the sum, and a row that sees nothing gives zeros.",
       "书中的掩蔽是先把分数改写成 $-10^6$，再做普通的 softmax。只要可见的分数远高于它，这就行得通。但有两种边界情况。长度为 0 的行里全是 "
       "$-10^6$，softmax 使其均匀：什么都不该看的查询反而注意起填充来。另外，当可见的分数本身接近 $-10^6$ 时，被掩蔽的键又会回来。在这里，"
       "被掩蔽的项不参与求和，什么也看不到的行给出零。"});
  const Tensor x = uniform({1, 2, 4}, Rng(page.seed()).at("corner"));
  const Ids lengths({1, 2}, {0, 2});
  const Tensor ours = masked_softmax(x, lengths), book = book_masked_softmax(x, lengths);
  page.table({{"length", "长度"}, {"here", "这里"}, {"with $-10^6$", "用 $-10^6$"}},
             {{"0", shown(ours.part(0, {4}), 3), shown(book.part(0, {4}), 3)},
              {"2", shown(ours.part(4, {4}), 3), shown(book.part(4, {4}), 3)}});
  bool uniform_row = true, zero_row = true;
  for (int64_t c = 0; c < 4; ++c)
    uniform_row = uniform_row && std::abs(book.ptr()[c] - 0.25f) < 1e-6f, zero_row = zero_row && ours.ptr()[c] == 0;
  page.claim(zero_row && uniform_row,
             {"Length 0: zeros here, uniform weights on padding with $-10^6$.",
              "长度为 0：这里是零；用 $-10^6$ 则是对填充的均匀权重。"},
             "weights 0 here, 0.25 with −10⁶");

  std::vector<double> above, leak, none;
  for (double t = -12; t <= 12; t += 1) {
    const Tensor level = full({1, 1, 4}, static_cast<float>(-1e6 + t));
    const Tensor p = book_masked_softmax(level, Ids({1}, {2})), here = masked_softmax(level, Ids({1}, {2}));
    above.push_back(t), leak.push_back(p.ptr()[2] + p.ptr()[3]), none.push_back(here.ptr()[2] + here.ptr()[3]);
  }
  page.draw(
      "leaking-mask",
      curves({{"with −10⁶", above, leak}, {"here", above, none}}, {.label = "visible score + 10⁶"},
             {.label = "weight on masked keys", .low = -0.03, .high = 1.03}),
      {"Two visible and two masked keys. As the visible scores sink past a million below zero, the masked keys take over.",
       "两个可见键和两个被掩蔽的键。当可见分数降到负一百万以下，被掩蔽的键便取而代之。"});
  page.claim(
      leak.front() > 0.99 && *std::max_element(none.begin(), none.end()) == 0,
      {"Scores near $-10^6$ leak through the book's mask and never through this one.",
       "接近 $-10^6$ 的分数会漏过书中的掩蔽，但绝不会漏过这里的。"},
      fmt::format("weight on masked keys at a visible score of −10⁶ − 12: {:.6f} with −10⁶, 0 here", leak.front()));

  Tensor v = ones({1, 4, 1});
  v.mutable_ptr()[3] = std::numeric_limits<float>::quiet_NaN();
  const float seen =
      attend(Constant{}, zeros({1, 1, 1}), zeros({1, 4, 1}), v, Mask::valid_lens(Ids({1}, {2}))).output.item();
  const float product = matmul(book_masked_softmax(zeros({1, 1, 4}), Ids({1}, {2})), v).item();
  page.say(
      {"A weight of 0 does not even protect from a bad value: $0 \\cdot \\mathrm{NaN}$ is NaN. Padding that was never filled in would "
       "spoil the output of a plain product; `attend` does not touch it.",
       "权重为 0 甚至挡不住坏值：$0 \\cdot \\mathrm{NaN}$ 还是 NaN。从未写入过的填充会毁掉普通矩阵乘积的输出；`attend` 则不碰它。"});
  page.claim(seen == 1 && std::isnan(product),
             {"A NaN in the padding reaches the plain product and not the attention.",
              "填充中的 NaN 会进入普通乘积，但不会进入注意力。"},
             fmt::format("the product gives {}, the attention {}", product, seen));
}

void batched_product(Page& page) {
  page.heading({"The batched matrix product", "批量矩阵乘法"});
  page.say(
      {"Weights times values, for a whole batch at once, is a product of matrices element by element of the batch: $(n, a, b) \\times (n, "
       "b, c) \\to (n, a, c)$.",
       "对整个批量一次算出“权重乘以值”，就是逐个批量元素做矩阵乘法：$(n, a, b) \\times (n, b, c) \\to (n, a, c)$。"});
  const Tensor first = matmul(ones({2, 1, 4}), ones({2, 4, 6})), second = matmul(ones({2, 3, 4}), ones({2, 4, 6}));
  const Tensor weights = full({2, 1, 10}, 0.1f), values = arange(0, 20).viewed({2, 10, 1});
  const Tensor pooled = matmul(weights, values);
  page.print(text("(2, 1, 4) x (2, 4, 6) -> ", first.shape(), "\n(2, 3, 4) x (2, 4, 6) -> ", second.shape(),
                  "\n0.1 x (0 .. 9), 0.1 x (10 .. 19):\n", shown(pooled)));
  page.fact({"Ten weights of 0.1 average ten values.", "十个 0.1 的权重对十个值求平均。"},
            fmt::format("{:.4f} and {:.4f}", pooled.ptr()[0], pooled.ptr()[1]));
}

}  // namespace scoring

Lab scoring_lab() {
  return {
      "10.3",
      "scoring",
      {"Attention scoring functions", "注意力评分函数"},
      {scoring::definition, scoring::masking, scoring::minus_a_million, scoring::batched_product, scoring::equal_keys,
       scoring::random_keys, scoring::different_keys, scoring::bilinear, scoring::vector_sum, scoring::distance,
       scoring::square_root_of_d, scoring::measures, scoring::saturation, scoring::cost, scoring::errata},
      false,
      2};
}

}  // namespace qkv::labs
