// Lab 10.6, exercise 1: what a deep stack of self-attention does to positions and gradients, and what residuals and
// norms do about it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/multi_head.h"
#include "qkv/attention/positions.h"
#include "qkv/labs/self_attention.h"
#include "qkv/labs/show.h"
#include "qkv/nn/init.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs::self_attention {
namespace {

constexpr int64_t kTokens = 16, kStackWidth = 64, kDepth = 24;

enum class Around { nothing, residual, post_norm, pre_norm, block };

struct Stack {
  Around around;
  std::vector<MultiHead> layers;
  std::vector<LayerNorm> norms, ffn_norms;
  std::vector<FeedForward> ffns;

  Stack(Around kind, const Rng& rng) : around(kind) {
    for (int64_t l = 0; l < kDepth; ++l) {
      const Rng own = rng.at(static_cast<uint64_t>(l));
      MultiHead heads({.width = kStackWidth, .heads = 4}, own);
      // Glorot's, as the book's: the size of a vector does not change on the way through a matrix.
      FeedForward ffn(kStackWidth, 2 * kStackWidth, kStackWidth, own.at("ffn"));
      const auto glorot = [&](const std::string& name, Tensor& t) {
        if (t.rank() == 2) t = parameter(xavier_uniform(t.shape(), own.at(name)));
      };
      each_tensor(heads, glorot);
      each_tensor(ffn, glorot);
      layers.push_back(heads), ffns.push_back(ffn);
      norms.emplace_back(kStackWidth), ffn_norms.emplace_back(kStackWidth);
    }
  }

  Tensor layer(size_t l, const Tensor& x) const {
    const auto attention = [&](const Tensor& in) { return layers[l](in, in, in, Mask::none(), {}); };
    switch (around) {
      case Around::nothing:
        return attention(x);
      case Around::residual:
        return x + attention(x);
      case Around::post_norm:
        return norms[l](x + attention(x));
      case Around::pre_norm:
        return x + attention(norms[l](x));
      case Around::block: {
        const Tensor y = x + attention(norms[l](x));
        return y + ffns[l](ffn_norms[l](y));
      }
    }
    fail("[stack] unknown kind");
  }
};

// What tells the tokens apart: |X - mean over tokens| / |X|.
double difference_of_tokens(const Tensor& x) { return length_of(x - mean(x, 1, KeepDims::yes)) / length_of(x); }

struct Depths {
  std::vector<double> apart;     // after 0, 1, ... layers
  std::vector<double> gradient;  // |dL/dW_q| of layer 1, 2, ...
};

Depths run_down(const Stack& stack, const Tensor& x, const Rng& rng) {
  Depths result{{difference_of_tokens(x)}, {}};
  Tape tape;
  Tensor y = x;
  for (size_t l = 0; l < stack.layers.size(); ++l) {
    y = stack.layer(l, y);
    result.apart.push_back(difference_of_tokens(y.detached()));
  }
  // Pre-norm leaves the sum of all layers; its length would set the scale, so the loss looks at directions.
  tape.backward(sum(mul(LayerNorm(kStackWidth)(y), normal(x.shape(), rng.at("direction")))));
  for (const MultiHead& heads : stack.layers) result.gradient.push_back(length_of(tape.grad(heads.to_q.weight)));
  return result;
}

struct Named {
  Text name;
  Around around;
  const char* style;
};
const Named kKinds[] = {{{"attention alone", "只有注意力"}, Around::nothing, "r-"},
                        {{"with residuals", "加残差"}, Around::residual, "b--"},
                        {{"residual, then norm", "残差后规范化"}, Around::post_norm, "g-."},
                        {{"norm, then residual", "规范化后残差"}, Around::pre_norm, "m:"},
                        {{"the same with feed-forward", "同上，加前馈网络"}, Around::block, "k-"}};

struct Runs {
  std::vector<Depths> all;  // in the order of kKinds
  const Depths& of(Around kind) const { return all[static_cast<size_t>(kind)]; }
};

const Runs& all_runs(Page& page) {
  Runs& runs = page.shared<Runs>();
  if (!runs.all.empty()) return runs;
  const Rng rng = Rng(page.seed()).at("depth");
  const Tensor word = normal({1, 1, kStackWidth}, rng.at("word"));
  const Tensor x = word + sinusoidal_positions(kTokens, kStackWidth).viewed({1, kTokens, kStackWidth});
  for (const Named& kind : kKinds) runs.all.push_back(run_down(Stack(kind.around, rng.at("layers")), x, rng));
  return runs;
}

// For an axis with logarithms: what float32 cannot tell from nothing is drawn at the bottom.
std::vector<double> above(std::vector<double> values, double floor) {
  for (double& v : values) v = std::max(v, floor);
  return values;
}

// One of the two measurements for all kinds, over the layers from `first` on.
Figure by_layer(const Runs& runs, std::vector<double> Depths::*values, int64_t first, double floor,
                const std::string& label) {
  std::vector<double> layer;
  for (int64_t l = first; l <= kDepth; ++l) layer.push_back(static_cast<double>(l));
  std::vector<Series> lines;
  for (size_t k = 0; k < runs.all.size(); ++k)
    lines.push_back({kKinds[k].name.en, layer, above(runs.all[k].*values, floor), line_style(kKinds[k].style)});
  return curves(lines, {.label = "layer"}, {.label = label, .scale = AxisScale::log});
}

// The same at a few layers.
void table_at(Page& page, const Runs& runs, std::vector<double> Depths::*values, const std::vector<size_t>& places,
              std::vector<Text> head) {
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  for (size_t k = 0; k < runs.all.size(); ++k) {
    rows.push_back({kKinds[k].name, {}});
    for (size_t at : places) rows.back().second.push_back(tiny((runs.all[k].*values)[at]));
  }
  named_table(page, std::move(head), rows);
}

}  // namespace

void deep_stacks(Page& page) {
  page.heading({"Exercise 10.6.1: a deep stack of self-attention", "练习 10.6.1：自注意力的深层堆叠"});
  page.say(
      {"What goes wrong if self-attention with positional encoding is stacked, layer upon layer? Take the same word sixteen times, so that "
       "nothing but the position tells one token from another, and send it through 24 layers. A weighted mean lies between what it is a "
       "mean of: every layer brings the tokens closer together, and the position, which was added only once, at the bottom, is averaged "
       "away (\"rank collapse\": Dong, Cordonnier and Loukas, 2021). Once all tokens are equal all weights are equal, and queries and keys "
       "have nothing left to learn from.",
       "把带位置编码的自注意力一层层堆起来，会出什么问题？取同一个词十六次，使词元之间只有位置不同，让它通过 24 层。"
       "加权平均总在被平均者之间：每一层都使词元彼此更近，而位置只在最底层加过一次，逐渐被平均掉（“秩坍缩”：Dong、"
       "Cordonnier 与 Loukas，2021）。一旦所有词元相同，所有权重也就相同，查询和键再也学不到什么。"});
  page.formula("\\frac{\\lVert X - \\bar{X} \\rVert}{\\lVert X \\rVert}");
  page.say(
      {"This is how far the tokens are from their mean, $\\bar{X}$, relative to their length: 0 when all are equal. It is measured after "
       "every layer for attention alone; with a residual connection, $x + f(x)$; with a norm after the sum, as in the book; with a norm "
       "before $f$; and with a norm and a feed-forward network as well, a whole block.",
       "这是词元与其平均 $\\bar{X}$ 的距离，相对于它们的长度：全部相同时为 0。每层之后都测量：只有注意力；加残差连接 "
       "$x + f(x)$；像书中那样在和之后规范化；在 $f$ 之前规范化；再加上前馈网络，成为完整的块。"});
  const Runs& runs = all_runs(page);
  page.draw("depth-tokens", by_layer(runs, &Depths::apart, 0, 1e-8, "distance from the mean"),
            {"What is left of the positions after so many layers (1e-7 is rounding).",
             "经过若干层之后位置还剩下多少（1e-7 是舍入误差）。"});
  table_at(page, runs, &Depths::apart, {0, 1, 4, 24},
           {{"", " "},
            {"at the input", "输入处"},
            {"after 1 layer", "1 层后"},
            {"after 4", "4 层后"},
            {"after 24", "24 层后"}});
  const Depths &alone = runs.of(Around::nothing), &residual = runs.of(Around::residual),
               &post = runs.of(Around::post_norm), &pre = runs.of(Around::pre_norm), &block = runs.of(Around::block);
  page.claim(
      alone.apart[4] < 1e-3 && std::min(residual.apart[4], post.apart[4]) > 1e-2,
      {"Alone, attention has averaged the positions away after four layers; with residuals they are still there.",
       "只有注意力时，四层之后位置就被平均掉了；有残差时还在。"},
      fmt::format("distance from the mean {} alone; {} with residuals, {} with a norm after them", tiny(alone.apart[4]),
                  tiny(residual.apart[4]), tiny(post.apart[4])));
  page.claim(
      std::min(pre.apart.back(), block.apart.back()) > 1e-2 &&
          std::max(residual.apart.back(), post.apart.back()) < 1e-2,
      {"At 24 layers a residual alone, or with a norm after it, has lost them too; with the norm before the attention they remain.",
       "到 24 层，只有残差、或残差后规范化的也丢掉了位置；在注意力之前规范化的仍保留着。"},
      fmt::format("distance from the mean {} and {}; with the norm before {}, as a whole block {}",
                  tiny(residual.apart.back()), tiny(post.apart.back()), tiny(pre.apart.back()),
                  tiny(block.apart.back())));
  page.say(
      {"A residual turns the collapse into a decline by a factor per layer: what attention adds is nearly the same for "
       "all tokens, so they become relatively closer. A norm after the sum only rescales. With the norm before, what "
       "is added keeps its size while the sum grows, so each further layer counts for less, and the differences stay.",
       "残差把坍缩变成每层按比例的下降：注意力加上的东西对所有词元几乎相同，所以它们相对更近。和之后的规范化只是重新"
       "缩放。规范化在前时，加上的东西大小不变而总和在增长，所以越往后每层的份量越小，差别得以保留。"});
}

void deep_gradients(Page& page) {
  page.heading({"What this does to learning", "这对学习的影响"});
  page.say(
      {"The gradient of a loss at the top with respect to the query matrix of each layer says how much that layer is asked to "
       "change what it looks at.",
       "顶层损失对每层查询矩阵的梯度，说明损失在多大程度上要求这一层改变它所看的地方。"});
  const Runs& runs = all_runs(page);
  page.draw("depth-gradients", by_layer(runs, &Depths::gradient, 1, 1e-10, "gradient of the query weights"),
            {"Where tokens are equal the scores do not matter, and queries and keys get no gradient.",
             "词元相同之处，分数无关紧要，查询和键就得不到梯度。"});
  table_at(
      page, runs, &Depths::gradient, {0, 3, 11, 23},
      {{"", " "}, {"layer 1", "第 1 层"}, {"layer 4", "第 4 层"}, {"layer 12", "第 12 层"}, {"layer 24", "第 24 层"}});
  const Depths &alone = runs.of(Around::nothing), &pre = runs.of(Around::pre_norm);
  // Each stack against its own first layer: how large gradients are as such depends on the weights that were drawn.
  const double lost = *std::max_element(alone.gradient.begin() + 8, alone.gradient.end()) / alone.gradient[0];
  const double kept = *std::min_element(pre.gradient.begin(), pre.gradient.end()) / pre.gradient[0];
  page.claim(
      lost < 1e-3 && kept > 1e-3,
      {"Above the eighth layer of the bare stack the queries get less than a thousandth of the first layer's gradient; with a "
       "residual and a norm before it no layer falls that low.",
       "没有残差的堆叠在第八层以上，查询矩阵得到的梯度不到第一层的千分之一；有残差且规范化在前时，没有哪一层降到这么低。"},
      fmt::format("of the first layer's gradient: at most {} bare, at least {} with both", tiny(lost), tiny(kept)));
  page.say(
      {"So a Transformer block (10.7) carries each token past the attention as it is and keeps lengths in check by "
       "norms; deep ones put the norm first. Another remedy is to give positions anew in every layer, inside the "
       "scores, as the relative ones below do. And there is the cost: each layer of $n$ tokens has $n^2$ weights.",
       "所以 Transformer 块（10.7 节）让每个词元原样绕过注意力，用规范化控制长度；深的模型把规范化放在前面。另一个办"
       "法是像下面的相对位置那样，在每一层的分数里重新给出位置。还有代价：$n$ 个词元的每一层有 $n^2$ 个权重。"});
}

}  // namespace qkv::labs::self_attention
