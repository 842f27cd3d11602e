// Lab 10.7: exercises by experiment. More layers, additive attention, norms before the sublayers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/multi_head.h"
#include "qkv/core/parallel.h"
#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/labs/transformer.h"
#include "qkv/ops/loss.h"

namespace qkv::labs::transformer {
namespace {

std::vector<Text> head(const Page& page) {
  return {verbatim(""),
          tr("parameters"),
          tr("ms per step"),
          page.data().empty() ? tr("training loss") : tr("training loss (book's)"),
          page.data().empty() ? tr("nats, held out") : tr("nats, training"),
          verbatim("d2l-bleu")};
}

std::vector<std::string> measures(Page& page, const Trained& t) {
  const SentencePairs& judge = judged(page, Judge::exercises);
  return {grouped(t.run.model().parameters().count()), rounded(1e3 * t.step_seconds, 2), rounded(t.losses.back(), 3),
          rounded(forced_loss(t, judge), 3),
          rounded(quality(page, Judge::exercises, translate(t, judge.source)).bleu, 3)};
}

Series curve(const Label& name, const Trained& t, std::string_view format) {
  return {name, t.epochs, t.losses, line_style(format)};
}

// Processor time of one forward and backward pass through an attention of width 32 with 4 heads over `length`
// positions, additive and scaled dot product, measured in turn so that other load on the machine affects both.
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
  for (int repeat = 0; repeat < 5; ++repeat) {
    a = std::min(a, once(additive));
    d = std::min(d, once(dot));
  }
  return {a, d};
}

// The norm of the loss's gradient with respect to the parameters of each decoder block, in an untrained model.
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
  page.exercise("10.7.1");
  const Trained &one = trained(page, Kind::one_layer), &two = trained(page, Kind::model),
                &four = trained(page, Kind::four_layers), &four_pre = trained(page, Kind::four_pre);
  page.say(tr(
      "One, two and four layers in encoder and decoder, and four layers with the norm before each sublayer. Each is "
      "trained to the end of its plan, as the model of this lab is: {epochs} epochs on {pairs} pairs. A step is "
      "measured on one core; nats are per token with teacher forcing. With the norm after the sublayers, four layers "
      "need a longer warm-up: {long} steps in place of {warmup}.",
      "long"_a = four.run.config().training.warmup, "warmup"_a = two.run.config().training.warmup,
      "epochs"_a = two.run.config().training.epochs, "pairs"_a = grouped(two.run.training_pairs())));
  const SentencePairs& judge = judged(page, Judge::model);
  std::vector<double> nats;
  const auto row = [&](const Trained& t) {
    nats.push_back(forced_loss(t, judge));
    return std::vector<std::string>{grouped(t.run.model().parameters().count()),
                                    rounded(1e3 * t.step_seconds, 2),
                                    rounded(t.losses.front(), 3),
                                    rounded(t.losses.back(), 4),
                                    rounded(nats.back(), 4),
                                    percent(quality(page, Judge::model, translate(t, judge.source)).exact)};
  };
  const bool built_in = page.data().empty();
  named_table(page,
              {verbatim(""), tr("parameters"), tr("ms per step"), tr("training loss, first epoch"), tr("last epoch"),
               built_in ? tr("nats, held out") : tr("nats, training"), tr("exact")},
              {{tr("1 layer"), row(one)},
               {tr("2 layers"), row(two)},
               {tr("4 layers, long warm-up"), row(four)},
               {tr("4 layers, norm first"), row(four_pre)}});
  page.draw(
      "depth",
      curves({curve(tr("1 layer"), one, "g-."), curve(tr("2 layers"), two, "r-"),
              curve(tr("4 layers, long warm-up"), four, "b--"), curve(tr("4 layers, norm first"), four_pre, "m:")},
             {.label = tr("epoch")}, {.label = tr("training loss"), .scale = AxisScale::log}),
      tr("Training loss with one, two and four layers."));
  page.fact(tr("A step takes longer with every layer; only the embedding and the output layer do not grow."),
            tr("four layers take {ratio:.1f} times the time of one", "ratio"_a = four.step_seconds / one.step_seconds));
  if (built_in)
    page.claim(std::max(nats[1], nats[3]) < nats[0],
               tr("Trained to the end, two layers, and four with the norm first, translate new sentences better than "
                  "one."),
               tr("nats per token: 1 layer {one:.4f}, 2 layers {two:.4f}, 4 layers {four:.4f}, norm first {pre:.4f}",
                  "one"_a = nats[0], "two"_a = nats[1], "four"_a = nats[2], "pre"_a = nats[3]));
}

void additive_step(Page& page) {
  page.exercise("10.7.2");
  page.say(
      tr("Every attention of the model, in the encoder, in the decoder and between them, is scored by a small network "
         "instead of a dot product:"));
  page.formula("a(q, k) = w_v^\\top \\tanh(W_q q + W_k k) \\quad \\mathrm{for} \\quad a(q, k) = q^\\top k / \\sqrt{d}");
  const Trained &dot = trained(page, Kind::reference), &additive = trained(page, Kind::additive);
  named_table(page, head(page),
              {{tr("scaled dot product"), measures(page, dot)}, {tr("additive"), measures(page, additive)}});
  page.draw("additive",
            curves({curve(tr("scaled dot"), dot, "r-"), curve(tr("additive"), additive, "b--")}, {.label = tr("epoch")},
                   {.label = tr("training loss"), .scale = AxisScale::log}),
            tr("Training loss with both scores."));
  const Rng rng = Rng(page.seed()).at("additive-cost");
  std::vector<std::vector<std::string>> rows;
  double last = 0;
  for (const int64_t length : {32, 128, 512}) {
    const auto [a, d] = attention_seconds(length, rng);
    last = a / d;
    rows.push_back({std::to_string(length), rounded(1e3 * d, 2), rounded(1e3 * a, 2), rounded(last, 1)});
  }
  page.say(
      tr("On sentences of a few words both learn; which of the two is ahead after such short training depends on the "
         "data. The objection is the cost, which shows in long inputs: forward and backward through one attention, 4 "
         "heads, width 32."));
  page.table({tr("number of positions"), tr("scaled dot, ms"), tr("additive, ms"), tr("ratio")}, rows);
  page.claim(
      last > 1.5,
      tr("Over many positions additive attention is clearly slower: a tanh for each feature of each pair of positions, "
         "where the dot product is one matrix product."),
      tr("{ratio:.1f} times the time at 512 positions", "ratio"_a = last));
  page.say(
      tr("**Answer.** It is not a good idea: what it learns, the dot product learns too, and it costs many times as "
         "much for every pair of positions."));
}

void norm_place_step(Page& page) {
  page.heading(tr("Deep stacks: where to put the norm"));
  page.say(tr(
      "The book's blocks normalise after the sum (**post-norm**). Putting the norm before the sublayer (**pre-norm**) "
      "leaves a straight path from the last layer to the first that no norm rescales, with one norm at the end."));
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
            curves({{tr("post-norm"), blocks, after, line_style("ro-")},
                    {tr("pre-norm"), blocks, before, line_style("bo--")}},
                   {.label = tr("decoder block, from the input")}, {.label = tr("norm of the gradient"), .low = 0}),
            tr("Gradient with respect to the parameters of each of 12 decoder blocks before any training."));
  const double steep = after.back() / after.front(), flat = before.back() / before.front();
  page.claim(
      steep > 3 && steep > 5 * flat && flat > 0.2 && flat < 5,
      tr("Before training, the gradient of post-norm grows many times over from the first block to the last; that of "
         "pre-norm changes by a small factor at most."),
      tr("last block over first: {steep:.0f} times with post-norm, {flat:.2f} with pre-norm", "steep"_a = steep,
         "flat"_a = flat));
  page.draw("norm-place",
            curves({curve(tr("post-norm"), post, "r-"), curve(tr("pre-norm"), pre, "b--")}, {.label = tr("epoch")},
                   {.label = tr("training loss")}),
            tr("Six layers in encoder and decoder, rate 0.005 from the first step, no warm-up."));
  page.claim(pre.losses.back() < 0.9 * post.losses.back(),
             tr("With {layers} layers and a large rate from the start, pre-norm is ahead after {epochs} epochs.",
                "layers"_a = post.run.config().transformer().layers, "epochs"_a = post.run.config().training.epochs),
             tr("training loss {pre:.3f} with pre-norm, {post:.3f} with post-norm", "pre"_a = pre.losses.back(),
                "post"_a = post.losses.back()));
  page.say(
      tr("Post-norm models are trained with a warm-up (`training.warmup`): small steps until the last blocks, whose "
         "gradients are large, have settled (Xiong et al., 2020). The book's two layers train without one."));
}

}  // namespace qkv::labs::transformer
