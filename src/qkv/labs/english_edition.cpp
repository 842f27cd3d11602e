// Labs 10.4 and 10.7: what the English edition trains, and how it compares.
#include "qkv/labs/english_edition.h"

#include <algorithm>

#include "qkv/data/translation.h"
#include "qkv/eval/d2l_bleu.h"
#include "qkv/labs/bahdanau.h"
#include "qkv/labs/show.h"
#include "qkv/labs/transformer.h"
#include "qkv/tasks/presets.h"

namespace qkv::labs {
namespace {

constexpr int64_t kPairs = 512;

std::string from_to(double from, double to) { return rounded(from, 2) + " → " + rounded(to, 2); }

void show_losses(Page& page, const std::vector<EnglishRun>& runs) {
  const bool book = !page.data().empty();
  std::vector<Text> head{verbatim(""), tr("parameters"), tr("training loss, first → last epoch"),
                         tr("validation loss, least (epoch) → last")};
  if (book) {
    head.push_back(tr("book: training"));
    head.push_back(tr("book: validation"));
  }
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  for (const EnglishRun& run : runs) {
    const Trained& t = *run.model;
    const auto least = std::min_element(t.valid_losses.begin(), t.valid_losses.end());
    rows.push_back({run.name,
                    {grouped(t.run.model().parameters().count()), from_to(t.losses.front(), t.losses.back()),
                     rounded(*least, 2) + " (" + std::to_string(least - t.valid_losses.begin() + 1) + ") → " +
                         rounded(t.valid_losses.back(), 2)}});
    if (!book) continue;
    rows.back().second.push_back(from_to(run.book_losses[0], run.book_losses[1]));
    rows.back().second.push_back(from_to(run.book_losses[2], run.book_losses[3]));
  }
  named_table(page, head, rows);
}

void show_sentences(Page& page, const std::vector<EnglishRun>& runs) {
  std::vector<Text> lines;
  for (const EnglishRun& run : runs) {
    std::vector<std::string> source;
    for (const BookSentence& s : book_sentences()) source.emplace_back(s.source);
    const auto written = translate(*run.model, source);
    lines.push_back(run.name);
    for (size_t i = 0; i < written.size(); ++i) {
      const std::string wanted(book_sentences()[i].target);
      lines.push_back(tr("  {source}: {written} ({score:.3f}); book: {book} ({book_score:.3f})", "source"_a = source[i],
                         "written"_a = written[i], "score"_a = d2l_bleu(written[i], wanted),
                         "book"_a = run.book_sentences[i], "book_score"_a = d2l_bleu(run.book_sentences[i], wanted)));
    }
  }
  page.print(in_lines(lines));
}

}  // namespace

TranslationConfig english_config(const Page& page, const char* preset) {
  TranslationConfig c = translation_preset(preset);
  c.training.seed = static_cast<int64_t>(page.seed());
  if (!page.data().empty()) {
    c.data.pairs = page.data();
    return c;
  }
  c.data = translation_preset("bahdanau").data;
  c.data.corpus_size = 3000;
  c.data.corpus_seed = static_cast<int64_t>(page.seed());
  c.data.limit = kPairs;
  c.book.num_steps = c.decoding.max_length = 18;  // no sentence is longer
  return c;
}

bool has_english_data(const Page& page) {
  return page.data().empty() || std::ssize(read_pairs(page.data(), 2 * kPairs).source) > kPairs + 100;
}

void show_english(Page& page, const std::vector<EnglishRun>& runs) {
  const auto& config = runs[0].model->run.config();
  page.say(
      page.data().empty()
          ? tr("That edition trains on {pairs} pairs for {epochs} epochs, in batches of {rows}, with width 256, two "
               "layers and dropout 0.2, and validates. The same settings here on {pairs} pairs of the built-in corpus; "
               "with `--data fra.txt` on its own pairs, beside its figures. It forgets to mask the loss in its "
               "sections 11.4 and 11.7; here padding never counts.",
               "pairs"_a = runs[0].model->run.training_pairs(), "epochs"_a = config.training.epochs,
               "rows"_a = config.training.batch_rows)
          : tr("That edition trains on {pairs} pairs for {epochs} epochs, in batches of {rows}, with width 256, two "
               "layers and dropout 0.2, and validates. Its figures are those of its PyTorch run. It forgets to mask "
               "the loss in its sections 11.4 and 11.7, so its losses there are smaller; here padding never counts.",
               "pairs"_a = runs[0].model->run.training_pairs(), "epochs"_a = config.training.epochs,
               "rows"_a = config.training.batch_rows));
  show_losses(page, runs);
  if (!page.data().empty()) show_sentences(page, runs);
  std::vector<Text> measured;
  bool apart = true;
  for (const EnglishRun& run : runs) {
    const double seen = run.model->losses.back(), fresh = run.model->valid_losses.back();
    apart &= fresh > 1.5 * seen;
    measured.push_back(
        tr("{name}: {seen:.2f} and {fresh:.2f}", "name"_a = run.name, "seen"_a = seen, "fresh"_a = fresh));
  }
  page.claim(apart,
             tr("So few pairs are learned by heart: the loss on new sentences ends at more than one and a half times "
                "that on the training sentences."),
             in_list(measured));
}

namespace bahdanau {

void english_step(Page& page) {
  if (!has_english_data(page)) return;
  page.heading(tr("With the settings of the English edition (10.7 and 11.4 there)"));
  show_english(page, {{tr("without attention"),
                       &trained(page, Kind::english_baseline),
                       {4.73, 0.24, 2.54, 3.36},
                       {"va !", "j'ai perdu .", "elle court .", "je suis chez moi ."}},
                      {tr("with attention"),
                       &trained(page, Kind::english),
                       {4.41, 0.106, 1.39, 1.85},
                       {"va !", "j'ai perdu .", "il court .", "je suis chez moi ."}}});
}

}  // namespace bahdanau

namespace transformer {

void english_step(Page& page) {
  if (!has_english_data(page)) return;
  page.heading(tr("With the settings of the English edition (11.7 there)"));
  show_english(page, {{tr("Transformer"),
                       &trained(page, Kind::english),
                       {4.63, 0.183, 1.73, 1.86},
                       {"va !", "je perdu .", "il est mouillé .", "je suis chez moi ."}}});
}

}  // namespace transformer
}  // namespace qkv::labs
