// Lab 11.9: three objectives on one text. What a decoder, an encoder, and both together learn to do.
#include <algorithm>
#include <map>

#include "qkv/labs/language.h"
#include "qkv/labs/show.h"
#include "qkv/nn/module.h"

namespace qkv::labs::language {
namespace {

constexpr int64_t kMost = 1000, kApart = 7;  // blocks of the test text, and words from one to the next
constexpr int64_t kBefore = 11;              // words before the one that is asked for

int64_t tried(const std::vector<int32_t>& text) {
  return std::min<int64_t>(kMost, (std::ssize(text) - kContext) / kApart);
}

// The likeliest word, never a special token.
int32_t best_word(const LanguageModel& model, const float* features) {
  const Linear& out = model.output();
  const int64_t width = out.weight.size(1);
  int32_t best = 0;
  float most = -1e30f;
  for (int64_t v = 0; v < model.tokens; ++v) {
    float score = out.bias.defined() ? out.bias.ptr()[v] : 0;
    for (int64_t k = 0; k < width; ++k) score += out.weight.ptr()[v * width + k] * features[k];
    if (score > most) {
      most = score;
      best = static_cast<int32_t>(v);
    }
  }
  return best;
}

// How often a model finds the word after kBefore others: with the words after it, and without.
struct Guessed {
  double gap = 0, next = 0;
};

// The share of blocks whose hidden word is found. `after`: words after it that the model may read.
double found(const LanguageModel& model, const std::vector<int32_t>& text, int64_t after) {
  const TapePause pause;
  const LanguageObjective kind = model.config.objective;
  const int64_t rows = tried(text);
  if (kind == LanguageObjective::causal) after = 0;
  const int64_t read = kind == LanguageObjective::causal ? kBefore : kBefore + 1 + after;
  Ids in = Ids::empty({rows, read}), written = Ids::empty({rows, 2});
  for (int64_t r = 0; r < rows; ++r) {
    int32_t* row = in.mutable_ptr() + r * read;
    std::copy_n(text.begin() + r * kApart, read, row);
    if (kind == LanguageObjective::masked) row[kBefore] = model.mask();
    if (kind == LanguageObjective::spans) row[kBefore] = model.mark(0);
    written.mutable_ptr()[2 * r] = kind == LanguageObjective::spans ? model.begin() : 0;
    written.mutable_ptr()[2 * r + 1] = kind == LanguageObjective::spans ? model.mark(0) : 0;
  }
  const Tensor x = kind == LanguageObjective::spans ? model.features(in, written, Run{}) : model.features(in, Run{});
  const int64_t at = kind == LanguageObjective::spans ? 1 : kind == LanguageObjective::masked ? kBefore : kBefore - 1;
  int64_t right = 0;
  for (int64_t r = 0; r < rows; ++r)
    right +=
        best_word(model, x.ptr() + (r * x.size(1) + at) * x.size(2)) == text[static_cast<size_t>(r * kApart + kBefore)];
  return static_cast<double>(right) / static_cast<double>(rows);
}

// How often the most frequent of the words that found() asks for is right.
double most_frequent(const std::vector<int32_t>& text) {
  std::map<int32_t, int64_t> counts;
  const int64_t rows = tried(text);
  int64_t most = 0;
  for (int64_t r = 0; r < rows; ++r) most = std::max(most, ++counts[text[static_cast<size_t>(r * kApart + kBefore)]]);
  return static_cast<double>(most) / static_cast<double>(rows);
}

Guessed guessed(const LanguageModel& model, const std::vector<int32_t>& text) {
  return {found(model, text, kContext - kBefore - 1), found(model, text, 0)};
}

// The mean over layers and heads of (layers, heads, n, m).
Tensor mean_map(const Tensor& maps) {
  const int64_t n = maps.size(2), m = maps.size(3), count = maps.size(0) * maps.size(1);
  Tensor out = Tensor::empty({n, m});
  for (int64_t i = 0; i < n * m; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += maps.ptr()[k * n * m + i];
    out.mutable_ptr()[i] = static_cast<float>(sum / static_cast<double>(count));
  }
  return out;
}

}  // namespace

void three_objectives(Page& page) {
  page.heading(tr("Three objectives"));
  page.say(
      tr("A text needs no labels: hide a part of it and ask for that part. **Causal** models (GPT) see the words so "
         "far and are asked for the next one, at every place. **Masked** models (BERT; Devlin et al., 2019) see a text "
         "in which some words are asked for: 80 % of these are replaced by `[MASK]`, 10 % by a random word, and "
         "10 % stay. **Spans** (T5; Raffel et al., 2020): an encoder reads the text with a mark in place of each span "
         "that was cut out, and a decoder writes the spans."));
  const Readers& r = readers(page);
  page.say(tr(
      "All three have blocks of two layers, {width} wide, and read the same {sentences} sentences of the built-in "
      "corpus, {context} words at a time; the masked one for 900 steps, since it is asked for fewer words, the others "
      "for 600. They are tried on new text: the word after {before} others is asked for, once as a gap with text on "
      "both sides, once as the next word.",
      "width"_a = 64, "sentences"_a = std::ssize(r.text.sentences(r.text.train)), "context"_a = kContext,
      "before"_a = kBefore));
  const Guessed causal = guessed(r.causal.model, r.text.test), masked = guessed(r.masked.model, r.text.test),
                spans = guessed(r.spans.model, r.text.test);
  const auto row = [](const Reader& reader, const Guessed& g) -> std::vector<std::string> {
    LanguageModel copy = reader.model;
    return {grouped(static_cast<uint64_t>(flatten(copy).count())), rounded(reader.loss.back(), 2), percent(g.gap),
            percent(g.next)};
  };
  named_table(page,
              {verbatim(""), tr("parameters"), tr("loss, nats per word asked for"), tr("a gap: right"),
               tr("the next word: right")},
              {{tr("causal: from the left alone"), row(r.causal, causal)},
               {tr("masked"), row(r.masked, masked)},
               {tr("spans"), row(r.spans, spans)}});
  page.claim(
      masked.gap > causal.gap + 0.04,
      tr("A gap is filled better by a model that sees both sides of it than by one that sees the left alone."),
      tr("masked {masked}, causal {causal}", "masked"_a = percent(masked.gap), "causal"_a = percent(causal.gap)));
  page.claim(
      causal.next > masked.next + 0.03,
      tr("A text is continued better by a model that was trained to continue: it was asked at every word, the "
         "masked one at three in ten, and nearly always with words after the gap."),
      tr("causal {causal}, masked {masked}", "causal"_a = percent(causal.next), "masked"_a = percent(masked.next)));
  page.fact(
      tr("The model of spans has learned little in these steps: compare its gaps with always naming the word that "
         "is most frequent there."),
      tr("spans {spans}, the most frequent word {frequent}", "spans"_a = percent(spans.gap),
         "frequent"_a = percent(most_frequent(r.text.test))));
  page.say(tr(
      "The masked model guesses every gap on its own, so two guesses need not fit together. A model of spans can read "
      "all of a text and then write any number of words, each after the ones before: what a translation or a new "
      "wording needs. But it has two stacks to train; and it is at a disadvantage in this test, which has one gap, "
      "while in training several spans were cut out of each text. How many steps it needs was not measured here. "
      "(BERT hides 15 % of the words; with so little time, 30 % are hidden here, for both models.)"));
}

void three_patterns(Page& page) {
  page.heading(tr("Who sees whom"));
  const Readers& r = readers(page);
  const auto maps = [&](const LanguageModel& model) {
    const LanguageBatch batch =
        language_batch(model, r.text.test, std::vector<int64_t>{0}, kContext, Rng(page.seed()).at("shown"));
    return language_attention(model, batch).weights;
  };
  const AttentionMaps masked = maps(r.masked.model), spans = maps(r.spans.model), causal = maps(r.causal.model);
  const auto panel = [](const Tensor& all, const Text& title) {
    return Panel{HeatMap{mean_map(all)}, title, {.label = tr("Keys")}, {.label = tr("Queries")}};
  };
  Figure figure;
  figure.panels = {panel(masked.encoder, tr("masked: encoder")), panel(causal.decoder, tr("causal: decoder")),
                   panel(spans.encoder, tr("spans: encoder")), panel(spans.cross, tr("spans: cross-attention")),
                   panel(spans.decoder, tr("spans: decoder"))};
  figure.colours.low = 0;
  figure.colours.high = 0.3;
  figure.rows = 1;
  figure.cols = 5;
  page.draw("three-patterns", figure,
            tr("Weights of the three trained models, mean of layers and heads: a full square where every word sees "
               "all; a triangle where a word sees itself and what was before; a square, a rectangle and a triangle for "
               "encoder and decoder. Weights above 0.3 have the colour of 0.3."));
  const auto above = [](const Tensor& all) {  // the weight above the diagonal, of all
    const Tensor map = mean_map(all);
    double sum = 0;
    for (int64_t i = 0; i < map.size(0); ++i)
      for (int64_t j = i + 1; j < map.size(1); ++j) sum += map.ptr()[i * map.size(1) + j];
    return sum / static_cast<double>(map.size(0));
  };
  page.claim(above(causal.decoder) == 0 && above(spans.decoder) == 0 && above(masked.encoder) > 0.1,
             tr("The causal mask hides exactly everything above the diagonal; the masked model uses it."),
             tr("weight on later words: causal {causal}, decoder of spans {spans}, masked {masked}",
                "causal"_a = percent(above(causal.decoder)), "spans"_a = percent(above(spans.decoder)),
                "masked"_a = percent(above(masked.encoder))));
}

}  // namespace qkv::labs::language
