// Lab 10.7: the parts of a Transformer, in shapes and values, and how many parameters they have.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/weights.h"
#include "qkv/core/check.h"
#include "qkv/labs/both.h"
#include "qkv/labs/transformer.h"
#include "qkv/models/transformer.h"
#include "qkv/ops/batch_norm.h"
#include "qkv/ops/norm.h"
#include "qkv/tensor/probe.h"

namespace qkv::labs::transformer {
namespace {

struct Shapes : Probe {
  std::vector<std::pair<std::string, Shape>> seen;
  void attention(std::string_view path, const Weights& w) override { seen.emplace_back(path, w.shape()); }
};

// The book's demos: width 24, hidden 48, 8 heads, dropout 0.5, a vocabulary of 200.
constexpr int64_t kWords = 200;
TransformerConfig demo() { return {.hidden = 24, .ffn = 48, .heads = 8, .layers = 2, .dropout = 0.5f}; }

Ids filled(const Shape& shape, int32_t id) {
  Ids out = Ids::empty(shape);
  std::fill_n(out.mutable_ptr(), out.numel(), id);
  return out;
}

// The largest |a - b| over the first `count` positions of row b of two (B, n, width).
double difference(const Tensor& a, const Tensor& b, int64_t row, int64_t begin, int64_t end) {
  double most = 0;
  for (int64_t i = (row * a.size(1) + begin) * a.size(2); i < (row * a.size(1) + end) * a.size(2); ++i)
    most = std::max(most, std::abs(static_cast<double>(a.ptr()[i]) - b.ptr()[i]));
  return most;
}

// The largest difference between a row of a matrix and its first row.
double apart(const Tensor& rows, int64_t row) {
  return largest_difference(rows.part(0, {rows.size(1)}), rows.part(row * rows.size(1), {rows.size(1)}));
}

struct Size {
  std::string part;
  int64_t count;
};

// Parameters by part: "encoder.embedding", "encoder.0.self", ..., "decoder.output"; norms of a block together.
std::vector<Size> sizes_of(const Transformer& model) {
  std::vector<Size> out;
  for (const NamedTensor& p : parameters(model)) {
    std::string part = p.name.substr(0, p.name.rfind('.'));
    if (const size_t to = part.find(".to_"); to != part.npos) part.resize(to);
    if (const size_t inner = part.find(".ffn."); inner != part.npos) part.resize(inner + 4);
    if (part.ends_with("_norm")) part = part.substr(0, part.rfind('.')) + ".norms";
    const auto at = std::find_if(out.begin(), out.end(), [&](const Size& s) { return s.part == part; });
    if (at == out.end())
      out.push_back({part, p.tensor.numel()});
    else
      at->count += p.tensor.numel();
  }
  return out;
}

}  // namespace

void feed_forward_step(Page& page) {
  page.heading({"A network for every position", "基于位置的前馈网络"});
  page.say(
      {"A Transformer has neither recurrence nor convolution. Positions meet in attention and nowhere else; between two "
       "attentions each position is worked on by itself, by a perceptron with one hidden layer that is the same for all:",
       "Transformer 既没有循环也没有卷积。各个位置只在注意力中相遇；两次注意力之间，每个位置各自经过一个单隐藏层感知机，所有位置共用："});
  page.formula("\\mathrm{FFN}(x) = W_2 \\max(0, W_1 x + b_1) + b_2");
  const FeedForward ffn(4, 4, 8, Rng(page.seed()).at("ffn"));
  const Tensor out = ffn(ones({2, 3, 4}));
  const Tensor first = out.part(0, {3, 8});
  page.print("FFN 4 -> 4 -> 8 on ones (2, 3, 4), first sentence:\n" + shown(first, 3));
  page.claim(apart(first, 1) == 0 && apart(first, 2) == 0,
             {"Three equal inputs give three identical rows.", "三个相同的输入给出三行相同的输出。"},
             fmt::format("rows 1 and 2 differ from row 0 by {}", std::max(apart(first, 1), apart(first, 2))));
  Tensor changed = ones({2, 3, 4});
  for (int64_t i = 4; i < 8; ++i) changed.mutable_ptr()[i] = i % 2 ? 3.0f : -2.0f;
  const Tensor other = ffn(changed);
  const double here = difference(out, other, 0, 1, 2),
               elsewhere = std::max(difference(out, other, 0, 0, 1), difference(out, other, 0, 2, 3));
  page.claim(
      elsewhere == 0 && here > 0,
      {"Another word at position 1 changes nothing at positions 0 and 2.", "改变位置 1 的词，位置 0 与 2 的输出不变。"},
      fmt::format("position 1 changes by {:.3f}, the others by {}", here, elsewhere));
}

void norm_step(Page& page) {
  page.heading({"Layer norm against batch norm", "层规范化与批量规范化"});
  page.say(
      {"Batch norm brings each **feature** to mean 0 and variance 1 over the batch, layer norm each **row** over its "
       "features. In a batch of sentences of different lengths the first would mix sentences with each other and with "
       "padding; the second needs nothing but the row itself.",
       "批量规范化让每个**特征**在批量上均值为 0、方差为 1；层规范化让每一**行**在自己的特征上如此。"
       "句子长短不一，前者会把不同句子连同填充混在一起，后者只需要这一行本身。"});
  page.formula("\\mathrm{LN}(x) = \\gamma \\odot \\frac{x - \\mu}{\\sqrt{\\sigma^2 + \\epsilon}} + \\beta");
  const Tensor x({2, 2}, {1, 2, 2, 3});
  const auto layer = [](const Tensor& in, float eps = kNormEps) { return layer_norm(in, ones({2}), zeros({2}), eps); };
  const auto batch = [](const Tensor& in) { return batch_norm(in, ones({2}), zeros({2})); };
  page.print("X            [[1, 2], [2, 3]]\nlayer norm\n" + shown(layer(x), 5) + "\nbatch norm\n" +
             shown(batch(x), 5));
  page.fact({"Layer norm: -1 and 1 in every row. Batch norm: -1 in the first row, 1 in the second.",
             "层规范化：每行都是 -1 与 1。批量规范化：第一行为 -1，第二行为 1。"},
            fmt::format("±{:.5f}", layer(x).ptr()[1]));
  page.say(both(
      "The variance is 1/4 here, so it is not exactly 1: $1 / \\sqrt{{1 + 4 \\epsilon}}$ is {:.5f} with $\\epsilon = 10^{{-5}}$, "
      "and {:.6f} with Keras's $10^{{-3}}$.",
      "这里方差为 1/4，所以结果不正好是 1：$1 / \\sqrt{{1 + 4 \\epsilon}}$ 在 $\\epsilon = 10^{{-5}}$ 时为 {:.5f}，在 Keras 的 "
      "$10^{{-3}}$ 下为 {:.6f}。",
      layer(x).ptr()[1], layer(x, 1e-3f).ptr()[1]));
  const Tensor mate({2, 2}, {1, 2, 9, -4});
  const double by_layer = difference(layer(x).viewed({1, 2, 2}), layer(mate).viewed({1, 2, 2}), 0, 0, 1),
               by_batch = difference(batch(x).viewed({1, 2, 2}), batch(mate).viewed({1, 2, 2}), 0, 0, 1);
  page.claim(by_layer == 0 && by_batch > 0.5,
             {"With another second row, layer norm leaves the first as it was; batch norm does not.",
              "换掉第二行，层规范化的第一行不变，批量规范化的第一行改变。"},
             fmt::format("the first row changes by {} with layer norm, by {:.2f} with batch norm", by_layer, by_batch));
}

void add_norm_step(Page& page) {
  page.heading({"Add and norm", "残差连接与规范化"});
  page.say(
      {"Every sublayer $f$, attention or FFN, is wrapped in the same way: its output, with dropout, is added to its input, and the sum is "
       "normalised. Input and output must have one shape, so the width is the same from the first block to the last.",
       "每个子层 $f$（注意力或前馈网络）都用同样的方式包起来：输出经暂退后加到输入上，再对和作规范化。"
       "输入与输出形状必须相同，所以从第一块到最后一块宽度不变。"});
  page.formula("\\mathrm{AddNorm}(x, f(x)) = \\mathrm{LN}(x + \\mathrm{dropout}(f(x)))");
  const LayerNorm norm(4);
  const Rng rng = Rng(page.seed()).at("add-norm");
  const Tensor x = normal({2, 3, 4}, rng.at("x")), y = normal({2, 3, 4}, rng.at("y"));
  const Tensor written = norm(x, y, 0.5f, Run{}),
               drawn = norm(x, y, 0.5f, Run{.training = true, .rng = rng.at("dropout")});
  Tensor sum = x.copied();
  for (int64_t i = 0; i < sum.numel(); ++i) sum.mutable_ptr()[i] += y.ptr()[i];
  const double off = largest_difference(written, norm(sum));
  page.claim(
      written.shape() == Shape{2, 3, 4} && off < 1e-6 && largest_difference(written, drawn) > 0.1,
      {"The shape stays (2, 3, 4); without training it is the norm of the sum, in training dropout 0.5 changes it.",
       "形状仍为 (2, 3, 4)；推断时它就是和的规范化，训练时 0.5 的暂退使它改变。"},
      fmt::format("it differs from the norm of the sum by {}, in training by {:.2f}", tiny(off),
                  largest_difference(written, drawn)));
  page.say({"The book's toy example normalises its last two axes together; its model, like ours, the last alone.",
            "书中的小例子把最后两个轴一起规范化；书中的模型与这里一样，只规范化最后一个轴。"});
}

void encoder_step(Page& page) {
  page.heading({"The encoder", "编码器"});
  page.say(
      {"An encoder block is self-attention, then the FFN, both with add and norm. The encoder multiplies the embeddings by $\\sqrt{d}$, so "
       "that the positional encoding, whose values lie between -1 and 1, does not drown them, adds the positions, and stacks blocks.",
       "编码器块是自注意力加前馈网络，都带残差与规范化。编码器把嵌入乘以 $\\sqrt{d}$，"
       "免得被取值在 -1 与 1 之间的位置编码淹没，再加上位置编码，然后堆叠若干块。"});
  page.formula(
      "X_0 = \\sqrt{d} E + P, \\quad Y = \\mathrm{AddNorm}(X, \\mathrm{MHA}(X, X, X)), \\quad X' = \\mathrm{AddNorm}(Y, \\mathrm{FFN}(Y))");
  const Rng rng = Rng(page.seed()).at("encoder");
  const Ids lens({2}, {3, 2});
  const TransformerBlock block(demo(), Cross::no, rng.at("block"));
  const Tensor one = block(ones({2, 100, 24}), Mask::valid_lens(lens), Run{});
  const TransformerEncoder encoder(demo(), kWords, rng.at("stack"));
  Shapes seen;
  const Ids ids = filled({2, 100}, 1);
  const Tensor all = encoder(ids, lens, Run{.probe = &seen});
  std::string out = text("width 24, hidden 48, 8 heads, lengths [3, 2]\n", "block    ones (2, 100, 24)        -> ",
                         one.shape(), "\nencoder  2 blocks, ids (2, 100)  -> ", all.shape());
  for (const auto& [path, shape] : seen.seen) out += text("\nweights  ", path, "  ", shape);
  page.print(out);
  page.fact({"Block and encoder keep the shape; each block has weights for 8 heads.",
             "块与编码器都保持形状；每块有 8 个头的权重。"},
            text("outputs ", all.shape(), ", weights ", seen.seen[1].second));
  Ids other = filled({2, 100}, 1);
  for (int64_t i = 3; i < 100; ++i) other.mutable_ptr()[i] = static_cast<int32_t>(2 + i);
  const Tensor padded = encoder(other, lens, Run{});
  const double inside = difference(all, padded, 0, 0, 3), beyond = difference(all, padded, 0, 3, 100);
  page.claim(inside == 0 && beyond > 0,
             {"Other tokens beyond the valid length of 3 leave the first three positions as they were, to the bit. The "
              "positions beyond are computed too, and nobody reads them.",
              "有效长度 3 之后换成别的词元，前三个位置逐位不变。之后的位置也会计算，但没有人读它们。"},
             fmt::format("the first three change by {}, those beyond by up to {:.2f}", inside, beyond));
}

void decoder_step(Page& page) {
  page.heading({"The decoder", "解码器"});
  page.say(
      {"A decoder block has three sublayers: **masked** self-attention over the target so far, attention to the "
       "encoder's outputs (queries from the decoder, keys and values from the encoder: the place of Bahdanau's "
       "attention), and the FFN. A linear layer makes scores for the next word.",
       "解码器块有三个子层：对已写出的目标作**掩蔽**自注意力；对编码器输出作注意力（查询来自解码器，键和值来自编码器，"
       "相当于 Bahdanau 注意力的位置）；前馈网络。最后由线性层给出下一个词的分数。"});
  const Rng rng = Rng(page.seed()).at("decoder");
  const Ids lens({2}, {3, 2});
  const TransformerBlock below(demo(), Cross::no, rng.at("encoder"));
  const TransformerBlock block(demo(), Cross::yes, rng.at("block"));
  const Tensor x = ones({2, 100, 24}), memory = below(x, Mask::valid_lens(lens), Run{});
  const Tensor one = block(x, Mask::causal(), block.cross->project(memory, memory), Mask::valid_lens(lens), Run{});
  const Transformer model(demo(), {kWords, kWords}, rng.at("model"));
  Shapes seen;
  const Tensor logits = model.logits(filled({2, 100}, 1), lens, filled({2, 7}, 1), Run{.probe = &seen});
  std::string out =
      text("block  ones (2, 100, 24) -> ", one.shape(), "\nmodel  source (2, 100), target (2, 7) -> ", logits.shape());
  for (const auto& [path, shape] : seen.seen) out += fmt::format("\n       {:<15} {}", path, text(shape));
  page.print(out);
  page.fact(
      both(
          "The block keeps the shape; the model scores 200 words at each of 7 positions and attends {} times on the way.",
          "块保持形状；模型在 7 个位置各给 200 个词打分，其间共作 {} 次注意力。", seen.seen.size()),
      text("block ", one.shape(), ", scores ", logits.shape()));
}

void sizes_step(Page& page) {
  page.heading({"How large it is", "模型有多大"});
  const Transformer model({.hidden = 32, .ffn = 64, .layers = 2}, {184, 201}, Rng(page.seed()).at("sizes"));
  std::string out;
  int64_t encoder = 0, decoder = 0;
  for (const Size& s : sizes_of(model)) {
    out += fmt::format("{:<20} {:>7}\n", s.part, grouped(s.count));
    (s.part.starts_with("encoder") ? encoder : decoder) += s.count;
  }
  page.say(
      {"At the book's sizes: vocabularies 184 and 201, width 32, two layers, 4 heads of 8 features, 64 hidden units. "
       "Attention has four matrices of 32 × 32 and no biases; the number of heads does not matter to it.",
       "按书中的大小：词表 184 与 201，宽 32，两层，4 个头各 8 个特征，64 个隐藏单元。"
       "每个注意力有四个 32 × 32 的矩阵，无偏置；参数量与头数无关。"});
  page.print(out + fmt::format("{:<20} {:>7}", "all", grouped(encoder + decoder)));
  page.fact(both("The book's model has {} parameters.", "书中的模型共有 {} 个参数。", grouped(encoder + decoder)),
            fmt::format("{} in the encoder, {} in the decoder", grouped(encoder), grouped(decoder)));
  const int64_t english = count_parameters(Transformer({.hidden = 256, .ffn = 64, .layers = 2}, {194, 214}, Rng(0)));
  page.fact(both("The English edition's model, 256 wide with vocabularies of 194 and 214, has {}.",
                 "英文版的模型宽 256、词表 194 与 214，共 {} 个参数。", grouped(english)));
}

}  // namespace qkv::labs::transformer
