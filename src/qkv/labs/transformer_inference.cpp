// Lab 10.7: what changes between training and generation, and what must not: the mask, the cache, the positions.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/labs/transformer.h"
#include "qkv/labs/work.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/train/fit.h"

namespace qkv::labs::transformer {
namespace {

Ids rows_of(const Ids& ids, int64_t begin, int64_t end) {
  const int64_t width = ids.rank() == 2 ? ids.size(1) : 1;
  return ids.part(begin * width, ids.rank() == 2 ? Shape{end - begin, width} : Shape{end - begin});
}

double tokens_in(const Ids& lens) { return std::accumulate(lens.data().begin(), lens.data().end(), 0.0); }

// Summed over the tokens that are not padding.
Tensor summed_loss(const Transformer& model, const Tensor& x, const Ids& wanted, int32_t pad) {
  return linear_cross_entropy(x, model.decoder.output.weight, model.decoder.output.bias, wanted,
                              {.ignore_id = pad, .reduction = Reduction::sum});
}

// Nats per token with teacher forcing, all positions at once.
double loss_with(const Transformer& model, const std::vector<TranslationBatch>& batches, int32_t pad,
                 const Mask& mask) {
  double sum = 0, count = 0;
  for (const TranslationBatch& b : batches) {
    sum +=
        summed_loss(model, model.features(b.source, b.source_lens, b.target_in, Run{}, mask), b.target_out, pad).item();
    count += tokens_in(b.target_lens);
  }
  return sum / count;
}

Ids column(const Ids& ids, int64_t at) {
  Ids out = Ids::empty({ids.size(0)});
  for (int64_t b = 0; b < ids.size(0); ++b) out.mutable_ptr()[b] = ids.ptr()[b * ids.size(1) + at];
  return out;
}

// Nats per token with teacher forcing, one token per step through the cache.
double stepped_loss(const Transformer& model, const std::vector<TranslationBatch>& batches, int32_t pad) {
  double sum = 0, count = 0;
  for (const TranslationBatch& b : batches) {
    auto state = model.start(b.source, b.source_lens, Run{});
    for (int64_t t = 0; t < b.target_in.size(1); ++t) {
      const Tensor logits = model.step(state, column(b.target_in, t), Run{});
      sum += cross_entropy(logits, column(b.target_out, t), {.ignore_id = pad, .reduction = Reduction::sum}).item();
    }
    count += tokens_in(b.target_lens);
  }
  return sum / count;
}

// Greedy translations by a model that shares the weights of `trained` but may have other options.
std::vector<std::string> written_by(const Transformer& model, const Trained& trained,
                                    const std::vector<std::string>& sentences) {
  const Tokenizer& words = trained.run.tokenizers().target;
  const int64_t most = trained.translator().defaults().max_length;
  std::vector<std::string> out;
  for (const TranslationBatch& b : batches_of(trained, {sentences, std::vector<std::string>(sentences.size(), ".")})) {
    const int64_t rows = b.source.size(0);
    auto state = model.start(b.source, b.source_lens, Run{});
    std::vector<std::vector<int32_t>> tokens(static_cast<size_t>(rows));
    std::vector<bool> ended(static_cast<size_t>(rows), false);
    Ids last = Ids::empty({rows});
    std::fill_n(last.mutable_ptr(), rows, words.bos());
    for (int64_t t = 0; t < most; ++t) {
      const Tensor logits = model.step(state, last, Run{});
      last = Ids::empty({rows});
      for (int64_t r = 0; r < rows; ++r) {
        std::vector<float> row(logits.ptr() + r * logits.size(1), logits.ptr() + (r + 1) * logits.size(1));
        row[static_cast<size_t>(words.pad())] = row[static_cast<size_t>(words.bos())] = -1e30f;
        const auto best = static_cast<int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
        last.mutable_ptr()[r] = best;
        const auto at = static_cast<size_t>(r);
        ended[at] = ended[at] || best == words.eos();
        if (!ended[at]) tokens[at].push_back(best);
      }
    }
    for (const auto& t : tokens) out.push_back(words.decode(t));
  }
  return out;
}

// Training of a model whose decoder sees the whole target.
struct OpenTask {
  const Transformer& model;
  TranslationBatches all;
  int32_t pad;

  int64_t batches() const { return all.batches(); }
  TranslationBatch batch(int64_t epoch, int64_t index) const { return all.batch(epoch, index); }
  int64_t rows(const TranslationBatch& b) const { return b.source.size(0); }
  double count(const TranslationBatch& b) const { return tokens_in(b.target_lens); }
  Loss loss(const TranslationBatch& b, int64_t begin, int64_t end, const Run& run) const {
    const Tensor x = model.features(rows_of(b.source, begin, end), rows_of(b.source_lens, begin, end),
                                    rows_of(b.target_in, begin, end), run, Mask::none());
    const Tensor sum = summed_loss(model, x, rows_of(b.target_out, begin, end), pad);
    return {sum, tokens_in(rows_of(b.target_lens, begin, end))};
  }
};

// Only the first words of a sentence that does not end.
std::string cut(const std::string& sentence) {
  const auto words = split_blanks(sentence);
  if (words.size() <= 10) return sentence;
  return sentence.substr(0, static_cast<size_t>(words[9].data() + words[9].size() - sentence.data())) + " ...";
}

// The mean length of the rows of a matrix.
double mean_length(const Tensor& rows) {
  double sum = 0;
  for (int64_t r = 0; r < rows.size(0); ++r) sum += length_of(rows.part(r * rows.size(1), {rows.size(1)}));
  return sum / static_cast<double>(rows.size(0));
}

std::string nats(double x) { return rounded(x, 3); }

// Why the slip matters much or little: the size of word vectors compared with that of positions.
void say_how_strong_positions_are(Page& page, const Transformer& model, double differ) {
  const double words =
                   mean_length(model.decoder.embedding.weight) * std::sqrt(static_cast<double>(model.config.hidden)),
               waves = std::sqrt(static_cast<double>(model.config.hidden) / 2);
  const std::string share = percent(differ);
  if (page.data().empty()) {
    page.say(tr(
        "{share} of the translations differ: not knowing how far it has come, the decoder repeats itself or stops too "
        "soon. A word's vector $\\sqrt{d} e$ is on average {words:.0f} long here and a positional vector "
        "{positions:.0f}, so positions matter. The book's embeddings start as $N(0, 1)$, and after the factor "
        "$\\sqrt{d}$ they are 8 times as long as the positional vectors: that its translations survive the slip shows "
        "how little its model uses positions.",
        "share"_a = share, "words"_a = words, "positions"_a = waves));
    return;
  }
  page.say(
      tr("{share} of the translations differ. A word's vector $\\sqrt{d} e$ is on average {words:.0f} long here and a "
         "positional vector {positions:.0f}: embeddings that start as $N(0, 1)$ and are then multiplied by $\\sqrt{d}$ "
         "leave the positions little influence. And a causal decoder can tell where it is from the words it has "
         "generated. Without `--data` this lab trains a model whose embeddings start as large as the positions "
         "(`model.initial = scaled`); there the slip ruins many translations.",
         "share"_a = share, "words"_a = words, "positions"_a = waves));
}

}  // namespace

void mask_step(Page& page) {
  page.heading(tr("The same mask in training and in evaluation"));
  page.say(tr(
      "In training all words of the target go in at once, and the causal mask keeps each from seeing the next, which "
      "is what it must predict. The book's decoder applies the mask **in training mode only**. During generation there "
      "is nothing to hide, as later words do not exist yet. But a validation loss is computed in evaluation mode with "
      "the whole target: there the book's decoder sees the future. The validation losses of the English edition were "
      "computed that way (1.86 in PyTorch, 2.94 in MXNet; TensorFlow keeps the mask and has 1.34), and are not "
      "comparable."));
  const Trained& model = trained(page, Kind::model);
  const Transformer& net = network(model);
  const auto batches = batches_of(model, judged(page, Judge::model));
  const int32_t pad = model.run.tokenizers().target.pad();
  const double masked = loss_with(net, batches, pad, Mask::causal()), open = loss_with(net, batches, pad, Mask::none());
  const double stepped = stepped_loss(net, batches, pad);
  named_table(page, {tr("the trained model, {sentences}", "sentences"_a = judged_name(page)), tr("nats per token")},
              {{tr("causal mask"), {nats(masked)}},
               {tr("one word per step, as in generation"), {nats(stepped)}},
               {tr("no mask: the book's evaluation mode"), {nats(open)}}});
  if (page.data().empty())
    page.say(
        tr("The validation loss after the last epoch, {loss}, is computed as in the first row but on other sentences: "
           "the {validation} for validation, not the {held_out} held-out ones.",
           "loss"_a = nats(model.valid_losses.back()), "validation"_a = grouped(model.run.validation_pairs()),
           "held_out"_a = judged(page, Judge::model).size()));
  page.claim(std::abs(masked - stepped) < 1e-4 * std::max(1.0, masked),
             tr("With the mask, evaluation gives the loss of the model that generates word by word."),
             tr("{masked:.6f} all at once, {stepped:.6f} word by word", "masked"_a = masked, "stepped"_a = stepped));
  page.claim(
      open > 1.2 * masked,
      tr("Without it, the loss reported is that of a different and worse model: its weights were never trained with "
         "later words visible."),
      tr("{open} without, {masked} with the mask", "open"_a = nats(open), "masked"_a = nats(masked)));
  const TranslationBatch& b = batches[0];
  Ids other = Ids::empty(b.target_in.shape());
  const int64_t steps = other.size(1), at = steps / 2;
  for (int64_t i = 0; i < other.numel(); ++i) other.mutable_ptr()[i] = i % steps >= at ? 4 : b.target_in.ptr()[i];
  const auto early = [&](const Run& run) {
    const Tensor x = net.logits(b.source, b.source_lens, b.target_in, run),
                 y = net.logits(b.source, b.source_lens, other, run);
    double most = 0;
    for (int64_t i = 0; i < x.numel(); ++i)
      if (i / x.size(2) % steps < at) most = std::max(most, std::abs(static_cast<double>(x.ptr()[i]) - y.ptr()[i]));
    return most;
  };
  const double evaluating = early(Run{}), training = early(Run{.training = true, .rng = Rng(page.seed()).at("mask")});
  page.claim(
      evaluating == 0 && training == 0,
      tr("In this library the mask belongs to the decoder: with other words in the second half of the target, the "
         "first half of the outputs stays the same to the bit, in training and in evaluation."),
      tr("positions 0 to {last} change by {training} in training, by {evaluating} in evaluation", "last"_a = at - 1,
         "training"_a = training, "evaluating"_a = evaluating));
}

void cheating_step(Page& page) {
  page.heading(tr("What the mask prevents"));
  const Trained& like = trained(page, Kind::relative);
  const Tokenizers& t = like.run.tokenizers();
  const int32_t pad = t.target.pad();
  Transformer model(network(like).config, like.run.tokenizers().sizes(), Rng(page.seed()).at("cheating"));
  SentencePairs text = like.run.text().train;
  const auto pairs = static_cast<size_t>(std::min<int64_t>(text.size(), 2000));
  text.source.resize(pairs);
  text.target.resize(pairs);
  const int64_t epochs = page.data().empty() ? 5 : 20;
  const Parameters all = flatten(model);
  Adam adam;
  const OpenTask task{model,
                      TranslationBatches(encode_pairs(text, t.source, t.target), t.source.pad(), pad, t.target.bos(),
                                         {.rows = like.run.config().training.batch_rows, .seed = page.seed()}),
                      pad};
  Work work(page, training_of({tr("a decoder without a causal mask")}));
  WorkObserver follower(work);
  Observer* observers[] = {&follower};
  fit(all, adam, {.epochs = epochs, .rate = constant_rate(0.005f), .clip = 1, .seed = page.seed()}, task, observers);
  const SentencePairs& judge = judged(page, Judge::exercises);
  const auto batches = batches_of(like, judge);
  const double open = loss_with(model, batches, pad, Mask::none()),
               causal = loss_with(model, batches, pad, Mask::causal());
  const auto written = written_by(model, like, judge.source);
  const double bleu = quality(page, Judge::exercises, written).bleu,
               honest_bleu = quality(page, Judge::exercises, translate(like, judge.source)).bleu;
  const double honest = loss_with(network(like), batches, pad, Mask::causal());
  page.say(tr(
      "Train without the mask, {epochs} epochs on {pairs} pairs with relative positions (\"the next word\" is a fixed "
      "distance), and the decoder finds the answer in its own input: word $t$ of the output is word $t + 1$ of its "
      "input. The loss falls fast. During generation the next word is not there to be copied. For comparison there is "
      "the model with relative positions from the table of positions, which was trained with the mask.",
      "epochs"_a = epochs, "pairs"_a = grouped(static_cast<int64_t>(pairs))));
  named_table(page,
              {judged_name(page), tr("nats per token, sees all"), tr("nats per token, causal"), tr("mean d2l-bleu")},
              {{tr("trained without a mask"), {nats(open), nats(causal), nats(bleu)}},
               {tr("trained with it, {epochs} epochs on {pairs}", "epochs"_a = like.run.config().training.epochs,
                   "pairs"_a = grouped(like.run.training_pairs())),
                {nats(loss_with(network(like), batches, pad, Mask::none())), nats(honest), nats(honest_bleu)}}});
  page.print(tr("{source}\n  wanted   {target}\n  written  {written}", "source"_a = judge.source[0],
                "target"_a = judge.target[0], "written"_a = cut(written[0])));
  page.claim(
      open < 0.7 * honest && causal > 2 * open && bleu < honest_bleu,
      tr("A low loss that means nothing: the copying model's is far below the honest model's as long as it may look "
         "ahead, and several times as high when it may not."),
      tr("copying model {open:.3f}, honest model {honest:.3f}; copying model with the mask {causal:.3f}; d2l-bleu "
         "{bleu:.3f} and {honest_bleu:.3f}",
         "open"_a = open, "honest"_a = honest, "causal"_a = causal, "bleu"_a = bleu, "honest_bleu"_a = honest_bleu));
}

void cache_step(Page& page) {
  page.heading(tr("The cache"));
  page.say(tr(
      "During generation the decoder need not recompute old positions: their keys and values do not change, since no "
      "position sees a later one. It caches them and computes one new row per step. (The book caches the inputs of the "
      "blocks and projects them again at every step; here the projected keys and values are cached, and those of the "
      "encoder's outputs are computed once.)"));
  const Trained& model = trained(page, Kind::model);
  const Transformer& net = network(model);
  const TranslationBatch b = batches_of(model, judged(page, Judge::model))[0];
  const Tensor whole = net.logits(b.source, b.source_lens, b.target_in, Run{});
  auto state = net.start(b.source, b.source_lens, Run{});
  double most = 0, largest = 0;
  const int64_t steps = whole.size(1), words = whole.size(2);
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor logits = net.step(state, column(b.target_in, t), Run{});
    for (int64_t r = 0; r < whole.size(0); ++r)
      for (int64_t w = 0; w < words; ++w) {
        const double x = whole.ptr()[(r * steps + t) * words + w];
        most = std::max(most, std::abs(x - logits.ptr()[r * words + w]));
        largest = std::max(largest, std::abs(x));
      }
  }
  // Sums of up to 64 terms in another order, through two layers: some dozens of roundings of 6e-8 each.
  page.claim(most < 1e-5 * std::max(largest, 10.0),
             tr("Step by step with the cache, the scores are those of the whole prefix, up to rounding: within a "
                "hundred-thousandth of the largest."),
             tr("scores up to {largest:.1f} differ by at most {most}", "largest"_a = largest, "most"_a = tiny(most)));
  constexpr int32_t kLong = 96;
  Ids ids = Ids::empty({1, kLong});
  std::fill_n(ids.mutable_ptr(), kLong, 4);
  const Ids lens({1}, {kLong});
  // On one core, measured in turn so that other load on the machine affects both; the encoder runs once in each.
  const SerialScope serial;
  double kept = 1e9, again = 1e9;
  for (int repeat = 0; repeat < 5; ++repeat) {
    kept = std::min(kept, thread_seconds([&] {
                      auto s = net.start(ids, lens, Run{});
                      for (int64_t t = 0; t < kLong; ++t) net.step(s, column(ids, t), Run{});
                    }));
    again = std::min(
        again, thread_seconds([&] {
          const Tensor memory = net.encoder(ids, lens, Run{});
          for (int64_t t = 1; t <= kLong; ++t) {
            const Tensor x = net.decoder.features(ids.part(0, {1, t}), {memory, Mask::valid_lens(lens)}, Run{});
            net.decoder.output(x.part((t - 1) * x.size(2), {1, x.size(2)}));
          }
        }));
  }
  page.claim(
      again > 1.5 * kept,
      tr("Ninety-six words cost the decoder 96 rows with the cache and 1 + 2 + ... + 96 = 4,656 without it: the cache "
         "is faster, with the encoder run once in both."),
      tr("{kept:.1f} ms with the cache, {again:.1f} ms without", "kept"_a = 1e3 * kept, "again"_a = 1e3 * again));
}

void inference_positions_step(Page& page) {
  page.heading(tr("What is the position of the word being generated?"));
  page.say(tr(
      "With a cache the decoder is fed one token per step. The book's code adds the positional encoding to this input, "
      "and a sequence of one token has position 0: **during generation every word is at position 0**, although in "
      "training they were at 0, 1, 2, ... The book's published translations were made this way. Here the step number "
      "is the position; `book.positions` (`TransformerDecoder::advance_positions = false`) reproduces the book."));
  const Trained& model = trained(page, Kind::model);
  const Transformer& right = network(model);
  Transformer book = right;  // the same weights
  book.decoder.advance_positions = false;
  const SentencePairs &pairs = shown_pairs(page), &judge = judged(page, Judge::model);
  const auto ours = written_by(right, model, pairs.source), theirs = written_by(book, model, pairs.source);
  std::vector<Text> out;
  for (size_t i = 0; i < ours.size(); ++i)
    out.push_back(
        tr("{source}\n"
           "  wanted            {wanted}\n"
           "  advancing  {advancing_score:.3f}  {advancing}\n"
           "  book's     {book_score:.3f}  {book}",
           "source"_a = pairs.source[i], "wanted"_a = pairs.target[i],
           "advancing_score"_a = d2l_bleu(ours[i], pairs.target[i]), "advancing"_a = ours[i],
           "book_score"_a = d2l_bleu(theirs[i], pairs.target[i]), "book"_a = cut(theirs[i])));
  page.print(in_lines(out));
  const auto batches = batches_of(model, judge);
  const int32_t pad = model.run.tokenizers().target.pad();
  const double right_loss = stepped_loss(right, batches, pad), book_loss = stepped_loss(book, batches, pad);
  const auto right_text = written_by(right, model, judge.source), book_text = written_by(book, model, judge.source);
  const double differ = 1 - share_exact(book_text, right_text);
  named_table(
      page, {judged_name(page), tr("nats per token"), tr("exact")},
      {{tr("positions advance"), {nats(right_loss), percent(quality(page, Judge::model, right_text).exact)}},
       {tr("position 0, as in the book"), {nats(book_loss), percent(quality(page, Judge::model, book_text).exact)}}});
  page.claim(right_text == translate(model, judge.source),
             tr("The decoding loop of this page gives the same translations as `qkv translate`."),
             tr("the same in all {sentences} sentences", "sentences"_a = judge.size()));
  const TranslationBatch& b = batches[0];
  auto state = right.start(b.source, b.source_lens, Run{}), book_state = state;
  double first = 0, second = 0;
  for (double* difference : {&first, &second}) {
    const Ids fed = column(b.target_in, difference == &first ? 0 : 1);
    *difference = largest_difference(right.step(state, fed, Run{}), book.step(book_state, fed, Run{}));
  }
  page.claim(first == 0 && second > 0,
             tr("The scores of the first word are the same, to the bit; from the second word on they differ."),
             tr("first word: apart by {first}; second: by up to {second:.3f}", "first"_a = first, "second"_a = second));
  if (page.data().empty())
    page.claim(book_loss > 1.5 * right_loss,
               tr("The model gives the right translations a lower probability when all their words are at position 0."),
               tr("{book_loss} nats per token at position 0, {right_loss} at their own",
                  "book_loss"_a = nats(book_loss), "right_loss"_a = nats(right_loss)));
  say_how_strong_positions_are(page, right, differ);
}

}  // namespace qkv::labs::transformer
