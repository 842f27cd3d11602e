// Lab 10.6: how far a signal has to go from token to token, read off gradients.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "qkv/attention/multi_head.h"
#include "qkv/labs/self_attention.h"
#include "qkv/labs/show.h"
#include "qkv/nn/recurrent.h"
#include "qkv/ops/conv.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs::self_attention {
namespace {

using Layer = std::function<Tensor(const Tensor&)>;  // (1, n, D) -> (1, n, D)

Layer cnn(int64_t layers, int64_t kernel, int64_t d, const Rng& rng) {
  std::vector<Tensor> weights;
  const float size = 1 / std::sqrt(static_cast<float>(d * kernel));
  for (int64_t l = 0; l < layers; ++l)
    weights.push_back(normal({d, d, kernel}, rng.at(static_cast<uint64_t>(l)), 0, size));
  return [weights, kernel](const Tensor& x) {
    Tensor y = transpose(x, 1, 2);
    for (const Tensor& w : weights) y = tanh(conv1d(y, w, {}, {.padding = kernel / 2}));
    return transpose(y, 1, 2);
  };
}

Layer rnn(int64_t d, const Rng& rng) {
  return [gru = Recurrent(d, d, {}, rng)](const Tensor& x) { return gru(x, {}).y; };
}

Layer attention(int64_t d, const Rng& rng, int64_t layers = 1) {
  std::vector<MultiHead> stack;
  for (int64_t l = 0; l < layers; ++l)
    stack.emplace_back(MultiHeadOptions{.width = d, .heads = 4}, rng.at(static_cast<uint64_t>(l)));
  return [stack](const Tensor& x) {
    Tensor y = x;
    for (const MultiHead& heads : stack) y = heads(y, y, y, Mask::none(), {});
    return y;
  };
}

// |d(r . y_i) / dx_j| for every j, with a random direction r.
std::vector<double> gradient_sizes(const Layer& layer, const Tensor& x, int64_t i, const Rng& rng) {
  const int64_t n = x.size(1), d = x.size(2);
  const Tensor leaf = parameter(x.copied());
  Tape tape;
  const Tensor y = layer(leaf);
  tape.backward(sum(mul(slice(y, 1, i, i + 1), normal({1, 1, d}, rng))));
  const Tensor gradient = tape.grad(leaf);
  std::vector<double> sizes;
  for (int64_t j = 0; j < n; ++j) sizes.push_back(length_of(gradient.part(j * d, {d})));
  return sizes;
}

// Row i, column j: how strongly output i depends on input j, scaled so that the largest is 1.
Tensor influence(const Layer& layer, const Tensor& x, const Rng& rng) {
  const int64_t n = x.size(1);
  Tensor map = Tensor::empty({n, n});
  for (int64_t i = 0; i < n; ++i) {
    const auto sizes = gradient_sizes(layer, x, i, rng);
    std::copy(sizes.begin(), sizes.end(), map.mutable_ptr() + i * n);
  }
  return scale(map, 1 / max(map).item());
}

// How many layers output i needs to depend on the first and the last of n inputs; `stack` builds the layers.
int64_t layers_until(int64_t n, int64_t i, const std::function<Layer(int64_t layers)>& stack, const Rng& rng) {
  const Tensor x = normal({1, n, 4}, rng.at("x"));
  for (int64_t layers = 1;; ++layers) {
    const auto sizes = gradient_sizes(stack(layers), x, i, rng.at("direction"));
    if (sizes.front() > 0 && sizes.back() > 0) return layers;
    check(layers < 2 * n, "[layers_until] ", layers, " layers do not connect ", n, " tokens");
  }
}

// The gradient of the last state with respect to the first input, the chain cut after step `cut` (0: not at all).
double first_to_last(int64_t n, int64_t cut, const Rng& rng) {
  const int64_t d = 8;
  const Recurrent gru(d, d, {}, rng.at("gru"));
  const Tensor x = parameter(normal({n, 1, d}, rng.at("x")));
  Tape tape;
  CellState state;
  for (int64_t t = 0; t < n; ++t) {
    state = recurrent_step(CellKind::gru, reshape(slice(x, 0, t, t + 1), {1, d}), gru.layers[0].weights(), state);
    if (t + 1 == cut) state.h = state.h.detached();
  }
  tape.backward(sum(state.h));
  return length_of(tape.grad(x).part(0, {d}));
}

// How many of the n - 1 places where the chain can be cut are on the path from the first input to the last output.
int64_t links_needed(int64_t n, const Rng& rng) {
  int64_t count = 0;
  for (int64_t cut = 1; cut < n; ++cut) count += first_to_last(n, cut, rng) == 0;
  return count;
}

int64_t rounded_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void five_tokens(Page& page) {
  page.heading(tr("Which output depends on which input: five tokens"));
  page.say(tr(
      "The length of the path from one token to another can be read off gradients: if output $i$ depends on input $j$, "
      "the derivative of $y_i$ with respect to $x_j$ is not zero. In the book's picture of five tokens, $x_1$ and "
      "$x_5$ need two layers of convolution with kernel 3 to meet in the middle. Here are the sizes of the actual "
      "derivatives:"));
  const Rng rng = Rng(page.seed()).at("five");
  const Tensor x = normal({1, 5, 16}, rng.at("x"));
  const Layer layers[] = {cnn(1, 3, 16, rng.at("cnn")), cnn(2, 3, 16, rng.at("cnn")), rnn(16, rng.at("rnn")),
                          attention(16, rng.at("attention"))};
  Tensor maps = Tensor::empty({4, 5, 5});
  for (int64_t i = 0; i < 4; ++i)
    std::copy_n(influence(layers[i], x, rng.at("direction")).ptr(), 25, maps.mutable_ptr() + 25 * i);
  const std::vector<std::string> in = {"x₁", "x₂", "x₃", "x₄", "x₅"}, out = {"y₁", "y₂", "y₃", "y₄", "y₅"};
  page.draw(
      "influence",
      heatmaps(maps, tr("input"), tr("output"), {tr("CNN, 1 layer"), tr("CNN, 2 layers"), "RNN", tr("self-attention")},
               {.colours = {.low = 0, .high = 1}, .x_tokens = in, .y_tokens = out}),
      tr("The size of the derivative of each output with respect to each input; in each panel the largest is 1."));
  const auto at = [&](int64_t map, int64_t i, int64_t j) { return maps.at({map, i, j}); };
  page.claim(
      at(0, 2, 0) == 0 && at(0, 2, 4) == 0 && at(1, 2, 0) > 0 && at(1, 2, 4) > 0 && at(1, 4, 0) == 0,
      tr("After one layer of convolution the middle does not depend on the ends; after two it depends on both, but the "
         "last still does not depend on the first."),
      tr("dy3/dx1: {one} then {two:.2f}; dy5/dx1: {end}", "one"_a = at(0, 2, 0), "two"_a = at(1, 2, 0),
         "end"_a = at(1, 4, 0)));
  bool before_only = true, everywhere = true;
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 5; ++j) {
      before_only = before_only && (at(2, i, j) > 0) == (j <= i);
      everywhere = everywhere && at(3, i, j) > 0;
    }
  page.claim(
      before_only && everywhere,
      tr("A recurrence depends only on what came before; one layer of self-attention depends on everything."),
      tr("dy5/dx1: {rnn:.3f} RNN, {attention:.2f} self-attention", "rnn"_a = at(2, 4, 0), "attention"_a = at(3, 4, 0)));
}

void layers_needed(Page& page) {
  page.heading(tr("How many layers, how many steps"));
  page.say(tr(
      "With kernel $k$ a layer of convolution reaches $(k - 1) / 2$ tokens to each side. Layers are added until the "
      "gradient is not zero: until the middle output depends on both ends, and until the last depends on the first."));
  page.say(tr(
      "One layer of recurrence is enough, but inside it the signal passes through every state. To count the links of "
      "this chain, each is cut in turn (the state is passed on as a constant): the cuts after which the last output no "
      "longer depends on the first input are the steps of the path."));
  const Rng rng = Rng(page.seed()).at("layers");
  bool convolution = true, recurrence = true;
  std::vector<Series> lines = {{tr("RNN, steps"), {}, {}, line_style("ro--")},
                               {"CNN, k = 3", {}, {}, line_style("go-")},
                               {"CNN, k = 5", {}, {}, line_style("mo-.")},
                               {"CNN, k = 9", {}, {}, line_style("ko:")},
                               {tr("self-attention"), {}, {}, line_style("bo-")}};
  const auto put = [&](size_t line, int64_t n, int64_t layers) {
    lines[line].x.push_back(static_cast<double>(n));
    lines[line].y.push_back(static_cast<double>(layers));
  };
  Text met, chain;  // of the longest line
  for (int64_t n : {5, 9, 17, 33}) {
    const int64_t links = links_needed(n, rng.at("chain")),
                  own = layers_until(
                      n, n - 1, [&](int64_t layers) { return attention(4, rng.at("attention"), layers); }, rng);
    recurrence = recurrence && links == n - 1 && own == 1 && first_to_last(n, 0, rng.at("chain")) > 0;
    put(0, n, links);
    put(4, n, own);
    chain = tr("n = {n}: {steps} steps and {layers} layer", "n"_a = n, "steps"_a = links, "layers"_a = own);
    for (size_t k = 0; k < 3; ++k) {
      const int64_t kernel = std::array<int64_t, 3>{3, 5, 9}[k];
      const auto stack = [&](int64_t layers) { return cnn(layers, kernel, 4, rng.at("cnn")); };
      const int64_t middle = layers_until(n, n / 2, stack, rng), end = layers_until(n, n - 1, stack, rng);
      convolution =
          convolution && middle == rounded_up(n - 1, kernel - 1) && end == rounded_up(2 * (n - 1), kernel - 1);
      put(1 + k, n, end);
      if (kernel == 3)
        met = tr("n = {n}, k = 3: {middle} layers to the middle, {end} from end to end", "n"_a = n, "middle"_a = middle,
                 "end"_a = end);
    }
  }
  page.draw("layers-needed",
            curves(lines, {.label = tr("tokens n")}, {.label = tr("layers (RNN: steps), first to last"), .low = 0}),
            tr("How many layers it takes until the last token depends on the first; for the recurrence, how many steps "
               "inside its one layer."));
  page.claim(
      convolution,
      tr("A CNN needs $(n - 1) / (k - 1)$ layers for the ends to meet in the middle and twice that from end to end, "
         "rounded up: $O(n / k)$."),
      met);
  page.claim(recurrence, tr("A recurrence needs $n - 1$ steps, self-attention one layer, for any $n$."), chain);
}

void gradients_by_distance(Page& page) {
  page.heading(tr("What a long path does to a gradient"));
  page.say(tr(
      "64 tokens of width 32, layers as initialised, before any training: how strongly the last output depends on each "
      "input, by its distance. The mean of eight draws."));
  const int64_t n = 64, d = 32, draws = 8;
  const size_t count = static_cast<size_t>(n);
  std::vector<double> distance,
      gradients[3] = {std::vector<double>(count), std::vector<double>(count), std::vector<double>(count)};
  for (int64_t t = 0; t < n; ++t) distance.push_back(static_cast<double>(t));
  for (int64_t draw = 0; draw < draws; ++draw) {
    const Rng rng = Rng(page.seed()).at("distance").at(static_cast<uint64_t>(draw));
    const Tensor x = normal({1, n, d}, rng.at("x"));
    const Layer layers[] = {cnn(4, 9, d, rng.at("cnn")), rnn(d, rng.at("rnn")), attention(d, rng.at("attention"))};
    for (size_t l = 0; l < 3; ++l) {
      const auto sizes = gradient_sizes(layers[l], x, n - 1, rng.at("direction"));
      for (size_t t = 0; t < count; ++t) gradients[l][t] += sizes[count - 1 - t] / static_cast<double>(draws);
    }
  }
  const auto none_as_gap = [](std::vector<double> y) {
    for (double& v : y)
      if (v == 0) v = std::numeric_limits<double>::quiet_NaN();
    return y;
  };
  page.draw(
      "gradient-by-distance",
      curves({{tr("CNN, 4 layers of kernel 9"), distance, none_as_gap(gradients[0]), line_style("g-.")},
              {"RNN (GRU)", distance, none_as_gap(gradients[1]), line_style("r--")},
              {tr("self-attention"), distance, none_as_gap(gradients[2]), line_style("b-")}},
             {.label = tr("distance from the last token")}, {.label = tr("gradient"), .scale = AxisScale::log}),
      tr("The recurrence forgets by a factor at every step, the convolution ends at its reach, and self-attention does "
         "not depend on distance at all."));
  const double kept = gradients[1].back() / gradients[1].front();
  const double flat = *std::min_element(gradients[2].begin() + 1, gradients[2].end()) /
                      *std::max_element(gradients[2].begin() + 1, gradients[2].end());
  const size_t reach = 4 * (9 / 2);
  const bool ends = gradients[0][reach] > 0 && gradients[0][reach + 1] == 0;
  page.claim(
      kept < 1e-3 && ends && flat > 0.1,
      tr("Over 63 tokens the GRU's gradient falls below a thousandth, the CNN's is exactly 0 beyond 16, and that of "
         "self-attention keeps its size."),
      tr("GRU at 63 against 0: {gru}; CNN at 16: {cnn}, at 17: 0; self-attention, smallest against largest: "
         "{attention:.2f}",
         "gru"_a = tiny(kept), "cnn"_a = tiny(gradients[0][reach]), "attention"_a = flat));
}

}  // namespace qkv::labs::self_attention
