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
std::vector<double> felt_by(const Layer& layer, const Tensor& x, int64_t i, const Rng& rng) {
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

// Row i, column j: how much output i feels input j, the largest being 1.
Tensor influence(const Layer& layer, const Tensor& x, const Rng& rng) {
  const int64_t n = x.size(1);
  Tensor map = Tensor::empty({n, n});
  for (int64_t i = 0; i < n; ++i) {
    const auto felt = felt_by(layer, x, i, rng);
    std::copy(felt.begin(), felt.end(), map.mutable_ptr() + i * n);
  }
  return scale(map, 1 / max(map).item());
}

// Layers until output i has a gradient by the first and the last of n inputs; `stack` makes so many of them.
int64_t layers_until(int64_t n, int64_t i, const std::function<Layer(int64_t layers)>& stack, const Rng& rng) {
  const Tensor x = normal({1, n, 4}, rng.at("x"));
  for (int64_t layers = 1;; ++layers) {
    const auto felt = felt_by(stack(layers), x, i, rng.at("direction"));
    if (felt.front() > 0 && felt.back() > 0) return layers;
    check(layers < 2 * n, "[layers_until] ", layers, " layers do not join ", n, " tokens");
  }
}

// The gradient of the last state by the first input, the chain being cut after step `cut` (0: not at all).
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

// How many of the n - 1 places where the chain can be cut are on the way from the first input to the last output.
int64_t links_needed(int64_t n, const Rng& rng) {
  int64_t count = 0;
  for (int64_t cut = 1; cut < n; ++cut) count += first_to_last(n, cut, rng) == 0;
  return count;
}

int64_t rounded_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

void five_tokens(Page& page) {
  page.heading({"Who hears of whom: five tokens", "谁能听到谁：五个词元"});
  page.say(
      {"How long the way is from one token to another can be read off gradients: if output $i$ depends on input $j$, the derivative of "
       "$y_i$ with respect to $x_j$ is not zero. The book's picture has five tokens, and two layers of convolution with kernel 3 for $x_1$ "
       "and $x_5$ to meet, in the middle. Here are the sizes of the actual derivatives:",
       "从一个词元到另一个词元的路有多长，可以从梯度读出：若输出 $i$ 依赖输入 $j$，则 $y_i$ 对 $x_j$ 的导数不为零。书"
       "中的图有五个词元，核为 3 的卷积要两层，$x_1$ 与 $x_5$ 才在中间相遇。下面是真实导数的大小："});
  const Rng rng = Rng(page.seed()).at("five");
  const Tensor x = normal({1, 5, 16}, rng.at("x"));
  const Layer layers[] = {cnn(1, 3, 16, rng.at("cnn")), cnn(2, 3, 16, rng.at("cnn")), rnn(16, rng.at("rnn")),
                          attention(16, rng.at("attention"))};
  Tensor maps = Tensor::empty({4, 5, 5});
  for (int64_t i = 0; i < 4; ++i)
    std::copy_n(influence(layers[i], x, rng.at("direction")).ptr(), 25, maps.mutable_ptr() + 25 * i);
  const std::vector<std::string> in = {"x₁", "x₂", "x₃", "x₄", "x₅"}, out = {"y₁", "y₂", "y₃", "y₄", "y₅"};
  page.draw("influence",
            heatmaps(maps, "input", "output", {"CNN, 1 layer", "CNN, 2 layers", "RNN", "self-attention"},
                     {.colours = {.low = 0, .high = 1}, .x_tokens = in, .y_tokens = out}),
            {"The size of the derivative of each output with respect to each input; in each panel the largest is 1.",
             "每个输出对每个输入的导数大小；每幅图中最大者为 1。"});
  const auto at = [&](int64_t map, int64_t i, int64_t j) { return maps.at({map, i, j}); };
  page.claim(at(0, 2, 0) == 0 && at(0, 2, 4) == 0 && at(1, 2, 0) > 0 && at(1, 2, 4) > 0 && at(1, 4, 0) == 0,
             {"After one layer of convolution the middle does not know the ends, after two it knows both; the last "
              "still does not know the first.",
              "一层卷积之后中间不知道两端，两层之后两端都知道；最后一个仍不知道第一个。"},
             fmt::format("dy3/dx1: {} then {:.2f}; dy5/dx1: {}", at(0, 2, 0), at(1, 2, 0), at(1, 4, 0)));
  bool before_only = true, everywhere = true;
  for (int64_t i = 0; i < 5; ++i)
    for (int64_t j = 0; j < 5; ++j) {
      before_only = before_only && (at(2, i, j) > 0) == (j <= i);
      everywhere = everywhere && at(3, i, j) > 0;
    }
  page.claim(before_only && everywhere,
             {"A recurrence hears what came before, and only that; one layer of self-attention hears everything.",
              "循环只听到之前的；一层自注意力听到全部。"},
             fmt::format("dy5/dx1: {:.3f} RNN, {:.2f} self-attention", at(2, 4, 0), at(3, 4, 0)));
}

void layers_needed(Page& page) {
  page.heading({"How many layers, how many steps", "要多少层、多少步"});
  page.say(
      {"With kernel $k$ a layer of convolution reaches $(k - 1) / 2$ tokens to each side. Layers are added until the "
       "gradient is there: until the middle token feels both ends, and until the last token feels the first.",
       "核为 $k$ 的一层卷积向两边各够到 $(k - 1) / 2$ 个词元。不断加层，直到梯度出现：直到中间的词元感到两端，以及直"
       "到最后一个词元感到第一个。"});
  page.say(
      {"One layer of recurrence is enough, but inside it the signal passes through every state. To count the links "
       "of this chain it is cut at one of them after the other (the state goes on as a constant): the cuts after "
       "which the last output feels the first input no more are the steps of the path.",
       "一层循环就够了，但信号在层内要经过每一个状态。为了数出这条链的环节，逐处切断它（状态作为常数传下去）：凡切断"
       "后最后的输出不再感到第一个输入的，就是路径上的一步。"});
  const Rng rng = Rng(page.seed()).at("layers");
  bool convolution = true, recurrence = true;
  std::vector<Series> lines = {{"RNN, steps", {}, {}, line_style("ro--")},
                               {"CNN, k = 3", {}, {}, line_style("go-")},
                               {"CNN, k = 5", {}, {}, line_style("mo-.")},
                               {"CNN, k = 9", {}, {}, line_style("ko:")},
                               {"self-attention", {}, {}, line_style("bo-")}};
  const auto put = [&](size_t line, int64_t n, int64_t layers) {
    lines[line].x.push_back(static_cast<double>(n)), lines[line].y.push_back(static_cast<double>(layers));
  };
  std::string met, chain;  // of the longest line
  for (int64_t n : {5, 9, 17, 33}) {
    const int64_t links = links_needed(n, rng.at("chain")),
                  own = layers_until(
                      n, n - 1, [&](int64_t layers) { return attention(4, rng.at("attention"), layers); }, rng);
    recurrence = recurrence && links == n - 1 && own == 1 && first_to_last(n, 0, rng.at("chain")) > 0;
    put(0, n, links), put(4, n, own);
    chain = fmt::format("n = {}: {} steps and {} layer", n, links, own);
    for (size_t k = 0; k < 3; ++k) {
      const int64_t kernel = std::array<int64_t, 3>{3, 5, 9}[k];
      const auto stack = [&](int64_t layers) { return cnn(layers, kernel, 4, rng.at("cnn")); };
      const int64_t middle = layers_until(n, n / 2, stack, rng), end = layers_until(n, n - 1, stack, rng);
      convolution =
          convolution && middle == rounded_up(n - 1, kernel - 1) && end == rounded_up(2 * (n - 1), kernel - 1);
      put(1 + k, n, end);
      if (kernel == 3) met = fmt::format("n = {}, k = 3: {} layers to the middle, {} from end to end", n, middle, end);
    }
  }
  page.draw(
      "layers-needed", curves(lines, {.label = "tokens n"}, {.label = "layers (RNN: steps), first to last", .low = 0}),
      {"How many layers it takes until the last token feels the first; for the recurrence, how many steps inside its one layer.",
       "要多少层最后一个词元才能感到第一个；对循环来说，是它那一层之内的步数。"});
  page.claim(
      convolution,
      {"A CNN needs $(n - 1) / (k - 1)$ layers to meet in the middle and twice that from end to end, rounded up: $O(n / k)$.",
       "卷积在中间相遇需要 $(n - 1) / (k - 1)$ 层，从一端到另一端为其两倍，向上取整：$O(n / k)$。"},
      met);
  page.claim(recurrence,
             {"A recurrence needs $n - 1$ steps, self-attention one layer, whatever $n$ is.",
              "循环需要 $n - 1$ 步；自注意力只需一层，与 $n$ 无关。"},
             chain);
}

void gradients_by_distance(Page& page) {
  page.heading({"What a long path does to a gradient", "长路径对梯度的影响"});
  page.say(
      {"64 tokens of width 32, layers as they begin, before any training: how much the last output feels each input, "
       "by its distance. The mean of eight draws.",
       "64 个宽 32 的词元，未经训练的层：最后一个输出对每个输入的感觉随距离的变化。取八次抽样的平均。"});
  const int64_t n = 64, d = 32, draws = 8;
  const size_t count = static_cast<size_t>(n);
  std::vector<double> distance,
      felt[3] = {std::vector<double>(count), std::vector<double>(count), std::vector<double>(count)};
  for (int64_t t = 0; t < n; ++t) distance.push_back(static_cast<double>(t));
  for (int64_t draw = 0; draw < draws; ++draw) {
    const Rng rng = Rng(page.seed()).at("distance").at(static_cast<uint64_t>(draw));
    const Tensor x = normal({1, n, d}, rng.at("x"));
    const Layer layers[] = {cnn(4, 9, d, rng.at("cnn")), rnn(d, rng.at("rnn")), attention(d, rng.at("attention"))};
    for (size_t l = 0; l < 3; ++l) {
      const auto sizes = felt_by(layers[l], x, n - 1, rng.at("direction"));
      for (size_t t = 0; t < count; ++t) felt[l][t] += sizes[count - 1 - t] / static_cast<double>(draws);
    }
  }
  const auto none_as_gap = [](std::vector<double> y) {
    for (double& v : y)
      if (v == 0) v = std::numeric_limits<double>::quiet_NaN();
    return y;
  };
  page.draw("gradient-by-distance",
            curves({{"CNN, 4 layers of kernel 9", distance, none_as_gap(felt[0]), line_style("g-.")},
                    {"RNN (GRU)", distance, none_as_gap(felt[1]), line_style("r--")},
                    {"self-attention", distance, none_as_gap(felt[2]), line_style("b-")}},
                   {.label = "distance from the last token"}, {.label = "gradient", .scale = AxisScale::log}),
            {"The recurrence forgets by a factor at every step, the convolution ends at its reach, self-attention "
             "does not know distance at all.",
             "循环每走一步就忘掉一个比例，卷积到其所及为止，自注意力根本不知道距离。"});
  const double kept = felt[1].back() / felt[1].front();
  const double flat =
      *std::min_element(felt[2].begin() + 1, felt[2].end()) / *std::max_element(felt[2].begin() + 1, felt[2].end());
  const size_t reach = 4 * (9 / 2);
  const bool ends = felt[0][reach] > 0 && felt[0][reach + 1] == 0;
  page.claim(
      kept < 1e-3 && ends && flat > 0.1,
      {"Over 63 tokens the GRU's gradient falls below a thousandth, the CNN's is exactly 0 beyond 16, and that of "
       "self-attention stays of one size.",
       "隔 63 个词元，GRU 的梯度降到千分之一以下，卷积的在 16 之外恰为 0，自注意力的则保持同一量级。"},
      fmt::format("GRU at 63 against 0: {}; CNN at 16: {}, at 17: 0; self-attention, smallest against largest: {:.2f}",
                  tiny(kept), tiny(felt[0][reach]), flat));
}

}  // namespace qkv::labs::self_attention
