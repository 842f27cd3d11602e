// Lab 10.4: a loss that includes the padding.
#include <fmt/format.h>

#include <algorithm>

#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/labs/bahdanau.h"
#include "qkv/labs/work.h"

namespace qkv::labs::bahdanau {
namespace {

constexpr size_t kSeeds = 3;

double mean_words(const std::vector<std::string>& sentences) {
  double words = 0;
  for (const std::string& s : sentences) words += static_cast<double>(split_blanks(s).size());
  return words / static_cast<double>(std::max<size_t>(sentences.size(), 1));
}

// A way to train, and its results with each seed.
struct Way {
  bool masked, mixed;  // mixed: batches of sentences of any length
  std::vector<double> reported = std::vector<double>(kSeeds), nats = reported, words = reported;
};

TranslationConfig config_of_way(const Page& page, const Way& way, size_t seed) {
  TranslationConfig c = config_of(page, Kind::reference);
  if (page.data().empty()) {
    c.data.corpus_size = 2000;
    c.training.epochs = 6;
    c.training.by_length = !way.mixed;
  }
  c.book.mask_loss = way.masked;
  c.training.seed += static_cast<int64_t>(seed);
  return c;
}

void train_all(const Page& page, std::vector<Way>& ways) {
  Work work(page, training_of({tr("with and without masking the loss")}), ways.size() * kSeeds);
  parallel_for(static_cast<int64_t>(ways.size() * kSeeds), 1e12, [&](int64_t i) {
    const SerialScope serial;
    WorkObserver follower(work, static_cast<size_t>(i));
    const size_t seed = static_cast<size_t>(i) % kSeeds;
    Way& way = ways[static_cast<size_t>(i) / kSeeds];
    const auto model = train(config_of_way(page, way, seed), &follower);
    const TranslationText& text = model->run.text();
    const SentencePairs& judge = text.valid.size() > 0 ? text.valid : text.train;
    way.reported[seed] = model->losses.back();
    way.nats[seed] = forced_loss(*model, judge);
    way.words[seed] = mean_words(translate(*model, judge.source));
  });
}

// The loss on real words, unmasked divided by masked: the median over the seeds.
double ratio(const Way& open, const Way& masked) {
  std::vector<double> out(kSeeds);
  for (size_t i = 0; i < kSeeds; ++i) out[i] = open.nats[i] / masked.nats[i];
  return median(out);
}

std::vector<std::string> row(const Way& way) {
  return {rounded(median(way.reported), 3), rounded(median(way.nats), 3),
          fmt::format("{:.3f}–{:.3f}", *std::min_element(way.nats.begin(), way.nats.end()),
                      *std::max_element(way.nats.begin(), way.nats.end())),
          rounded(median(way.words), 2)};
}

void say_padding(Page& page) {
  const TranslationRun& run = trained(page, Kind::reference).run;
  const int64_t steps = run.config().book.num_steps;
  double real = 0;
  const SentencePairs& text = run.text().train;
  for (const std::string& s : text.target) real += static_cast<double>(run.tokenizers().target.encode(s).size()) + 1;
  const std::string share = percent(1 - real / static_cast<double>(text.size() * steps));
  page.say(tr(
      "Every target is padded to {steps} positions, and {share} of all positions are padding. Without the mask each of "
      "them is a word to learn, and an easy one: `<eos>` and `<pad>` are always followed by `<pad>`.",
      "steps"_a = steps, "share"_a = share));
}

void judge_built_in(Page& page, const Way& masked, const Way& open, const Way& masked_mixed, const Way& open_mixed) {
  page.say(tr(
      "The mean over all positions is smaller, because the easy positions dilute it. (The English edition does this in "
      "its sections 11.4 and 11.7, and prints losses below the floor of the masked loss.)"));
  page.claim(median(open_mixed.reported) < 0.7 * median(masked_mixed.reported) &&
                 median(open.reported) < 0.7 * median(masked.reported),
             tr("Unmasked training reports a far lower loss."),
             tr("{unmasked:.3f} unmasked, {masked:.3f} masked", "unmasked"_a = median(open.reported),
                "masked"_a = median(masked.reported)));
  page.say(tr(
      "On real words the two are close: the loss of the unmasked model is {similar:.2f} times that of the masked one "
      "with batches of similar length and {mixed:.2f} times with mixed batches (the table shows how far seeds differ). "
      "Padding teaches nothing about words, but it changes how much each word counts. The masked loss is a mean over "
      "the real words of a batch, so in batches of similar length a word in a short sentence counts for more than a "
      "word in a long one; the unmasked loss divides every batch by the same number of positions, so every word counts "
      "the same, as it does in the nats column. That is one reason why the unmasked model may come out ahead. The "
      "effect is weaker in batches of mixed lengths, which all have about the same number of words; the difference "
      "that remains there is small, and these few seeds do not show where it comes from.",
      "similar"_a = ratio(open, masked), "mixed"_a = ratio(open_mixed, masked_mixed)));
  const double fair = ratio(open_mixed, masked_mixed);
  page.claim(fair > 0.85 && fair < 1.15,
             tr("With batches of mixed lengths the two differ by less than 15 % on real words."),
             tr("unmasked over masked: {ratio:.2f}, median of {seeds} seeds", "ratio"_a = fair, "seeds"_a = kSeeds));
}

}  // namespace

void unmasked_step(Page& page) {
  page.exercise("9.7.2");
  say_padding(page);
  const bool built_in = page.data().empty();
  std::vector<Way> ways = {{true, false}, {false, false}};
  if (built_in) {
    ways.push_back({true, true});
    ways.push_back({false, true});
  }
  train_all(page, ways);
  const TranslationConfig c = config_of_way(page, ways[0], 0);
  page.say(built_in ? tr("Medians of {seeds} training runs of {epochs} epochs each, with batches of similar length as "
                         "elsewhere in this lab, and with batches of mixed lengths:",
                         "seeds"_a = kSeeds, "epochs"_a = c.training.epochs)
                    : tr("Medians of {seeds} training runs of {epochs} epochs each:", "seeds"_a = kSeeds,
                         "epochs"_a = c.training.epochs));
  std::vector<std::pair<Text, std::vector<std::string>>> rows = {{tr("masked"), row(ways[0])},
                                                                 {tr("unmasked"), row(ways[1])}};
  if (built_in) {
    rows.push_back({tr("masked, mixed lengths"), row(ways[2])});
    rows.push_back({tr("unmasked, mixed lengths"), row(ways[3])});
  }
  named_table(page,
              {verbatim(""), built_in ? tr("loss reported") : tr("loss reported, book's unit"),
               built_in ? tr("nats per real word, new sentences") : tr("nats per real word, training sentences"),
               tr("min–max"), tr("words per output")},
              rows);
  if (built_in)
    judge_built_in(page, ways[0], ways[1], ways[2], ways[3]);
  else
    page.say(tr(
        "In the book's unit the sum is still divided by the number of real tokens alone, so padding only adds to it. "
        "(The English edition takes the mean over all nine positions in its sections 11.4 and 11.7, and prints losses "
        "below the floor of the masked loss.)"));
  page.say(tr(
      "**Answer.** Without the mask the reported loss is misleading, and time is spent on positions that nobody reads; "
      "the translations stay about as good, since search never writes `<pad>`."));
}

}  // namespace qkv::labs::bahdanau
