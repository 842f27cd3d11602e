// Lab 10.5: multi-head attention. The definition, the shapes, heads as one product, and what it all weighs.
#include "qkv/labs/multi_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/nn/module.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/probe.h"

namespace qkv::labs {
namespace multi_head {
namespace {

struct Watch : Probe {
  Weights weights;
  void attention(std::string_view, const Weights& seen) override { weights = seen; }
};

// The weights (B, H, n, m) of an attention without dropout.
Tensor weights_of(const MultiHead& heads, const Tensor& queries, const Tensor& keys, const Mask& mask) {
  Watch watch;
  heads(queries, keys, keys, mask, {.probe = &watch});
  return watch.weights.matrix();
}

// Rows begin to end of a weight matrix, for the columns of a projection that one head owns.
Linear rows_of(const Linear& all, int64_t begin, int64_t end) {
  Linear part;
  part.weight = slice(all.weight, 0, begin, end);
  return part;
}

// The definition word for word: head after head, then W_o.
Tensor head_by_head(const MultiHead& all, const Tensor& queries, const Tensor& keys, const Mask& mask) {
  const int64_t width = all.to_q.weight.size(0) / all.heads, shared = all.heads / all.key_heads;
  std::vector<Tensor> found;
  for (int64_t h = 0; h < all.heads; ++h) {
    const int64_t at = h * width, key_at = h / shared * width;
    const Tensor q = rows_of(all.to_q, at, at + width)(queries), k = rows_of(all.to_k, key_at, key_at + width)(keys),
                 v = rows_of(all.to_v, key_at, key_at + width)(keys);
    found.push_back(attend(ScaledDot{}, q, k, v, mask).output);
  }
  return all.to_out(concat(std::span<const Tensor>(found), 2));
}

struct Race {
  double together = 1e9, apart = 1e9;  // seconds, the best of several runs
  std::vector<std::string> cells() const { return {rounded(together * 1e3, 3), rounded(apart * 1e3, 3)}; }
};

Race race(const MultiHead& heads, const Tensor& x) {
  Race r;
  for (int run = 0; run < 7; ++run) {
    r.together = std::min(r.together, seconds([&] { heads(x, x, x, Mask::none(), {}); }));
    r.apart = std::min(r.apart, seconds([&] { head_by_head(heads, x, x, Mask::none()); }));
  }
  return r;
}

struct Rows {
  double worst_sum = 0;  // max |sum of a row - 1|
  bool zeros_beyond = true;
};

Rows rows_beyond(const Tensor& w, std::span<const int32_t> lens) {
  Rows r;
  const int64_t keys = w.size(3), per_batch = w.size(1) * w.size(2);
  for (int64_t row = 0; row < w.numel() / keys; ++row) {
    double total = 0;
    for (int64_t k = 0; k < keys; ++k) {
      const float weight = w.ptr()[row * keys + k];
      total += weight;
      const bool seen = k < lens[static_cast<size_t>(row / per_batch)];
      r.zeros_beyond = r.zeros_beyond && (seen ? weight > 0 : weight == 0);
    }
    r.worst_sum = std::max(r.worst_sum, std::abs(total - 1));
  }
  return r;
}

}  // namespace

void definition(Page& page) {
  page.heading({"Several attentions side by side", "并排的多个注意力"});
  page.say(
      {"One attention makes one set of weights for a query: it looks in one way. A word of a sentence may want several things at once: the "
       "word before it, the verb it belongs to, the first word. **Multi-head attention** runs $H$ attentions on the same queries, keys and "
       "values, each after linear maps of its own, so that each may look for something else in another place:",
       "一个注意力为一个查询只给出一组权重：只用一种方式去看。而句子中的一个词可能同时想知道几件事：它前面的词、它所属的动词、句首的词。**"
       "多头注意力**对相同的查询、键和值并排运行 $H$ 个注意力，每个之前都有自己的线性变换，因而各自可以在不同的地方寻找不同的东西："});
  page.formula("h_i = f(W_i^q q, W_i^k k, W_i^v v), \\quad i = 1, \\ldots, H");
  page.say({"The results are put one after the other, and a last linear map mixes them:",
            "把各头的结果首尾相接，再用最后一个线性变换把它们混合："});
  page.formula("y = W_o [h_1; h_2; \\ldots; h_H], \\quad W_o \\in R^{p_o \\times H p_v}");
  page.say(
      {"With $p_q = p_k = p_v = p_o / H$ the $H$ matrices of one kind, put on top of each other, are a single $p_o \\times p_o$ matrix. So "
       "all heads of a projection are **one** matrix product, and the whole costs about as much as one head of the full width. Biases are "
       "left out by default. $f$ is any attention; here scaled dot product, divided by the square root of a head's width $p_o / H$.",
       "取 $p_q = p_k = p_v = p_o / H$，则同一类的 $H$ 个矩阵叠起来正好是一个 $p_o \\times p_o$ 矩阵。于是一种投影的全部头只是**一次**矩阵"
       "乘法，总代价与一个全宽的头差不多。默认没有偏置。$f$ 可以是任何注意力；这里是缩放点积，除以一个头的宽度 $p_o / H$ 的平方根。"});
}

void shapes(Page& page) {
  page.heading({"The book's demo: shapes", "书中的演示：形状"});
  page.say(
      {"Width 100, 5 heads, dropout 0.5; a batch of 2 with 4 queries and 6 keys each, of which the first 3 and the "
       "first 2 count. Everything is filled with ones.",
       "宽度 100，5 个头，暂退率 0.5；批量大小 2，各有 4 个查询和 6 个键，其中前 3 个和前 2 个有效。所有元素都是一。"});
  const Rng rng = Rng(page.seed()).at("shapes");
  const MultiHead heads({.width = 100, .heads = 5, .dropout = 0.5f}, rng.at("heads"));
  const Ids lens({2}, {3, 2});
  const Mask mask = Mask::valid_lens(lens);
  const Tensor x = ones({2, 4, 100}), y = ones({2, 6, 100});
  const Tensor out = heads(x, y, y, mask, {}), even = weights_of(heads, x, y, mask);
  page.print(fmt::format(
      "queries          {}\nkeys and values  {}\nvalid lengths    [3, 2]\nweights          {}\noutput           {}",
      x.shape().str(), y.shape().str(), even.shape().str(), out.shape().str()));
  page.fact({"The output has one vector of the full width for each query.", "每个查询得到一个全宽的输出向量。"},
            "shape " + out.shape().str());
  page.say(
      {"The weights have an axis of heads, (B, H, n, m). The book stores them as (B H, n, m), batch element $b$ and "
       "head $j$ in row $b H + j$, and repeats every valid length $H$ times; here a length counts for all heads as "
       "it is. Equal keys share the weight evenly, so ones give 1/3 three times, and 1/2 twice. With random numbers "
       "the heads differ, and what holds for one attention holds for each of them:",
       "权重有一个头的轴：(B, H, n, m)。书中存成 (B H, n, m)，批量元素 $b$ 的第 $j$ 个头在第 $b H + j$ 行，并把每个有"
       "效长度重复 $H$ 次；这里一个长度直接对所有头有效。相同的键平分权重，所以全一的输入给出三个 1/3 和两个 1/2。输"
       "入随机数时各头就不同了，而对一个注意力成立的，对每个头都成立："});
  const Tensor q = normal({2, 4, 100}, rng.at("q")), k = normal({2, 6, 100}, rng.at("k"));
  const Tensor w = weights_of(heads, q, k, mask);
  page.draw("demo-heads",
            heatmaps(w, "Keys", "Queries", {"Head 1", "Head 2", "Head 3", "Head 4", "Head 5"},
                     {.colours = {.low = 0, .high = 1}}),
            {"Five heads with random weights; above the batch element of length 3, below that of length 2.",
             "五个随机权重的头；上面是长度为 3 的批量元素，下面是长度为 2 的。"});
  const Rows rows = rows_beyond(w, lens.data());
  page.claim(std::abs(even.at({0, 4, 3, 2}) - 1.0 / 3) < 1e-6 && std::abs(even.at({1, 0, 0, 1}) - 0.5) < 1e-6,
             {"Equal keys: 1/3 for a length of 3, 1/2 for a length of 2, in every head.",
              "键相同时：长度为 3 的每个 1/3，长度为 2 的每个 1/2，每个头都如此。"},
             fmt::format("weights {:.6f} and {:.6f}", even.at({0, 4, 3, 2}), even.at({1, 0, 0, 1})));
  page.claim(rows.zeros_beyond && rows.worst_sum < 1e-6,
             {"Every row of every head sums to one, and keys beyond the length get exactly 0.",
              "每个头的每一行之和为一，超出长度的键恰好得到 0。"},
             "largest |Σα − 1| " + tiny(rows.worst_sum));
  Watch watch;
  const Tensor trained = heads(q, k, k, mask, {.training = true, .rng = rng.at("dropout"), .probe = &watch});
  const double moved = largest_difference(trained, heads(q, k, k, mask, {}));
  page.claim(largest_difference(watch.weights.matrix(), w) == 0 && moved > 1e-3,
             {"The weights that are shown are those before dropout; the output in training has felt it.",
              "显示的权重是暂退之前的；训练时的输出则经过了暂退。"},
             fmt::format("weights moved by 0, output by {:.2f}", moved));
}

void blocks(Page& page) {
  page.heading({"Which numbers belong to which head", "哪些数属于哪个头"});
  page.say(
      {"After the projection a vector of width $h$ is cut into $H$ blocks: columns $(j - 1) h / H + 1$ to $j h / H$ "
       "belong to head $j$. The book reshapes (B, n, h) to (B, n, H, h/H), exchanges the middle axes and gets (B H, "
       "n, h/H); afterwards it does the same backwards. Two tokens of width 6, three heads:",
       "投影之后，宽为 $h$ 的向量被切成 $H$ 块：第 $(j - 1) h / H + 1$ 到 $j h / H$ 列属于第 $j$ 个头。书中先把 (B, "
       "n, h) 改成 (B, n, H, h/H)，交换中间两轴，得到 (B H, n, h/H)；之后再原样倒回去。两个宽为 6 的词元，三个头："});
  const Tensor x = arange(0, 12).viewed({1, 2, 6});
  const Tensor apart = reshape(permute(reshape(x, {1, 2, 3, 2}), {0, 2, 1, 3}), {3, 2, 2});
  const Tensor back = reshape(permute(reshape(apart, {1, 3, 2, 2}), {0, 2, 1, 3}), {1, 2, 6});
  page.print(fmt::format("{}:\n{}\n{}:\n{}", x.shape().str(), shown(x), apart.shape().str(), shown(apart)));
  page.claim(largest_difference(back, x) == 0 && apart.at({1, 0, 0}) == 2 && apart.at({2, 1, 1}) == 11,
             {"Head $j$ has block $j$ of every token, and the way back is exact.",
              "第 $j$ 个头得到每个词元的第 $j$ 块，而倒回去是精确的。"},
             fmt::format("largest difference {}, there and back", largest_difference(back, x)));
  page.say(
      {"Here no number is moved for this: the attention kernel is told that the heads are the inner axis and reads block $j$ where it "
       "stands. To see that a block belongs to its head alone, change the rows of $W_q$ that make one block and look which maps change:",
       "这里并不为此搬动任何数：注意力内核知道头是内层的轴，就地读取第 $j$ 块。要看出一块只属于一个头，可以改动 "
       "$W_q$ 中产生某一块的那些行，看哪些头的权重变了："});
  const Rng rng = Rng(page.seed()).at("blocks");
  MultiHead heads({.width = 32, .heads = 4}, rng.at("heads"));
  const Tensor tokens = normal({1, 6, 32}, rng.at("tokens"));
  const Tensor before = weights_of(heads, tokens, tokens, Mask::none());
  Tensor moved = zeros({4, 4});
  bool only_own = true;
  double others = 0;
  for (int64_t j = 0; j < 4; ++j) {
    MultiHead other = heads;
    other.to_q.weight = heads.to_q.weight.copied();
    const Tensor noise = normal({8, 32}, rng.at("noise").at(static_cast<uint64_t>(j)), 0, 0.3f);
    for (int64_t i = 0; i < noise.numel(); ++i) other.to_q.weight.mutable_ptr()[j * 8 * 32 + i] += noise.ptr()[i];
    const Tensor after = weights_of(other, tokens, tokens, Mask::none());
    for (int64_t h = 0; h < 4; ++h) {
      const double by = largest_difference(before.part(h * 36, {36}), after.part(h * 36, {36}));
      moved.mutable_ptr()[j * 4 + h] = static_cast<float>(by);
      if (j != h) others = std::max(others, by);
      only_own = only_own && (j == h ? by > 1e-3 : by == 0);
    }
  }
  std::vector<std::vector<std::string>> cells;
  for (int64_t j = 0; j < 4; ++j) {
    cells.push_back({fmt::format("{}–{}", 8 * j + 1, 8 * j + 8)});
    for (int64_t h = 0; h < 4; ++h) cells.back().push_back(fmt::format("{:.3g}", moved.at({j, h})));
  }
  page.table({{"rows of $W_q$ changed", "改动的 $W_q$ 的行"},
              {"head 1", "头 1"},
              {"head 2", "头 2"},
              {"head 3", "头 3"},
              {"head 4", "头 4"}},
             cells);
  page.claim(only_own,
             {"A change in block $j$ changes the weights of head $j$, and not one bit of the others'.",
              "第 $j$ 块的改动只改变第 $j$ 个头的权重，其他头一位不差。"},
             fmt::format("largest change of another head's weight {}", others));
}

void loop(Page& page) {
  page.heading({"One product, or a loop over the heads", "一次乘积，还是逐头循环"});
  page.say(
      {"The definition says: for every head three small products and an attention, then put together and multiply by "
       "$W_o$. The program does three large products, one attention over all heads, and $W_o$. Both on the same "
       "weights, with lengths, with a length for each query, and with a causal mask:",
       "按照定义：每个头做三次小的乘积和一次注意力，然后拼接，再乘 $W_o$。程序则做三次大的乘积、一次覆盖所有头的注意"
       "力，再乘 $W_o$。用同样的权重比较两者：有效长度、每个查询一个长度，以及因果掩蔽："});
  const Rng rng = Rng(page.seed()).at("loop");
  const MultiHead heads({.width = 64, .heads = 8}, rng.at("heads"));
  const Tensor q = normal({2, 5, 64}, rng.at("q")), k = normal({2, 7, 64}, rng.at("k"));
  const std::pair<Text, Mask> masks[] = {
      {{"lengths (B)", "长度 (B)"}, Mask::valid_lens(Ids({2}, {4, 7}))},
      {{"lengths (B, n)", "长度 (B, n)"}, Mask::valid_lens(Ids({2, 5}, {1, 2, 3, 4, 5, 7, 6, 5, 4, 3}))},
      {{"causal", "因果"}, Mask::causal()}};
  double worst = 0;
  std::vector<std::pair<Text, std::vector<std::string>>> table;
  for (const auto& [name, mask] : masks) {
    const double by = largest_difference(heads(q, k, k, mask, {}), head_by_head(heads, q, k, mask));
    worst = std::max(worst, by);
    table.push_back({name, {tiny(by)}});
  }
  named_table(page, {{"mask", "掩蔽"}, {"largest difference", "最大差别"}}, table);
  page.claim(worst < 1e-6, {"Both are the same to rounding.", "除舍入外两者相同。"},
             "largest difference " + tiny(worst));
  const MultiHead wide({.width = 256, .heads = 16}, rng.at("wide"));
  const Race many = race(wide, normal({4, 32, 256}, rng.at("x"))),
             single = race(wide, normal({1, 1, 256}, rng.at("x")));
  named_table(
      page,
      {{"width 256, 16 heads", "宽度 256，16 个头"}, {"one product, ms", "一次乘积，毫秒"}, {"loop, ms", "循环，毫秒"}},
      {{{"4 lines of 32 tokens", "4 行，每行 32 个词元"}, many.cells()},
       {{"a single token", "单个词元"}, single.cells()}});
  page.say(
      {"Both do the same multiplications, so with 128 tokens the times are close: a product of 128 x 256 by 256 x 16 numbers already "
       "keeps a processor core busy. What the loop adds is a fixed cost per call, 49 products instead of 4, and it shows where "
       "the work is small: with the single token of a decoder's step. The book speaks of parallel computation, and there the one large "
       "product counts for most: a device with thousands of arithmetic units is filled by it and idles through small ones in turn.",
       "两者做的乘法一样多，所以 128 个词元时用时相近：128 x 256 乘 256 x 16 的乘积已经足以让一个处理器核忙起来。循环多出来的是每次调用的"
       "固定开销（49 次乘积而不是 4 次），在工作量小的时候才显出来：例如解码器每步只有一个词元。书中说的是并行计算，那里一次大乘积最有意义："
       "有成千上万个运算单元的设备能被它填满，而依次做小乘积时大多闲着。"});
}

void sizes(Page& page) {
  page.heading({"What it weighs", "它有多大"});
  page.say(
      {"Four matrices of $h \\times h$: the number of parameters, $4 h^2$, does not depend on the number of heads. "
       "More heads means narrower heads. $h$ must be divisible by $H$:",
       "四个 $h \\times h$ 矩阵：参数个数 $4 h^2$ 与头数无关。头越多，每个头越窄。$h$ 必须能被 $H$ 整除："});
  const Rng rng = Rng(page.seed()).at("sizes");
  std::string refusal;
  try {
    MultiHead({.width = 100, .heads = 3}, rng);
  } catch (const Error& e) {
    refusal = e.what();
  }
  page.print("error: " + refusal);
  std::vector<std::vector<std::string>> rows;
  for (int64_t heads : {1, 2, 5, 10, 20}) {
    const int64_t plain = count_parameters(MultiHead({.width = 100, .heads = heads}, rng));
    const int64_t biased = count_parameters(MultiHead({.width = 100, .heads = heads, .bias = Linear::Bias::yes}, rng));
    rows.push_back({std::to_string(heads), std::to_string(100 / heads), grouped(plain), grouped(biased)});
  }
  page.table({{"heads", "头数"}, {"width of a head", "头的宽度"}, {"parameters", "参数"}, {"with biases", "有偏置"}},
             rows);

  const MultiHead uneven({.width = 100, .heads = 5, .query_width = 20, .key_width = 10, .value_width = 6}, rng);
  const Tensor out = uneven(ones({2, 4, 20}), ones({2, 6, 10}), ones({2, 6, 6}), Mask::none(), {});
  page.fact({"Queries, keys and values of widths 20, 10 and 6 go in as well; the output is as wide as before.",
             "宽度为 20、10、6 的查询、键、值也可以输入；输出的宽度不变。"},
            fmt::format("output {}, {} parameters", out.shape().str(), grouped(count_parameters(uneven))));
}

void grouped_heads(Page& page) {
  page.heading({"Grouped heads", "分组的头"});
  const Rng rng = Rng(page.seed()).at("sizes");
  page.say(
      {"A decoder keeps the keys and values of all earlier tokens, $2 h$ numbers each. **Grouped heads** keep fewer: $H_k$ heads of keys "
       "and values, each read by $H / H_k$ query heads (one for all: Shazeer, 2019; groups: Ainslie and others, 2023). It is the same as a "
       "full model in which some heads have equal key and value matrices:",
       "解码器要保存此前所有词元的键和值，每个词元 $2 h$ 个数。**分组的头**保存得更少：$H_k$ 个键值头，每个由 $H / H_k$ 个查询头共用（全部"
       "共用一个：Shazeer，2019；分组：Ainslie 等，2023）。它等同于一个完整的模型，只是其中一些头的键、值矩阵相同："});
  std::vector<std::vector<std::string>> cache;
  double worst = 0;
  bool counted = true;
  const Tensor x = normal({2, 6, 96}, rng.at("x"));
  for (int64_t kept : {8, 4, 2, 1}) {
    const MultiHead small({.width = 96, .heads = 8, .key_heads = kept}, rng.at("grouped"));
    MultiHead full = small;
    full.key_heads = 8;
    const auto repeated = [&](const Tensor& w) {
      return reshape(repeat_interleave(reshape(w, {kept, 12 * 96}), 8 / kept, 0), {96, 96});
    };
    full.to_k.weight = repeated(small.to_k.weight), full.to_v.weight = repeated(small.to_v.weight);
    worst = std::max(worst, largest_difference(small(x, x, x, Mask::causal(), {}), full(x, x, x, Mask::causal(), {})));
    const int64_t parameters = count_parameters(small), numbers = 2 * small.project(x, x).k.size(2);
    counted = counted && parameters == 2 * 96 * 96 + 2 * 96 * kept * 12 && numbers == 2 * kept * 12;
    cache.push_back({std::to_string(kept), grouped(parameters), std::to_string(numbers)});
  }
  page.table({{"key heads, of 8", "键值头数（共 8 个头）"},
              {"parameters, width 96", "参数（宽度 96）"},
              {"numbers kept per token", "每个词元保存的数"}},
             cache);
  page.claim(counted && worst < 1e-6,
             {"Grouped heads equal full ones with repeated matrices, and keep $2 H_k h / H$ numbers per token.",
              "分组的头等同于矩阵重复的完整多头，每个词元只保存 $2 H_k h / H$ 个数。"},
             "largest difference " + tiny(worst));
}

}  // namespace multi_head

Lab multi_head_lab() {
  using namespace multi_head;
  return {"10.5",
          "multi-head",
          {"Multi-head attention", "多头注意力"},
          {definition, shapes, blocks, loop, sizes, grouped_heads, one_against_several, drawn, distances, importance,
           pruning},
          false,
          3};
}

}  // namespace qkv::labs
