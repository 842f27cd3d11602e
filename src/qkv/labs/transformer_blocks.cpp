// Lab 10.7: the parts of a Transformer, in shapes and values, and how many parameters they have.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/weights.h"
#include "qkv/core/check.h"
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
  page.heading(tr("A network for every position"));
  page.say(tr(
      "A Transformer has neither recurrence nor convolution. Positions interact in attention and nowhere else; between "
      "two attentions each position is processed separately, by a perceptron with one hidden layer that is the same "
      "for all:"));
  page.formula("\\mathrm{FFN}(x) = W_2 \\max(0, W_1 x + b_1) + b_2");
  const FeedForward ffn(4, 4, 8, Rng(page.seed()).at("ffn"));
  const Tensor out = ffn(ones({2, 3, 4}));
  const Tensor first = out.part(0, {3, 8});
  page.print(tr("FFN 4 -> 4 -> 8 on ones (2, 3, 4), first sentence:\n{rows}", "rows"_a = shown(first, 3)));
  page.claim(apart(first, 1) == 0 && apart(first, 2) == 0, tr("Three equal inputs give three identical rows."),
             tr("rows 1 and 2 differ from row 0 by {difference}",
                "difference"_a = std::max(apart(first, 1), apart(first, 2))));
  Tensor changed = ones({2, 3, 4});
  for (int64_t i = 4; i < 8; ++i) changed.mutable_ptr()[i] = i % 2 ? 3.0f : -2.0f;
  const Tensor other = ffn(changed);
  const double here = difference(out, other, 0, 1, 2),
               elsewhere = std::max(difference(out, other, 0, 0, 1), difference(out, other, 0, 2, 3));
  page.claim(
      elsewhere == 0 && here > 0, tr("A different word at position 1 changes nothing at positions 0 and 2."),
      tr("position 1 changes by {here:.3f}, the others by {elsewhere}", "here"_a = here, "elsewhere"_a = elsewhere));
}

void norm_step(Page& page) {
  page.heading(tr("Layer norm against batch norm"));
  page.say(tr(
      "Batch norm normalises each **feature** to mean 0 and variance 1 over the batch, layer norm each **row** over "
      "its features. In a batch of sentences of different lengths, batch norm would mix sentences with each other and "
      "with padding; layer norm needs only the row itself."));
  page.formula("\\mathrm{LN}(x) = \\gamma \\odot \\frac{x - \\mu}{\\sqrt{\\sigma^2 + \\epsilon}} + \\beta");
  const Tensor x({2, 2}, {1, 2, 2, 3});
  const auto layer = [](const Tensor& in, float eps = kNormEps) { return layer_norm(in, ones({2}), zeros({2}), eps); };
  const auto batch = [](const Tensor& in) { return batch_norm(in, ones({2}), zeros({2})); };
  page.print(tr("X            [[1, 2], [2, 3]]\nlayer norm\n{layer}\nbatch norm\n{batch}",
                "layer"_a = shown(layer(x), 5), "batch"_a = shown(batch(x), 5)));
  page.fact(tr("Layer norm: -1 and 1 in every row. Batch norm: -1 in the first row, 1 in the second."),
            fmt::format("±{:.5f}", layer(x).ptr()[1]));
  page.say(
      tr("The variance is 1/4 here, so the values are not exactly 1: $1 / \\sqrt{1 + 4 \\epsilon}$ is {value:.5f} with "
         "$\\epsilon = 10^{-5}$, and {keras:.6f} with Keras's $10^{-3}$.",
         "value"_a = layer(x).ptr()[1], "keras"_a = layer(x, 1e-3f).ptr()[1]));
  const Tensor mate({2, 2}, {1, 2, 9, -4});
  const double by_layer = difference(layer(x).viewed({1, 2, 2}), layer(mate).viewed({1, 2, 2}), 0, 0, 1),
               by_batch = difference(batch(x).viewed({1, 2, 2}), batch(mate).viewed({1, 2, 2}), 0, 0, 1);
  page.claim(by_layer == 0 && by_batch > 0.5,
             tr("With a different second row, layer norm leaves the first unchanged; batch norm does not."),
             tr("the first row changes by {by_layer} with layer norm, by {by_batch:.2f} with batch norm",
                "by_layer"_a = by_layer, "by_batch"_a = by_batch));
}

void add_norm_step(Page& page) {
  page.heading(tr("Add and norm"));
  page.say(tr(
      "Every sublayer $f$, attention or FFN, is wrapped in the same way: its output, with dropout, is added to its "
      "input, and the sum is normalised. Input and output must have the same shape, so the width is the same from the "
      "first block to the last."));
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
      tr("The shape stays (2, 3, 4); outside training the result is the norm of the sum, in training dropout 0.5 "
         "changes it."),
      tr("it differs from the norm of the sum by {off}, in training by {training:.2f}", "off"_a = tiny(off),
         "training"_a = largest_difference(written, drawn)));
  page.say(tr("The book's toy example normalises its last two axes together; its model, like ours, only the last."));
}

void encoder_step(Page& page) {
  page.heading(tr("The encoder"));
  page.say(tr(
      "An encoder block is self-attention, then the FFN, both with add and norm. The encoder multiplies the embeddings "
      "by $\\sqrt{d}$, so that the positional encoding, whose values lie between -1 and 1, does not drown them out, "
      "adds the positions, and stacks blocks."));
  page.formula(
      "X_0 = \\sqrt{d} E + P, \\quad Y = \\mathrm{AddNorm}(X, \\mathrm{MHA}(X, X, X)), \\quad X' = "
      "\\mathrm{AddNorm}(Y, \\mathrm{FFN}(Y))");
  const Rng rng = Rng(page.seed()).at("encoder");
  const Ids lens({2}, {3, 2});
  const TransformerBlock block(demo(), Cross::no, rng.at("block"));
  const Tensor one = block(ones({2, 100, 24}), Mask::valid_lens(lens), Run{});
  const TransformerEncoder encoder(demo(), kWords, rng.at("stack"));
  Shapes seen;
  const Ids ids = filled({2, 100}, 1);
  const Tensor all = encoder(ids, lens, Run{.probe = &seen});
  std::vector<Text> out = {
      tr("width 24, hidden 48, 8 heads, lengths [3, 2]\n"
         "block    ones (2, 100, 24)        -> {block}\n"
         "encoder  2 blocks, ids (2, 100)  -> {encoder}",
         "block"_a = one.shape(), "encoder"_a = all.shape())};
  for (const auto& [path, shape] : seen.seen)
    out.push_back(tr("weights  {path}  {shape}", "path"_a = path, "shape"_a = shape));
  page.print(in_lines(out));
  page.fact(tr("Block and encoder keep the shape; each block has weights for 8 heads."),
            tr("outputs {outputs}, weights {weights}", "outputs"_a = all.shape(), "weights"_a = seen.seen[1].second));
  Ids other = filled({2, 100}, 1);
  for (int64_t i = 3; i < 100; ++i) other.mutable_ptr()[i] = static_cast<int32_t>(2 + i);
  const Tensor padded = encoder(other, lens, Run{});
  const double inside = difference(all, padded, 0, 0, 3), beyond = difference(all, padded, 0, 3, 100);
  page.claim(
      inside == 0 && beyond > 0,
      tr("Different tokens beyond the valid length of 3 leave the first three positions unchanged, to the bit. The "
         "positions beyond are computed too, but never used."),
      tr("the first three change by {inside}, those beyond by up to {beyond:.2f}", "inside"_a = inside,
         "beyond"_a = beyond));
}

void decoder_step(Page& page) {
  page.heading(tr("The decoder"));
  page.say(
      tr("A decoder block has three sublayers: **masked** self-attention over the target so far, attention to the "
         "encoder's outputs (queries from the decoder, keys and values from the encoder: this takes the place of "
         "Bahdanau's attention), and the FFN. A linear layer computes scores for the next word."));
  const Rng rng = Rng(page.seed()).at("decoder");
  const Ids lens({2}, {3, 2});
  const TransformerBlock below(demo(), Cross::no, rng.at("encoder"));
  const TransformerBlock block(demo(), Cross::yes, rng.at("block"));
  const Tensor x = ones({2, 100, 24}), memory = below(x, Mask::valid_lens(lens), Run{});
  const Tensor one = block(x, Mask::causal(), block.cross->project(memory, memory), Mask::valid_lens(lens), Run{});
  const Transformer model(demo(), {kWords, kWords}, rng.at("model"));
  Shapes seen;
  const Tensor logits = model.logits(filled({2, 100}, 1), lens, filled({2, 7}, 1), Run{.probe = &seen});
  std::vector<Text> out = {
      tr("block  ones (2, 100, 24) -> {block}\n"
         "model  source (2, 100), target (2, 7) -> {model}",
         "block"_a = one.shape(), "model"_a = logits.shape())};
  for (const auto& [path, shape] : seen.seen) out.emplace_back(fmt::format("       {:<15} {}", path, text(shape)));
  page.print(in_lines(out));
  page.fact(
      tr("The block keeps the shape; the model scores 200 words at each of 7 positions and attends {times} times on "
         "the way.",
         "times"_a = seen.seen.size()),
      tr("block {block}, scores {scores}", "block"_a = one.shape(), "scores"_a = logits.shape()));
}

void sizes_step(Page& page) {
  page.heading(tr("How large it is"));
  const Transformer model({.hidden = 32, .ffn = 64, .layers = 2}, {184, 201}, Rng(page.seed()).at("sizes"));
  std::vector<Text> out;
  int64_t encoder = 0, decoder = 0;
  for (const Size& s : sizes_of(model)) {
    out.emplace_back(fmt::format("{:<20} {:>7}", s.part, grouped(s.count)));
    (s.part.starts_with("encoder") ? encoder : decoder) += s.count;
  }
  page.say(
      tr("At the book's sizes: vocabularies 184 and 201, width 32, two layers, 4 heads of 8 features, 64 hidden units. "
         "Attention has four matrices of 32 × 32 and no biases; the number of heads does not change that."));
  out.push_back(tr("all                  {count:>7}", "count"_a = grouped(encoder + decoder)));
  page.print(in_lines(out));
  page.fact(tr("The book's model has {total} parameters.", "total"_a = grouped(encoder + decoder)),
            tr("{encoder} in the encoder, {decoder} in the decoder", "encoder"_a = grouped(encoder),
               "decoder"_a = grouped(decoder)));
  page.beside_the_book(tr("parameters of the Transformer"), "60,937", grouped(encoder + decoder));
  const int64_t english = count_parameters(Transformer({.hidden = 256, .ffn = 64, .layers = 2}, {194, 214}, Rng(0)));
  page.fact(tr("The English edition's model, 256 wide with vocabularies of 194 and 214, has {total}.",
               "total"_a = grouped(english)));
  page.beside_the_book(tr("parameters of the English edition's Transformer"), "1,869,782", grouped(english));
}

}  // namespace qkv::labs::transformer
