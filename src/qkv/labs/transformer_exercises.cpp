// Lab 10.7: exercises by experiment. More layers, additive attention, norms before the sublayers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/multi_head.h"
#include "qkv/core/parallel.h"
#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/both.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/labs/transformer.h"
#include "qkv/ops/loss.h"

namespace qkv::labs::transformer {
namespace {

std::vector<Text> head(const Page& page) {
  return {
      {"", ""},
      {"parameters", "参数"},
      {"ms per step", "毫秒/步"},
      page.data().empty() ? Text{"training loss", "训练损失"} : Text{"training loss (book's)", "训练损失（书中单位）"},
      page.data().empty() ? Text{"nats, held out", "奈特（留出）"} : Text{"nats, training", "奈特（训练）"},
      {"d2l-bleu", "d2l-bleu"}};
}

std::vector<std::string> measures(Page& page, const Trained& t) {
  const SentencePairs& judge = judged(page, Judge::exercises);
  return {grouped(t.run.model().parameters().count()), rounded(1e3 * t.step_seconds, 2), rounded(t.losses.back(), 3),
          rounded(forced_loss(t, judge), 3),
          rounded(quality(page, Judge::exercises, translate(t, judge.source)).bleu, 3)};
}

Series curve(const std::string& name, const Trained& t, std::string_view format) {
  return {name, t.epochs, t.losses, line_style(format)};
}

// Processor time of one forward and backward pass through an attention of width 32 with 4 heads over so many positions,
// additive and scaled dot product, measured in turn so that what else the machine does falls on both.
std::pair<double, double> attention_seconds(int64_t length, const Rng& rng) {
  const SerialScope serial;
  const Tensor x = normal({1, length, 32}, rng.at("x"));
  const MultiHead additive({.width = 32, .heads = 4, .scorer = ScorerKind::additive}, rng.at("heads")),
      dot({.width = 32, .heads = 4, .scorer = ScorerKind::scaled_dot}, rng.at("heads"));
  const auto once = [&](const MultiHead& heads) {
    return thread_seconds([&] {
      Tape tape;
      const Tensor y = heads(x, x, x, Mask::none(), Run{.training = true});
      tape.backward(y, ones(y.shape()));
    });
  };
  double a = 1e9, d = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) a = std::min(a, once(additive)), d = std::min(d, once(dot));
  return {a, d};
}

// The length of the loss's gradient by the parameters of every decoder block of a model that has not been trained.
std::vector<double> gradient_by_block(const Trained& like, NormPlace place, const TranslationBatch& b, const Rng& rng) {
  TransformerConfig config = network(like).config;
  config.norm = place;
  config.layers = 12;
  config.decoder_layers.reset();
  const Transformer model(config, like.run.tokenizers().sizes(), rng);
  Tape tape;
  tape.backward(cross_entropy(model.logits(b.source, b.source_lens, b.target_in, Run{}), b.target_out,
                              {.ignore_id = like.run.tokenizers().target.pad()}));
  std::vector<double> out;
  for (const TransformerBlock& block : model.decoder.stack.blocks) {
    double sum = 0;
    for (const NamedTensor& p : parameters(block)) sum += std::pow(length_of(tape.grad(p.tensor)), 2);
    out.push_back(std::sqrt(sum));
  }
  return out;
}

}  // namespace

void depth_step(Page& page) {
  page.heading({"Exercise 10.7.1 (English edition 11.7.1): a deeper Transformer",
                "练习 10.7.1（英文版 11.7.1）：更深的 Transformer"});
  const Trained &one = trained(page, Kind::one_layer), &two = trained(page, Kind::reference),
                &four = trained(page, Kind::four_layers), &four_pre = trained(page, Kind::four_pre);
  page.say(both(
      "One, two and four layers in encoder and decoder, {} epochs each on {} pairs, and four layers with the norm before each "
      "sublayer. These trainings are short, and so are those of the next exercise: a row tells how fast a model starts, not how "
      "good it may become. A step is measured on one core; the training loss is that of the last epoch, nats are per token under "
      "teacher forcing, d2l-bleu is the mean over the sentences.",
      "编码器与解码器各一、二、四层，每个训练 {} 轮、{} 对；另有规范化在子层之前的四层。这些训练都很短，下一个练习也是：一行只说"
      "明模型起步多快，而不是最终能有多好。每步的时间在单核上测得；训练损失取最后一轮；奈特为强制教学下每个词元的值；d2l-bleu 为"
      "各句平均。",
      two.run.config().training.epochs, grouped(two.run.training_pairs())));
  named_table(page, head(page),
              {{{"1 layer", "一层"}, measures(page, one)},
               {{"2 layers", "两层"}, measures(page, two)},
               {{"4 layers", "四层"}, measures(page, four)},
               {{"4 layers, norm first", "四层，前规范化"}, measures(page, four_pre)}});
  page.draw("depth",
            curves({curve("1 layer", one, "g-."), curve("2 layers", two, "r-"), curve("4 layers", four, "b--"),
                    curve("4 layers, norm first", four_pre, "m:")},
                   {.label = "epoch"}, {.label = "training loss", .scale = AxisScale::log}),
            {"Training loss with one, two and four layers.", "一、二、四层时的训练损失。"});
  page.fact({"A step takes longer with every layer; what does not grow is the embedding and the output layer.",
             "每加一层，一步就更久；不随之增长的是嵌入与输出层。"},
            fmt::format("four layers take {:.1f} times the time of one", four.step_seconds / one.step_seconds));
  page.claim(
      four_pre.losses.back() < four.losses.back(),
      {"Four layers are slow to start because of where the norm stands: with it before the sublayers they learn faster.",
       "四层起步慢，原因在于规范化的位置：放到子层之前就学得更快。"},
      fmt::format("training loss {:.3f} with the norm before, {:.3f} after", four_pre.losses.back(),
                  four.losses.back()));
  page.say(
      {"Depth shows only in a longer training. With 52,000 pairs, width 64, a warm-up of 400 steps and 8 epochs "
       "(`qkv train --preset transformer --layers N`; docs/results/en-fr.md):",
       "深度的作用要在更长的训练中才看得到。五万两千对，宽 64，预热 400 步，8 轮"
       "（`qkv train --preset transformer --layers N`；docs/results/en-fr.md）："});
  named_table(page,
              {{"trained to the end", "训练到底"},
               {"parameters", "参数"},
               {"4,379 held-out sentences exact", "4,379 个留出句子完全正确"}},
              {{{"1 layer", "一层"}, {"202,613", "98.0 %"}},
               {{"2 layers", "两层"}, {"318,581", "99.2 %"}},
               {{"4 layers", "四层"}, {"550,517", "99.7 %"}}});
  page.say(
      {"**Answer.** A deeper Transformer costs time in proportion to its layers, is slower to start, and translates a little better once "
       "it is trained long enough with a warm-up.",
       "**答：**更深的 Transformer 每步的时间随层数成比例增加，起步更慢；只有带预热、训练足够久之后，译文才稍好一些。"});
}

void additive_step(Page& page) {
  page.heading({"Exercise 10.7.2 (English edition 11.7.2): additive in place of scaled dot-product attention",
                "练习 10.7.2（英文版 11.7.2）：用加性注意力代替缩放点积"});
  page.say(
      {"Every attention of the model, in encoder, decoder and between, scored by a small network instead of a product:",
       "模型中的每个注意力（编码器、解码器以及两者之间）都用小网络而不是乘积来评分："});
  page.formula("a(q, k) = w_v^\\top \\tanh(W_q q + W_k k) \\quad \\mathrm{for} \\quad a(q, k) = q^\\top k / \\sqrt{d}");
  const Trained &dot = trained(page, Kind::reference), &additive = trained(page, Kind::additive);
  named_table(
      page, head(page),
      {{{"scaled dot product", "缩放点积"}, measures(page, dot)}, {{"additive", "加性"}, measures(page, additive)}});
  page.draw("additive",
            curves({curve("scaled dot", dot, "r-"), curve("additive", additive, "b--")}, {.label = "epoch"},
                   {.label = "training loss", .scale = AxisScale::log}),
            {"Training loss with both scores.", "两种评分函数的训练损失。"});
  const Rng rng = Rng(page.seed()).at("additive-cost");
  std::vector<std::vector<std::string>> rows;
  double last = 0;
  for (const int64_t length : {32, 128, 512}) {
    const auto [a, d] = attention_seconds(length, rng);
    last = a / d;
    rows.push_back({std::to_string(length), rounded(1e3 * d, 2), rounded(1e3 * a, 2), rounded(last, 1)});
  }
  page.say(
      {"On sentences of a few words both learn; which of the two is ahead after so short a training changes with the data. "
       "The objection is the cost, and it shows with the length: forward and backward through one attention, 4 heads, width 32.",
       "在几个词的句子上两者都能学会；这么短的训练之后谁领先，随数据而变。问题在于代价，它随长度显现：一个注意力的前向与反向，4 "
       "个头，宽 32。"});
  page.table({{"positions", "位置数"},
              {"scaled dot, ms", "缩放点积，毫秒"},
              {"additive, ms", "加性，毫秒"},
              {"ratio", "比值"}},
             rows);
  page.claim(
      last > 1.5,
      {"Over many positions additive attention is clearly slower: a tanh for each feature of each pair of positions, where the dot "
       "product is one product of matrices.",
       "位置一多，加性注意力明显更慢：每对位置的每个特征都要算一次 tanh，而点积只是一次矩阵乘法。"},
      fmt::format("{:.1f} times the time at 512 positions", last));
  page.say(
      {"**Answer.** It is not a good idea: no gain in what is learned, and a cost that grows with every pair of positions.",
       "**答：**不是好主意：学到的并不更多，代价却随每一对位置增长。"});
}

void norm_place_step(Page& page) {
  page.heading({"Deep stacks: where the norm stands", "深层堆叠：规范化放在哪里"});
  page.say(
      {"The book's blocks normalise after the sum (**post-norm**). Putting the norm before the sublayer (**pre-norm**) leaves a straight "
       "path from the last layer to the first that no norm rescales, with one norm at the end.",
       "书中的块在求和之后规范化（**后规范化**）。把规范化放到子层之前（**前规范化**"
       "），从最后一层到第一层便有一条不受规范化缩放的直路，末尾再加一次规范化。"});
  page.formula("x' = \\mathrm{LN}(x + f(x)) \\quad \\mathrm{or} \\quad x' = x + f(\\mathrm{LN}(x))");
  const Trained &post = trained(page, Kind::deep_post), &pre = trained(page, Kind::deep_pre),
                &reference = trained(page, Kind::reference);
  const TranslationBatch b = batches_of(reference, judged(page, Judge::exercises))[0];
  const Rng rng = Rng(page.seed()).at("norm-place");
  const auto after = gradient_by_block(reference, NormPlace::post, b, rng),
             before = gradient_by_block(reference, NormPlace::pre, b, rng);
  std::vector<double> blocks(after.size());
  for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<double>(i + 1);
  page.draw("norm-gradients",
            curves({{"post-norm", blocks, after, line_style("ro-")}, {"pre-norm", blocks, before, line_style("bo--")}},
                   {.label = "decoder block, from the input"}, {.label = "length of the gradient", .low = 0}),
            {"Gradient with respect to the parameters of each of 12 decoder blocks before any training.",
             "训练之前，损失对 12 个解码器块各自参数的梯度长度。"});
  const double steep = after.back() / after.front(), flat = before.back() / before.front();
  page.claim(
      steep > 3 && steep > 5 * flat && flat > 0.2 && flat < 5,
      {"Before training, the gradient of post-norm grows from block to block towards the output, many times in all; that of pre-norm "
       "changes by a small factor at most.",
       "训练之前，后规范化的梯度向输出方向逐块增大，总共增大许多倍；前规范化的梯度最多变化几倍。"},
      fmt::format("last block over first: {:.0f} times with post-norm, {:.2f} with pre-norm", steep, flat));
  page.draw("norm-place",
            curves({curve("post-norm", post, "r-"), curve("pre-norm", pre, "b--")}, {.label = "epoch"},
                   {.label = "training loss"}),
            {"Six layers in encoder and decoder, rate 0.005 from the first step, no warm-up.",
             "编码器与解码器各六层，一开始学习率就是 0.005，无预热。"});
  page.claim(
      pre.losses.back() < 0.9 * post.losses.back(),
      both("With {} layers and a large rate from the start, pre-norm is ahead after {} epochs.",
           "{} 层、一开始就用大学习率时，{} 轮后前规范化领先。", post.run.config().transformer().layers,
           post.run.config().training.epochs),
      fmt::format("training loss {:.3f} with pre-norm, {:.3f} with post-norm", pre.losses.back(), post.losses.back()));
  page.say(
      {"Post-norm models are trained with a warm-up (`training.warmup`): small steps until the last blocks, whose gradients are large, "
       "have settled (Xiong et al., 2020). The book's two layers train without one.",
       "后规范化的模型要用预热（`training.warmup`）来训练：最后几块的梯度大，先小步走，等它们稳定（Xiong "
       "等，2020）。书中的两层模型不用预热也能训练。"});
}

}  // namespace qkv::labs::transformer
