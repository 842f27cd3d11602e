// Lab 10.4: the encoder, the decoder without attention and the one with it, in shapes and sizes; the masked loss.
#include <fmt/format.h>

#include <cmath>

#include "qkv/attention/weights.h"
#include "qkv/core/check.h"
#include "qkv/labs/bahdanau.h"
#include "qkv/labs/both.h"
#include "qkv/labs/show.h"
#include "qkv/models/seq2seq.h"
#include "qkv/ops/loss.h"
#include "qkv/tensor/probe.h"

namespace qkv::labs::bahdanau {
namespace {

// The book's demo: ten words, embeddings of 8, two layers of 16.
Seq2Seq demo(ScorerKind attention, const Rng& rng) {
  return Seq2Seq({.embed = 8, .hidden = 16, .layers = 2, .dropout = 0, .attention = attention}, {10, 10}, rng);
}

Ids zero_ids() {
  Ids x = Ids::empty({4, 7});
  std::fill_n(x.mutable_ptr(), x.numel(), 0);
  return x;
}

struct LastWeights : Probe {
  Tensor weights;
  void attention(std::string_view, const Weights& w) override { weights = w.matrix(); }
};

// Parameters by part of the model at the book's sizes: the names before the second dot.
struct Sizes {
  std::vector<std::pair<std::string, int64_t>> parts;
  int64_t total = 0;
};

Sizes book_sizes(ScorerKind attention) {
  Seq2Seq model({.embed = 32, .hidden = 32, .layers = 2, .attention = attention}, {184, 201}, Rng(0));
  Sizes out;
  const Parameters parameters = flatten(model);
  for (const auto& entry : parameters.entries()) {
    const size_t dot = entry.name.find('.');
    const std::string part =
        entry.name.starts_with("output") ? "output" : entry.name.substr(0, entry.name.find('.', dot + 1));
    if (out.parts.empty() || out.parts.back().first != part) out.parts.emplace_back(part, 0);
    out.parts.back().second += entry.shape.numel();
    out.total += entry.shape.numel();
  }
  return out;
}

std::string listed(const Sizes& sizes) {
  std::string out;
  for (const auto& [part, count] : sizes.parts) out += fmt::format("{:<20} {:>7}\n", part, grouped(count));
  return out + fmt::format("{:<20} {:>7}", "all", grouped(sizes.total));
}

// X (B, L): what lies at or beyond a row's length becomes 0.
Tensor sequence_mask(Tensor x, const Ids& lengths) {
  x = x.copied();
  for (int64_t b = 0; b < x.size(0); ++b)
    for (int64_t i = lengths.ptr()[b]; i < x.size(1); ++i) x.mutable_ptr()[b * x.size(1) + i] = 0;
  return x;
}

}  // namespace

void baseline_step(Page& page) {
  page.heading({"The baseline: all of a sentence in one vector (9.6, 9.7)", "基线：整句压进一个向量（9.6、9.7）"});
  page.say(
      {"An **encoder** reads the source with a recurrent network, $h_t = f(x_t, h_{t-1})$. A **decoder** starts from its last state and "
       "writes the target word by word. It is told the encoder's last state $c = h_T$ again in every step, but that is all it ever learns "
       "about the source (the **context variable**): a sentence of three words and one of sixteen have to fit into the same vector.",
       "**编码器**用循环网络读入源句，$h_t = f(x_t, h_{t-1})$。**解码器**从它的最后状态出发，逐词写出目标句。每一步都会再次得到编码器的最后"
       "状态 $c = h_T$，但关于源句它所知仅此而已（**上下文变量**）：三个词的句子和十六个词的句子要装进同样大的向量。"});
  page.formula(
      "s_{t'} = g(y_{t'-1}, c, s_{t'-1}), \\quad P(y_{t'} \\mid y_1 \\ldots y_{t'-1}, x) = \\mathrm{softmax}(W s_{t'} + b)");
  const Seq2Seq model = demo(ScorerKind::none, Rng(page.seed()).at("baseline"));
  const Ids x = zero_ids();
  const Tensor logits = model.logits(x, {}, x, Run{});
  const auto state = model.start(x, {}, Run{});
  page.print(text("vocabulary 10, embed 8, hidden 16, 2 layers, X zeros (4, 7)\n", "context  ", state.context.shape(),
                  "\nstate    ", state.layers.size(), " layers of ", state.layers[0].h.shape(), "\noutput   ",
                  logits.shape()));
  page.fact({"A batch of 4 sentences of 7 words gives scores for 10 words in every place.",
             "4 句、每句 7 词的批量，在每个位置给出 10 个词的分数。"},
            text("scores ", logits.shape()));
  const Sizes sizes = book_sizes(ScorerKind::none);
  page.say({"At the book's sizes (vocabularies 184 and 201, width 32, two layers):",
            "按书中的大小（词表 184 与 201，宽 32，两层）："});
  page.print(listed(sizes));
  page.fact(both("The baseline has {} parameters.", "基线模型有 {} 个参数。", grouped(sizes.total)));
  page.say(
      {"The book's decoder takes $c$ from the state that it is passed. In training that is the encoder's last; when it translates, it is "
       "the decoder's own, so the context drifts away from the source. Here $c$ stays $h_T$ in both, as in the English edition.",
       "书中的解码器从传入的状态中取 $c$。训练时那是编码器的最后状态；翻译时却是解码器自己的状态，上下文便渐渐偏离源句。这里两种情形中 $c$ "
       "都是 $h_T$，与英文版一致。"});
}

void attention_step(Page& page) {
  page.heading({"Attention: another look in every step", "注意力：每一步都再看一遍"});
  page.say(
      {"Bahdanau, Cho and Bengio (2015) let the decoder choose. The query is its state before the step, keys and values are the encoder's "
       "states at all words, and the context becomes a weighted mean that is new in every step:",
       "Bahdanau、Cho 与 Bengio（2015）让解码器自己选择。查询是它在这一步之前的状态，键和值是编码器在所有词上的状态，"
       "上下文成为每一步都重新计算的加权平均："});
  page.formula(
      "c_{t'} = \\sum_{t=1}^{T} \\alpha(s_{t'-1}, h_t) h_t, \\quad \\alpha = \\mathrm{softmax}_t(w_v^\\top \\tanh(W_q "
      "s_{t'-1} + W_k h_t))");
  const Seq2Seq model = demo(ScorerKind::additive, Rng(page.seed()).at("attention"));
  const Ids x = zero_ids();
  LastWeights seen;
  const Tensor logits = model.logits(x, {}, x, Run{.probe = &seen});
  const auto state = model.start(x, {}, Run{});
  page.print(text("vocabulary 10, embed 8, hidden 16, 2 layers, X zeros (4, 7)\n", "encoder states  ",
                  state.values.shape(), "\nstate           ", state.layers.size(), " layers of ",
                  state.layers[0].h.shape(), "\nweights         ", seen.weights.viewed({4, 7, 7}).shape(),
                  "\noutput          ", logits.shape()));
  double off = 0;
  for (int64_t row = 0; row < 28; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 7; ++i) sum += seen.weights.ptr()[row * 7 + i];
    off = std::max(off, std::abs(sum - 1));
  }
  page.fact({"The same output shape; beside it, for each target word, weights over the source words that sum to 1.",
             "输出形状相同；此外每个目标词对各源词有一组和为 1 的权重。"},
            text("weights ", seen.weights.viewed({4, 7, 7}).shape(), ", sums off by at most ", tiny(off)));
  const Sizes sizes = book_sizes(ScorerKind::additive);
  page.print(listed(sizes));
  const int64_t more = sizes.total - book_sizes(ScorerKind::none).total;
  page.fact(both("Attention adds two matrices of 32 × 32 and a vector of 32: {} parameters, {} in all.",
                 "注意力增加两个 32 × 32 的矩阵和一个 32 维向量：{} 个参数，共 {} 个。", grouped(more),
                 grouped(sizes.total)));
}

void masked_loss_step(Page& page) {
  page.heading({"A loss that does not see the padding", "看不见填充的损失"});
  page.say({"Padding is there to fill the array; nobody wants it predicted. Its places are masked:",
            "填充只为补齐数组，没有人要预测它。它的位置被掩蔽："});
  const Tensor demo_rows({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor masked = sequence_mask(demo_rows, Ids({2}, {1, 2}));
  page.print("sequence_mask([[1, 2, 3], [4, 5, 6]], lengths [1, 2])\n" + shown(masked));
  page.fact({"Beyond its length a row is 0.", "超出有效长度的部分为 0。"});
  page.say(
      {"For the loss: cross-entropy at every place, times 0 or 1, then the mean over **all** places of the row. Three equal rows of equal "
       "scores for ten words, lengths 4, 2 and 0:",
       "损失：每个位置的交叉熵乘以 0 或 1，再对该行**所有**位置求平均。三行相同、十个词分数都相等，有效长度 4、2、0："});
  constexpr int32_t kPad = 1;
  const Tensor logits = ones({3, 4, 10});
  const std::vector<int32_t> lengths = {4, 2, 0};
  Ids targets = Ids::empty({3, 4});
  for (int64_t i = 0; i < 12; ++i) targets.mutable_ptr()[i] = i % 4 < lengths[static_cast<size_t>(i / 4)] ? 5 : kPad;
  const Tensor each = cross_entropy(logits, targets, {.ignore_id = kPad, .reduction = Reduction::none});
  std::vector<double> loss(3, 0);
  for (int64_t i = 0; i < 12; ++i) loss[static_cast<size_t>(i / 4)] += each.ptr()[i] / 4.0;
  page.print(fmt::format("{:.4f}  {:.4f}  {:.4f}", loss[0], loss[1], loss[2]));
  page.fact({"$\\ln 10$, half of it, and nothing.", "$\\ln 10$、它的一半、零。"},
            fmt::format("ln 10 = {:.4f}", std::log(10)));
  page.say(
      {"The book reports the sum of these over an epoch, divided by the number of real tokens. As every row was divided by its 10 places, "
       "a printed 0.030 is 0.30 nats per token: perplexity 1.35. Losses here are in nats per token unless the book's unit is named.",
       "书中报告的是一轮中这些值之和除以真实词元数。由于每行已除以 10 个位置，打印的 0.030 相当于每词元 0.30 奈特，即困惑度 1.35。除非注明"
       "书中的单位，这里的损失都以每词元奈特计。"});
}

}  // namespace qkv::labs::bahdanau
