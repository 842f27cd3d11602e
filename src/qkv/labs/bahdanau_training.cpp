// Lab 10.4: baseline and attention on the same data, and their translations.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/bahdanau.h"

namespace qkv::labs::bahdanau {
namespace {

// Loss after epoch 10, 20, ... of the PyTorch run that the book shows, read off its figures.
const std::vector<double> kBookBaseline = {.2048, .1440, .1092, .0844, .0665, .0545, .0463, .0410, .0359, .0331,
                                           .0303, .0281, .0267, .0252, .0246, .0235, .0226, .0220, .0218, .0209,
                                           .0202, .0203, .0200, .0202, .0205, .0196, .0197, .0194, .0192, .0191};
const std::vector<double> kBookAttention = {.2025, .1350, .1004, .0773, .0620, .0514, .0447, .0398, .0348,
                                            .0332, .0297, .0281, .0265, .0249, .0248, .0236, .0232, .0222,
                                            .0217, .0216, .0211, .0212, .0212, .0205, .0208};

Series book_curve(const Label& name, const std::vector<double>& losses, std::string_view format) {
  Series out{name, {}, losses, line_style(format)};
  for (size_t i = 0; i < losses.size(); ++i) out.x.push_back(10 * static_cast<double>(i + 1));
  return out;
}

// Leaves out the first 4 % of a long training, which would squeeze the rest of the curve.
Series curve(const Label& name, const std::vector<double>& epochs, const std::vector<double>& losses,
             std::string_view format) {
  const auto skip = static_cast<std::ptrdiff_t>(epochs.size() / 25);
  return {name, {epochs.begin() + skip, epochs.end()}, {losses.begin() + skip, losses.end()}, line_style(format)};
}

void train_on_book(Page& page, const Trained& baseline, const Trained& attention) {
  page.say(tr(
      "The book's settings: 601 pairs, width 32, two layers, dropout 0.1, batches of 64, Adam with rate 0.005, "
      "gradients clipped at 1; 300 epochs for the baseline, 250 with attention. The dotted curves are the book's own "
      "PyTorch run."));
  page.draw("losses",
            curves({curve(tr("baseline"), baseline.epochs, baseline.losses, "b-"),
                    curve(tr("attention"), attention.epochs, attention.losses, "r-"),
                    book_curve(tr("baseline, book"), kBookBaseline, "b:"),
                    book_curve(tr("attention, book"), kBookAttention, "r:")},
                   {.label = tr("epoch")}, {.label = tr("loss (book's unit)"), .scale = AxisScale::log}),
            tr("Training loss in the book's unit: the loss per token divided by 10."));
  std::vector<double> baselines, attentions;
  for (const BookRun& run : book_runs(page)) {
    baselines.push_back(run.baseline_loss);
    attentions.push_back(run.attention_loss);
  }
  const double a = median(attentions), b = median(baselines);
  page.beside_the_book(tr("loss of the baseline, book's unit"), "0.019", rounded(b, 4));
  page.beside_the_book(tr("loss with attention, book's unit"), "0.021", rounded(a, 4));
  named_table(
      page,
      {verbatim(""), tr("loss, here, median of 5 seeds"), tr("loss, book"), tr("21 published runs"),
       tr("tokens/s, here, one core"), tr("tokens/s, book's GPU")},
      {{tr("baseline"),
        {rounded(b, 4), "0.019", "0.019–0.021", grouped(static_cast<int64_t>(baseline.tokens_per_second)), "12,745"}},
       {tr("attention"),
        {rounded(a, 4), "0.021", "0.019–0.022", grouped(static_cast<int64_t>(attention.tokens_per_second)), "4,949"}}});
  if (is_books_data(page))
    page.claim(
        a > 0.018 && a < 0.023 && b > 0.0161 && b < 0.023,
        tr("The medians of five seeds end where the book's runs end: attention between 0.018 and 0.023, the baseline "
           "between the floor of 0.0161 and 0.023."),
        tr("attention {attention:.4f}, baseline {baseline:.4f}", "attention"_a = a, "baseline"_a = b));
}

void train_on_built_in(Page& page, const Trained& baseline, const Trained& attention) {
  const TranslationConfig& c = attention.run.config();
  page.say(tr(
      "{pairs} pairs, width {width}, one layer, a bidirectional encoder, batches of {rows}, Adam with a rate that "
      "falls from {rate} along a cosine, {epochs} epochs: the same for both. Every validation sentence has a pair of "
      "words that no training sentence combines. (`qkv train --preset bahdanau` does the same with more data and a "
      "wider model.)",
      "pairs"_a = grouped(attention.run.training_pairs()), "width"_a = c.seq2seq().hidden,
      "rows"_a = c.training.batch_rows, "rate"_a = c.training.rate, "epochs"_a = c.training.epochs));
  page.draw(
      "losses",
      curves({curve(tr("baseline, training"), baseline.epochs, baseline.losses, "b-"),
              curve(tr("baseline, validation"), baseline.epochs, baseline.valid_losses, "b--"),
              curve(tr("attention, training"), attention.epochs, attention.losses, "r-"),
              curve(tr("attention, validation"), attention.epochs, attention.valid_losses, "r--")},
             {.label = tr("epoch")}, {.label = tr("loss, nats per token"), .low = 0.02, .scale = AxisScale::log}),
      tr("The baseline learns its training sentences but does worse on new ones: it has to pack a sentence into one "
         "vector."));
  const std::vector<AlignedPair>& held = held_out(page);
  const SentencePairs test = sentences_of(held);
  const double exact_a = share_exact(translate(attention, test.source), test.target),
               exact_b = share_exact(translate(baseline, test.source), test.target);
  const auto row = [](const Trained& t, double exact) {
    return std::vector<std::string>{grouped(t.run.model().parameters().count()), rounded(t.losses.back(), 3),
                                    rounded(*std::min_element(t.valid_losses.begin(), t.valid_losses.end()), 3),
                                    percent(exact), grouped(static_cast<int64_t>(t.tokens_per_second))};
  };
  named_table(page,
              {verbatim(""), tr("parameters"), tr("training loss"), tr("validation loss"),
               tr("held-out sentences exact"), tr("tokens/s, one core")},
              {{tr("baseline"), row(baseline, exact_b)}, {tr("attention"), row(attention, exact_a)}});
  page.claim(attention.valid_losses.back() < 0.7 * baseline.valid_losses.back(),
             tr("On new sentences attention has the lower loss, by more than 30 %."),
             tr("attention {attention:.3f}, baseline {baseline:.3f} nats per token",
                "attention"_a = attention.valid_losses.back(), "baseline"_a = baseline.valid_losses.back()));
  page.claim(exact_a > exact_b + 0.1, tr("It translates far more of the held-out sentences without a mistake."),
             tr("{attention} with attention, {baseline} without, of {sentences} sentences",
                "attention"_a = percent(exact_a), "baseline"_a = percent(exact_b), "sentences"_a = test.size()));
}

// The book's score, by hand.
void bleu_example(Page& page) {
  page.say(tr(
      "The numbers are the book's own score, which is not the usual BLEU: the precisions $p_n$ of single words ($n = "
      "1$) and of word pairs ($n = 2 = k$), times a penalty for short output. An exact translation scores 1."));
  page.formula("\\exp(\\min(0, 1 - L / L')) \\prod_{n=1}^{k} p_n^{1/2^n}");
  page.fact(
      tr("The book's example: reference A B C D E F ($L = 6$), output A B B C D ($L' = 5$). $p_1 = 4/5$, $p_2 = 3/4$, "
         "penalty $\\exp(-1/5)$."),
      tr("score {score:.3f}", "score"_a = d2l_bleu("A B B C D", "A B C D E F")));
}

// The four sentences with every seed, and what they can show.
void say_seeds(Page& page) {
  std::vector<std::vector<std::string>> rows;
  std::vector<double> plain, attended, plain_known, attended_known;
  const auto four = book_sentences();
  const auto scores = [&](const std::vector<std::string>& written, std::vector<double>& all,
                          std::vector<double>& known) {
    double sum = 0, without = 0;  // the third is the one that is not in the training set
    for (size_t i = 0; i < four.size(); ++i) {
      const double score = d2l_bleu(written[i], four[i].target);
      sum += score / 4;
      without += i == 2 ? 0 : score / 3;
    }
    all.push_back(sum);
    known.push_back(without);
    return rounded(sum, 3);
  };
  for (const BookRun& run : book_runs(page))
    rows.push_back({std::to_string(run.seed), scores(run.baseline, plain, plain_known), run.baseline[2],
                    scores(run.attention, attended, attended_known), run.attention[2]});
  page.say(
      tr("One seed proves little. The mean score of the four sentences and the translation of `he's calm .`, with five "
         "seeds:"));
  page.table({tr("seed"), tr("baseline, mean"), tr("baseline, he's calm ."), tr("attention, mean"),
              tr("attention, he's calm .")},
             rows);
  named_table(page, {tr("mean of the four"), tr("here, median of 5 seeds"), tr("book"), tr("21 published runs")},
              {{tr("baseline"), {rounded(median(plain), 3), "0.776", "0.677"}},
               {tr("attention"), {rounded(median(attended), 3), "0.914", "0.883"}}});
  if (is_books_data(page))
    page.claim(median(plain_known) > 0.99 && median(attended_known) > 0.99,
               tr("In the median both decoders translate the three training sentences exactly."),
               tr("mean score of the three: baseline {baseline:.3f}, attention {attention:.3f}",
                  "baseline"_a = median(plain_known), "attention"_a = median(attended_known)));
  page.say(tr(
      "So the only difference is one sentence that no model was taught, and luck decides it: these four sentences "
      "cannot show whether attention helps. (The book's baseline scores lower for another reason: in translation its "
      "context drifts away from the source; see above.) Attention pays off on longer sentences and on new ones: "
      "without `--data`, this lab translates held-out sentences, of which the baseline gets one or two in ten right "
      "and attention about six."));
}

}  // namespace

void training_step(Page& page) {
  page.heading(tr("Training: baseline against attention"));
  const Trained& baseline = trained(page, Kind::baseline);
  const Trained& attention = trained(page, Kind::attention);
  if (page.data().empty())
    train_on_built_in(page, baseline, attention);
  else
    train_on_book(page, baseline, attention);
  const double ratio = baseline.tokens_per_second / attention.tokens_per_second;
  page.say(tr(
      "The book notes that attention makes training much slower: by a factor of 2.6 on its GPU, where every decoder "
      "step is a handful of small kernels. Here the decoder with its attention is one fused operation on the CPU, and "
      "the ratio in this run was {ratio:.2f} (processor time of the fastest epoch, one core).",
      "ratio"_a = ratio));
}

void sentences_step(Page& page) {
  page.heading(tr("Four sentences"));
  std::vector<std::string> source, wanted;
  if (page.data().empty()) {
    page.say(
        tr("From the held-out set, the first sentence with a question, with a negation, with a swap of adjective and "
           "noun, and with a past tense."));
    for (const char* sign : {" ?", " not ", " red ", " did not "}) {
      const auto& held = held_out(page);
      const auto fits = [&](const AlignedPair& p) {
        return p.source.find(sign) != p.source.npos &&
               std::find(source.begin(), source.end(), p.source) == source.end();
      };
      if (const auto at = std::find_if(held.begin(), held.end(), fits); at != held.end()) {
        source.push_back(at->source);
        wanted.push_back(at->target);
      }
    }
  } else {
    page.say(
        tr("The first two and the last are in the training set, with this translation only. `he's calm .` is not: no "
           "recurrent model in any published run of the book got it right."));
    for (const BookSentence& s : book_sentences()) {
      source.emplace_back(s.source);
      wanted.emplace_back(s.target);
    }
  }
  const auto plain = translate(trained(page, Kind::baseline), source),
             attended = translate(trained(page, Kind::attention), source);
  std::vector<Text> out;
  for (size_t i = 0; i < source.size(); ++i)
    out.push_back(tr(
        "{source}\n"
        "  reference         {reference}\n"
        "  baseline   {baseline_score:.3f}  {baseline}\n"
        "  attention  {attention_score:.3f}  {attention}",
        "source"_a = source[i], "reference"_a = wanted[i], "baseline_score"_a = d2l_bleu(plain[i], wanted[i]),
        "baseline"_a = plain[i], "attention_score"_a = d2l_bleu(attended[i], wanted[i]), "attention"_a = attended[i]));
  page.print(in_lines(out));
  bleu_example(page);
  if (!page.data().empty()) say_seeds(page);
}

}  // namespace qkv::labs::bahdanau
