// Lab 10.7: the book's model is trained, and translates four sentences.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/transformer.h"

namespace qkv::labs::transformer {
namespace {

// Loss after epoch 10, 20, ... of the PyTorch run that the book shows, read off its figure.
const std::vector<double> kBook = {.1811, .1265, .0969, .0757, .0634, .0535, .0525, .0459, .0407, .0414,
                                   .0404, .0366, .0357, .0346, .0365, .0341, .0317, .0307, .0327, .0296};

void train_on_book(Page& page, const Trained& model) {
  page.say(tr(
      "The book's settings: 601 pairs, 200 epochs of batches of 64, dropout 0.1, Adam with rate 0.005, gradients "
      "clipped at 1, Glorot's initialisation. The dotted curve is the book's own PyTorch run. One thing differs from "
      "the book: the model used below is the mean of the weights after each of the last 20 epochs."));
  Series ours{tr("here"),
              {model.epochs.begin() + 4, model.epochs.end()},
              {model.losses.begin() + 4, model.losses.end()},
              line_style("r-")};
  Series book{tr("book"), {}, kBook, line_style("k:")};
  for (size_t i = 0; i < kBook.size(); ++i) book.x.push_back(10 * static_cast<double>(i + 1));
  page.draw("loss",
            curves({ours, book}, {.label = tr("epoch")}, {.label = tr("loss (book's unit)"), .scale = AxisScale::log}),
            tr("Training loss in the book's unit: the loss per token divided by 10, with dropout on."));
  const double last = model.losses.back();
  page.beside_the_book(tr("loss of the Transformer, book's unit"), "0.030", rounded(last, 4));
  named_table(page, {verbatim(""), tr("loss"), tr("tokens/s")},
              {{tr("here, one core"), {rounded(last, 4), grouped(static_cast<int64_t>(model.tokens_per_second))}},
               {tr("book, PyTorch on a GPU"), {"0.030", "5,203"}},
               {tr("21 published runs"), {"0.030–0.033", "4,006–5,993"}}});
  if (is_books_data(page))
    page.claim(
        last > 0.0161 && last < 0.036,
        tr("The loss ends where the published runs end, to within about a tenth: below 0.036 and above the floor of "
           "0.0161 set by sentences with several translations."),
        rounded(last, 4));
}

void train_on_built_in(Page& page, const Trained& model) {
  const TranslationConfig& c = model.run.config();
  const SentencePairs& held = judged(page, Judge::model);
  page.say(
      tr("The book's model, 32 wide with two layers and 4 heads, on {pairs} pairs of the built-in corpus: batches of "
         "{rows}, {epochs} epochs, Adam with a rate that rises to {rate} in {warmup} steps and falls along a cosine, "
         "no dropout. Validation is on {validation} sentences with a pair of words that no training sentence combines. "
         "Translations are judged on {sentences} held-out sentences of the same kind, which neither training nor "
         "validation has seen. (`--data fra.txt` does the book's experiment; `qkv train --preset transformer` is the "
         "same on more data with a wider model.)",
         "pairs"_a = grouped(model.run.training_pairs()), "rows"_a = c.training.batch_rows,
         "epochs"_a = c.training.epochs, "rate"_a = c.training.rate, "warmup"_a = c.training.warmup,
         "validation"_a = grouped(model.run.validation_pairs()), "sentences"_a = held.size()));
  page.draw("loss",
            curves({{tr("training"), model.epochs, model.losses, line_style("r-")},
                    {tr("validation"), model.epochs, model.valid_losses, line_style("r--")}},
                   {.label = tr("epoch")}, {.label = tr("loss, nats per token"), .scale = AxisScale::log}),
            tr("Loss after every epoch."));
  const double exact = quality(page, Judge::model, translate(model, held.source)).exact;
  page.table({tr("parameters"), tr("training loss"), tr("validation loss"), tr("held-out sentences exact"),
              tr("tokens/s, one core")},
             {{grouped(model.run.model().parameters().count()), rounded(model.losses.back(), 3),
               rounded(model.valid_losses.back(), 3), percent(exact),
               grouped(static_cast<int64_t>(model.tokens_per_second))}});
  page.claim(
      model.valid_losses.back() < 0.25 * model.valid_losses.front() && exact > 0.5,
      tr("The loss on new sentences falls to less than a quarter of what it was after one epoch, and more than half of "
         "them are translated without a mistake."),
      tr("loss {first:.3f} to {last:.3f}; {exact} of {sentences} exact", "first"_a = model.valid_losses.front(),
         "last"_a = model.valid_losses.back(), "exact"_a = percent(exact), "sentences"_a = held.size()));
}

}  // namespace

void training_step(Page& page) {
  page.heading(tr("Training"));
  const Trained& model = trained(page, Kind::model);
  if (page.data().empty())
    train_on_built_in(page, model);
  else
    train_on_book(page, model);
}

void sentences_step(Page& page) {
  page.heading(tr("Four sentences"));
  const bool built_in = page.data().empty();
  if (built_in)
    page.say(tr(
        "The first held-out sentences with a question, a negation, a swap of adjective and noun, and a past tense."));
  else
    page.say(
        tr("`he's calm .` is not in the training set, and no recurrent model in any published run of the book got it "
           "right. A Transformer often does: 18 of 21 PyTorch runs."));
  const SentencePairs& pairs = shown_pairs(page);
  const auto written = translate(trained(page, Kind::model), pairs.source);
  std::vector<Text> out;
  double mean = 0;
  for (size_t i = 0; i < written.size(); ++i) {
    const double score = d2l_bleu(written[i], pairs.target[i]);
    mean += score / static_cast<double>(written.size());
    out.push_back(
        tr("{source}\n"
           "  wanted  {wanted}\n"
           "  {score:.3f}   {written}",
           "source"_a = pairs.source[i], "wanted"_a = pairs.target[i], "score"_a = score, "written"_a = written[i]));
  }
  page.print(in_lines(out));
  page.say(tr("The number is the book's own score (`d2l-bleu`, see lab 10.4): 1 for an exact translation."));
  if (built_in) return;
  const auto runs = [](int64_t exact, int64_t all) {
    return tr("{exact} of {runs}", "exact"_a = exact, "runs"_a = all);
  };
  page.word_table({tr("mean of the four"), verbatim("d2l-bleu"), tr("all four exact")},
                  {{tr("here, the mean of 20 epochs' weights"), rounded(mean, 3), runs(mean == 1, 1)},
                   {tr("book"), verbatim("1.000"), runs(1, 1)},
                   {tr("21 published PyTorch runs"), verbatim("0.940"), runs(15, 21)},
                   {tr("the same with Bahdanau attention"), verbatim("0.883"), runs(0, 21)}});
  page.say(tr(
      "One run with one seed proves little: the published runs differ among themselves by more than most changes one "
      "would like to measure with them. Twenty seeds of this program (docs/results/d2l-transformer.md) have a mean of "
      "0.966."));
}

}  // namespace qkv::labs::transformer
