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
      // Glorot's initialisation, as in the book: a matrix does not change the size of a vector.
      FeedForward ffn(kStackWidth, 2 * kStackWidth, kStackWidth, own.at("ffn"));
      const auto glorot = [&](const std::string& name, Tensor& t) {
        if (t.rank() == 2) t = parameter(xavier_uniform(t.shape(), own.at(name)));
      };
      each_tensor(heads, glorot);
      each_tensor(ffn, glorot);
      layers.push_back(heads);
      ffns.push_back(ffn);
      norms.emplace_back(kStackWidth);
      ffn_norms.emplace_back(kStackWidth);
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

// How far apart the tokens are: |X - mean over tokens| / |X|.
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
  // Pre-norm returns the sum of all layers; its length would set the scale, so the loss uses directions.
  tape.backward(sum(mul(LayerNorm(kStackWidth)(y), normal(x.shape(), rng.at("direction")))));
  for (const MultiHead& heads : stack.layers) result.gradient.push_back(length_of(tape.grad(heads.to_q.weight)));
  return result;
}

struct Named {
  Text name;
  Around around;
  const char* style;
};
const Named kKinds[] = {{tr("attention alone"), Around::nothing, "r-"},
                        {tr("with residuals"), Around::residual, "b--"},
                        {tr("residual, then norm"), Around::post_norm, "g-."},
                        {tr("norm, then residual"), Around::pre_norm, "m:"},
                        {tr("the same with feed-forward"), Around::block, "k-"}};

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

// For a logarithmic axis: values that float32 cannot tell from 0 are drawn at the bottom.
std::vector<double> above(std::vector<double> values, double floor) {
  for (double& v : values) v = std::max(v, floor);
  return values;
}

// One of the two measurements for all kinds, over the layers from `first` on.
Figure by_layer(const Runs& runs, std::vector<double> Depths::*values, int64_t first, double floor,
                const Label& label) {
  std::vector<double> layer;
  for (int64_t l = first; l <= kDepth; ++l) layer.push_back(static_cast<double>(l));
  std::vector<Series> lines;
  for (size_t k = 0; k < runs.all.size(); ++k)
    lines.push_back({kKinds[k].name, layer, above(runs.all[k].*values, floor), line_style(kKinds[k].style)});
  return curves(lines, {.label = tr("layer")}, {.label = label, .scale = AxisScale::log});
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
  page.exercise("10.6.1");
  page.say(tr(
      "What goes wrong if self-attention with positional encoding is stacked, layer upon layer? Take the same word "
      "sixteen times, so that nothing but the position tells one token from another, and send it through 24 layers. A "
      "weighted mean lies between its terms: every layer brings the tokens closer together, and the position, which "
      "was added only once, at the bottom, is averaged away (\"rank collapse\": Dong, Cordonnier and Loukas, 2021). "
      "Once all tokens are equal, all weights are equal, and queries and keys have nothing left to learn from."));
  page.formula("\\frac{\\lVert X - \\bar{X} \\rVert}{\\lVert X \\rVert}");
  page.say(tr(
      "This is how far the tokens are from their mean, $\\bar{X}$, relative to their length: 0 when all are equal. It "
      "is measured after every layer for attention alone; with a residual connection, $x + f(x)$; with a norm after "
      "the sum, as in the book; with a norm before $f$; and with a norm and a feed-forward network as well, a whole "
      "block."));
  const Runs& runs = all_runs(page);
  page.draw("depth-tokens", by_layer(runs, &Depths::apart, 0, 1e-8, tr("distance from the mean")),
            tr("What is left of the positions after each layer (1e-7 is rounding)."));
  table_at(page, runs, &Depths::apart, {0, 1, 4, 24},
           {verbatim(""), tr("at the input"), tr("after 1 layer"), tr("after 4"), tr("after 24")});
  const Depths &alone = runs.of(Around::nothing), &residual = runs.of(Around::residual),
               &post = runs.of(Around::post_norm), &pre = runs.of(Around::pre_norm), &block = runs.of(Around::block);
  page.claim(
      alone.apart[4] < 1e-3 && std::min(residual.apart[4], post.apart[4]) > 1e-2,
      tr("Attention alone has averaged the positions away after four layers; with residuals they are still there."),
      tr("distance from the mean {alone} alone; {residual} with residuals, {post_norm} with a norm after them",
         "alone"_a = tiny(alone.apart[4]), "residual"_a = tiny(residual.apart[4]),
         "post_norm"_a = tiny(post.apart[4])));
  page.claim(
      std::min(pre.apart.back(), block.apart.back()) > 1e-2 &&
          std::max(residual.apart.back(), post.apart.back()) < 1e-2,
      tr("At 24 layers a residual alone, or with a norm after it, has lost them too; with the norm before the "
         "attention they remain."),
      tr("distance from the mean {residual} and {post_norm}; with the norm before {pre_norm}, as a whole block {block}",
         "residual"_a = tiny(residual.apart.back()), "post_norm"_a = tiny(post.apart.back()),
         "pre_norm"_a = tiny(pre.apart.back()), "block"_a = tiny(block.apart.back())));
  page.say(
      tr("A residual turns the collapse into a decline by a factor per layer: attention adds nearly the same to all "
         "tokens, so relative to their length they move closer together. A norm after the sum only rescales. With the "
         "norm before, each layer adds a vector of the same size while the sum grows, so each further layer counts for "
         "less and the differences remain."));
}

void deep_gradients(Page& page) {
  page.heading(tr("What this does to learning"));
  page.say(tr(
      "The gradient of a loss at the top with respect to the query matrix of each layer says how strongly that layer "
      "is pushed to change what it attends to."));
  const Runs& runs = all_runs(page);
  page.draw("depth-gradients", by_layer(runs, &Depths::gradient, 1, 1e-10, tr("gradient of the query weights")),
            tr("Where tokens are equal the scores do not matter, and queries and keys get no gradient."));
  table_at(page, runs, &Depths::gradient, {0, 3, 11, 23},
           {verbatim(""), tr("layer 1"), tr("layer 4"), tr("layer 12"), tr("layer 24")});
  const Depths &alone = runs.of(Around::nothing), &pre = runs.of(Around::pre_norm);
  // Relative to the first layer of each stack: the absolute size of gradients depends on the weights that were drawn.
  const double lost = *std::max_element(alone.gradient.begin() + 8, alone.gradient.end()) / alone.gradient[0];
  const double kept = *std::min_element(pre.gradient.begin(), pre.gradient.end()) / pre.gradient[0];
  page.claim(lost < 1e-3 && kept > 1e-3,
             tr("Above the eighth layer of the bare stack the queries get less than a thousandth of the first layer's "
                "gradient; with a residual and a norm before it no layer falls that low."),
             tr("at most {lost} of the first layer's gradient bare, at least {kept} with both", "lost"_a = tiny(lost),
                "kept"_a = tiny(kept)));
  page.say(tr(
      "So a Transformer block (10.7) carries each token past the attention unchanged and keeps lengths in check with "
      "norms; deep Transformers put the norm first. Another remedy is to supply positions again in every layer, inside "
      "the scores, as the relative positions below do. And there is the cost: each layer of $n$ tokens has $n^2$ "
      "weights."));
}

}  // namespace qkv::labs::self_attention
