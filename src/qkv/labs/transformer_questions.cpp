// Lab 10.7: kinds of positions, and the questions that ask for thought: language models, long inputs, images.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "qkv/attention/multi_head.h"
#include "qkv/core/parallel.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/labs/transformer.h"
#include "qkv/labs/work.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/train/fit.h"

namespace qkv::labs::transformer {
namespace {

struct Named {
  Kind kind;
  PositionKind positions;
  Text name;
};

const std::vector<Named>& position_kinds() {
  static const std::vector<Named> all = {{Kind::reference, PositionKind::sinusoidal, tr("sinusoidal")},
                                         {Kind::learned, PositionKind::learned, tr("learned")},
                                         {Kind::relative, PositionKind::relative, tr("relative bias")},
                                         {Kind::rotary, PositionKind::rotary, tr("rotary")},
                                         {Kind::alibi, PositionKind::alibi, tr("ALiBi")},
                                         {Kind::no_positions, PositionKind::none, tr("none")}};
  return all;
}

enum class Order { first_word_last, mirrored };

// How much the scores of a trained model change when the words of a source, the longest of the batch, are in another
// order.
double order_matters(const Trained& t, const TranslationBatch& b, Order order) {
  const auto& lens = b.source_lens.data();
  const int64_t row = std::max_element(lens.begin(), lens.end()) - lens.begin(), length = b.source_lens.ptr()[row],
                steps = b.target_in.size(1);
  const Ids source = b.source.part(row * b.source.size(1), {1, length}),
            target = b.target_in.part(row * steps, {1, steps});
  Ids other = Ids::empty({1, length});
  if (order == Order::mirrored)
    std::reverse_copy(source.data().begin(), source.data().end(), other.mutable_ptr());
  else
    std::rotate_copy(source.data().begin(), source.data().begin() + 1, source.data().end(), other.mutable_ptr());
  return largest_difference(network(t).logits(source, {}, target, Run{}), network(t).logits(other, {}, target, Run{}));
}

// Pairs of n positions that are at most `reach` apart.
int64_t pairs_in_window(int64_t n, int64_t reach) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; ++i) count += std::min(n - 1, i + reach) - std::max<int64_t>(0, i - reach) + 1;
  return count;
}

// A decoder alone that reads a sentence and predicts its next word.
struct LanguageTask {
  const TransformerDecoder& model;
  TranslationBatches all;
  int32_t pad;

  Tensor sum(const Ids& in, const Ids& out, const Run& run) const {
    return linear_cross_entropy(model.features(in, {}, run), model.output.weight, model.output.bias, out,
                                {.ignore_id = pad, .reduction = Reduction::sum});
  }
  static double tokens_in(const Ids& lens) { return std::accumulate(lens.data().begin(), lens.data().end(), 0.0); }

  int64_t batches() const { return all.batches(); }
  TranslationBatch batch(int64_t epoch, int64_t index) const { return all.batch(epoch, index); }
  int64_t rows(const TranslationBatch& b) const { return b.target_in.size(0); }
  double count(const TranslationBatch& b) const { return tokens_in(b.target_lens); }
  Loss loss(const TranslationBatch& b, int64_t begin, int64_t end, const Run& run) const {
    const int64_t n = end - begin, steps = b.target_in.size(1);
    const Tensor total =
        sum(b.target_in.part(begin * steps, {n, steps}), b.target_out.part(begin * steps, {n, steps}), run);
    return {total, tokens_in(b.target_lens.part(begin, {n}))};
  }
};

// Nats per token when words are predicted by their frequencies in the training text, whatever came before.
double unigram_loss(const std::vector<TranslationBatch>& seen, const std::vector<TranslationBatch>& judged,
                    int32_t vocabulary, int32_t pad) {
  std::vector<double> count(static_cast<size_t>(vocabulary), 1);
  for (const TranslationBatch& b : seen)
    for (const int32_t id : b.target_out.data())
      if (id != pad) ++count[static_cast<size_t>(id)];
  const double all = std::accumulate(count.begin(), count.end(), 0.0);
  double sum = 0, tokens = 0;
  for (const TranslationBatch& b : judged)
    for (const int32_t id : b.target_out.data())
      if (id != pad) {
        sum -= std::log(count[static_cast<size_t>(id)] / all);
        ++tokens;
      }
  return sum / tokens;
}

}  // namespace

void position_kinds_step(Page& page) {
  page.heading(tr("Six kinds of positions"));
  page.say(tr(
      "Attention itself ignores the order of its keys. Vectors may be added to the embeddings, fixed (sinusoidal) or "
      "learned; or the distance between query and key may act inside self-attention: as a learned bias on the score, "
      "as a rotation of queries and keys, or as a penalty that grows with the distance (ALiBi). The setting "
      "`model.positions` selects one of them."));
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  const SentencePairs& judge = judged(page, Judge::exercises);
  const TranslationBatch batch = batches_of(trained(page, Kind::reference), judge)[0];
  double blind = 0, least = 1e9;
  for (const Named& n : position_kinds()) {
    const Trained& t = trained(page, n.kind);
    const double change = order_matters(t, batch, Order::first_word_last);
    if (n.positions == PositionKind::none)
      blind = change;
    else
      least = std::min(least, change);
    rows.push_back({n.name,
                    {grouped(t.run.model().parameters().count()), rounded(1e3 * t.step_seconds, 2),
                     rounded(t.losses.back(), 3), rounded(forced_loss(t, judge), 3),
                     rounded(quality(page, Judge::exercises, translate(t, judge.source)).bleu, 3)}});
  }
  named_table(page,
              {tr("positions"), tr("parameters"), tr("ms per step"), tr("training loss"),
               page.data().empty() ? tr("nats, held out") : tr("nats, training"), tr("mean d2l-bleu")},
              rows);
  page.say(tr(
      "**These training runs are short, each with one seed. They cannot rank variants that are close together**: "
      "another seed changes the order. The table shows that all of them work and what they cost: time of a step on one "
      "core, training loss of the last epoch, nats per token with teacher forcing, and the mean score of the "
      "translations."));
  page.claim(
      blind < 1e-3 && least > 100 * blind,
      tr("Without positions the encoder reads a bag of words: moving the first word of a source to its end gives the "
         "same scores, up to rounding. With any of the other five kinds it does not."),
      tr("scores change by {without} without positions, by at least {with:.3f} with them", "without"_a = tiny(blind),
         "with"_a = least));
  const double mirrored = order_matters(trained(page, Kind::alibi), batch, Order::mirrored),
               turned = order_matters(trained(page, Kind::rotary), batch, Order::mirrored);
  page.claim(
      mirrored < 1e-3 && turned > 100 * mirrored,
      tr("ALiBi's penalty depends on how far a word is but not on which side: to an encoder a sentence and its mirror "
         "image are the same. Rotations tell them apart."),
      tr("mirrored, scores change by {mirrored} with ALiBi and by {turned:.3f} with rotations",
         "mirrored"_a = tiny(mirrored), "turned"_a = turned));
  page.say(
      tr("Training goes well even without positions, for two reasons: in short sentences the words alone say most, and "
         "the decoder's causal mask tells it where it is."));
}

void language_model_step(Page& page) {
  page.exercise("10.7.3");
  page.say(tr(
      "A language model predicts the next word from those before it, and there is no other sentence to attend to: this "
      "is the **decoder alone**, without cross-attention. (An encoder sees both sides and is instead trained to fill "
      "in masked words, as in BERT; encoder and decoder together are trained on span corruption, as in T5: spans of "
      "the text are cut out, a marker is left in place of each, and the decoder generates what was cut.)"));
  const Trained& like = trained(page, Kind::reference);
  const Tokenizers& t = like.run.tokenizers();
  TransformerDecoder model(network(like).config, t.target.size(), Cross::no, Rng(page.seed()).at("language"));
  SentencePairs text = like.run.text().train;
  const auto pairs = static_cast<size_t>(std::min<int64_t>(text.size(), 3000));
  text.source.resize(pairs);
  text.target.resize(pairs);
  const Parameters all = flatten(model);
  Adam adam;
  const LanguageTask task{model,
                          TranslationBatches(encode_pairs(text, t.source, t.target), t.source.pad(), t.target.pad(),
                                             t.target.bos(), {.rows = 16, .seed = page.seed()}),
                          t.target.pad()};
  Work work(page, training_of({tr("a language model")}));
  WorkObserver follower(work);
  Observer* observers[] = {&follower};
  fit(all, adam, {.epochs = page.data().empty() ? 3 : 8, .rate = constant_rate(0.003f), .clip = 1, .seed = page.seed()},
      task, observers);
  const SentencePairs& judge = judged(page, Judge::exercises);
  const auto batches = batches_of(like, judge);
  double sum = 0, tokens = 0;
  for (const TranslationBatch& b : batches) {
    sum += task.sum(b.target_in, b.target_out, Run{}).item();
    tokens += LanguageTask::tokens_in(b.target_lens);
  }
  const double words = unigram_loss(batches_of(like, text), batches, t.target.size(), t.target.pad()),
               alone = sum / tokens, translating = forced_loss(like, judge);
  const auto row = [](double loss) { return std::vector<std::string>{rounded(loss, 3), rounded(std::exp(loss), 1)}; };
  named_table(page,
              {tr("French, {sentences}", "sentences"_a = judged_name(page)), tr("nats per token"), tr("perplexity")},
              {{tr("word frequencies"), row(words)},
               {tr("decoder alone"), row(alone)},
               {tr("reads the English sentence too"), row(translating)}});
  page.claim(
      alone < words && translating < alone,
      tr("The previous words narrow the choice, and the source sentence narrows it further."),
      tr("{words:.2f} nats by word frequencies, {alone:.2f} by the previous words, {translating:.2f} with the source",
         "words"_a = words, "alone"_a = alone, "translating"_a = translating));
}

void long_input_step(Page& page) {
  page.heading(
      tr("Exercises 10.7.4 and 10.7.5 (English edition 11.7.4, 11.7.5): very long inputs, and cheaper Transformers"));
  page.say(tr(
      "Every position looks at every other: time grows with the square of the length $n$, and if the weights are kept, "
      "so does memory. Here they are never kept (forward and backward work in tiles), so memory grows only with $n$; "
      "the time remains. Remedies: let each position see a window, or a few chosen positions; cluster the keys "
      "(Reformer); replace softmax by a product of features that can be summed first (linear attention); project the "
      "keys to fewer (Linformer). With a window of 64 positions to either side:"));
  const SerialScope serial;
  const MultiHead heads({.width = 32, .heads = 4}, Rng(page.seed()).at("long"));
  std::vector<std::vector<std::string>> rows;
  std::vector<double> lengths, full, window;
  const Mask all_positions = Mask::none(), near = Mask::window(64, 64);
  const auto once = [&](const Tensor& x, const Mask& mask) {
    return 1e3 * thread_seconds([&] { heads(x, x, x, mask, Run{}); });
  };
  for (int64_t n = 256; n <= 4096; n *= 2) {
    const Tensor x = normal({1, n, 32}, Rng(page.seed()).at("x"));
    double a = 1e9, w = 1e9;  // measured in turn so that other load affects both
    for (int repeat = 0; repeat < 3; ++repeat) {
      a = std::min(a, once(x, all_positions));
      w = std::min(w, once(x, near));
    }
    lengths.push_back(static_cast<double>(n));
    full.push_back(a);
    window.push_back(w);
    rows.push_back({grouped(n), grouped(n * n), grouped(pairs_in_window(n, 64)),
                    rounded(static_cast<double>(4 * n * n * 4) / (1 << 20), 2), rounded(a, 2), rounded(w, 2)});
  }
  page.table({tr("number of positions"), tr("pairs, all"), tr("pairs, window"), tr("MB the weights would take"),
              tr("all positions, ms"), tr("window, ms")},
             rows);
  page.draw("long-inputs",
            curves({{tr("all positions"), lengths, full, line_style("ro-")},
                    {tr("window of 64 + 64"), lengths, window, line_style("bo--")}},
                   {.label = tr("positions"), .scale = AxisScale::log}, {.label = tr("ms"), .scale = AxisScale::log}),
            tr("One attention, 4 heads, width 32, forward, one core; both axes logarithmic."));
  page.fact(tr("Sixteen times the length makes 256 times as many pairs of positions, and 18 times as many within the "
               "window."),
            tr("the times grew {full:.0f} and {window:.0f} times in this run", "full"_a = full.back() / full[0],
               "window"_a = window.back() / window[0]));
  page.claim(full.back() > 2 * window.back(),
             tr("At 4,096 positions attention within the window takes less than half the time of attention to all."),
             tr("{window:.1f} ms and {full:.1f} ms", "window"_a = window.back(), "full"_a = full.back()));
}

void vision_step(Page& page) {
  page.exercise("10.7.6");
  page.say(tr(
      "Cut the image into patches and treat each patch as a word: it is flattened, projected to the model's width by a "
      "matrix, and given a position. The encoder works on the patches; a special first token, or the mean over all "
      "patches, is classified. A $28 \\times 28$ image in patches of $4 \\times 4$ is a sentence of 49 words (vision "
      "Transformer; Dosovitskiy et al., 2021)."));
  const Rng rng = Rng(page.seed()).at("vision");
  const Linear patch(16, 32, rng.at("patch"));
  const TransformerBlock block({.hidden = 32, .ffn = 64}, Cross::no, rng.at("block"));
  const Tensor cut = patches(uniform({1, 1, 28, 28}, rng.at("image")), 4);
  Ids order = Ids::empty({49});  // patch p goes to place 10 p mod 49: 10 and 49 have no common factor
  for (int32_t p = 0; p < 49; ++p) order.mutable_ptr()[p * 10 % 49] = p;
  const Tensor mixed = unsqueeze(gather_rows(cut.viewed({49, 16}), order), 0);
  const auto classified = [&](const Tensor& words) { return mean(block(words, Mask::none(), Run{}), 1); };
  const Tensor places = sinusoidal_positions(49, 32).viewed({1, 49, 32});
  const double without = largest_difference(classified(patch(cut)), classified(patch(mixed))),
               with = largest_difference(classified(add(patch(cut), places)), classified(add(patch(mixed), places)));
  page.print(tr("image (28, 28) -> patches (49, 16) -> words (49, 32) -> encoder (49, 32) -> mean (32)"));
  page.claim(without < 1e-5 && with > 1e-3,
             tr("Without positions an image whose patches are shuffled is the same image; with them it is not."),
             tr("the mean changes by {without} without positions, by {with:.4f} with them", "without"_a = tiny(without),
                "with"_a = with));
}

}  // namespace qkv::labs::transformer
