// Lab 11.9: three objectives on one text. What a decoder, an encoder, and both together learn to do.
#include <algorithm>
#include <map>

#include "qkv/data/corruption.h"
#include "qkv/labs/language.h"
#include "qkv/labs/show.h"
#include "qkv/nn/module.h"

namespace qkv::labs::language {
namespace {

constexpr int64_t kMost = 1000, kApart = 7;  // blocks of the test text, and words from one to the next
constexpr int64_t kBefore = 11;              // words before the one that is asked for
constexpr int64_t kOwnBlocks = 200;          // hidden as in training
constexpr int64_t kSpan = 2;                 // words, the mean length in training
static_assert((kContext - kBefore - 1) % (2 * kSpan) == 0);

int64_t tried(const std::vector<int32_t>& text) {
  return std::min<int64_t>(kMost, (std::ssize(text) - kContext) / kApart);
}

Ids rows_of(const std::vector<std::vector<int32_t>>& rows) {
  const int64_t n = std::ssize(rows.front());
  Ids out = Ids::empty({std::ssize(rows), n});
  for (size_t r = 0; r < rows.size(); ++r) std::ranges::copy(rows[r], out.mutable_ptr() + static_cast<int64_t>(r) * n);
  return out;
}

// The share of blocks of which a model finds all `hidden` words after the first kBefore, one after the other; `after`
// words that follow them may be read.
double found(const LanguageModel& model, const std::vector<int32_t>& text, int64_t hidden, int64_t after) {
  const TapePause pause;
  const LanguageObjective kind = model.config.objective;
  const bool causal = kind == LanguageObjective::causal, masked = kind == LanguageObjective::masked;
  std::vector<std::vector<int32_t>> read, written, wanted;
  for (int64_t r = 0; r < tried(text); ++r) {
    const auto begin = text.begin() + r * kApart, gap = begin + kBefore;
    read.emplace_back(begin, gap);
    if (masked) read.back().insert(read.back().end(), static_cast<size_t>(hidden), model.mask());
    if (kind == LanguageObjective::spans) read.back().push_back(model.mark(0));
    if (!causal) read.back().insert(read.back().end(), gap + hidden, gap + hidden + after);
    written.push_back({model.begin(), model.mark(0)});
    wanted.emplace_back(gap, gap + hidden);
  }
  std::vector<bool> right(read.size(), true);
  for (int64_t k = 0; k < hidden; ++k) {
    // The masked model gives all words at once; the others read their own word before they give the next.
    const Tensor x = kind == LanguageObjective::spans ? model.features(rows_of(read), rows_of(written), Run{})
                                                      : model.features(rows_of(read), Run{});
    const int64_t at = masked ? kBefore + k : x.size(1) - 1;
    for (size_t r = 0; r < read.size(); ++r) {
      const int32_t word = best_word(model, x.ptr() + (static_cast<int64_t>(r) * x.size(1) + at) * x.size(2));
      if (word != wanted[r][static_cast<size_t>(k)]) right[r] = false;
      if (!masked) (causal ? read : written)[r].push_back(word);
    }
  }
  return static_cast<double>(std::ranges::count(right, true)) / static_cast<double>(right.size());
}

// The same gap of one word for a model of spans, in a text with as many spans as it was trained with: after the gap two
// words are read, two cut out, and so on. The gap is written first, so the model knows nothing about the other spans.
double found_among_spans(const LanguageModel& model, const std::vector<int32_t>& text) {
  const TapePause pause;
  std::vector<std::vector<int32_t>> read, written;
  std::vector<int32_t> wanted;
  for (int64_t r = 0; r < tried(text); ++r) {
    const auto begin = text.begin() + r * kApart, gap = begin + kBefore, end = begin + kContext;
    std::vector<int32_t>& row = read.emplace_back(begin, gap);
    row.push_back(model.mark(0));
    int64_t mark = 1;
    for (auto at = gap + 1; at < end; at += kSpan) {
      row.insert(row.end(), at, at + kSpan);
      at += kSpan;
      row.push_back(model.mark(mark++));
    }
    written.push_back({model.begin(), model.mark(0)});
    wanted.push_back(*gap);
  }
  const Tensor x = model.features(rows_of(read), rows_of(written), Run{});
  double right = 0;
  for (size_t r = 0; r < wanted.size(); ++r)
    right += best_word(model, x.ptr() + (static_cast<int64_t>(r) * x.size(1) + 1) * x.size(2)) == wanted[r];
  return right / static_cast<double>(wanted.size());
}

// The share of the words that the model's own training would ask for that it finds, given the true ones before.
double found_as_trained(const LanguageModel& model, const std::vector<int32_t>& text, const Rng& rng) {
  const TapePause pause;
  std::vector<int64_t> begins;
  for (int64_t r = 0; r < kOwnBlocks; ++r) begins.push_back(r * kApart);
  const LanguageBatch batch = language_batch(model, text, begins, kContext, rng);
  const Tensor x =
      batch.written.defined() ? model.features(batch.read, batch.written, Run{}) : model.features(batch.read, Run{});
  int64_t right = 0, asked = 0;
  for (int64_t i = 0; i < batch.wanted.numel(); ++i) {
    const int32_t wanted = batch.wanted.ptr()[i];
    if (wanted == kNotAsked || wanted >= model.tokens) continue;  // marks are not words
    ++asked;
    right += best_word(model, x.ptr() + i * x.size(2)) == wanted;
  }
  return static_cast<double>(right) / static_cast<double>(asked);
}

// How often the most frequent of the words that found() asks for is right.
double most_frequent(const std::vector<int32_t>& text) {
  std::map<int32_t, int64_t> counts;
  const int64_t rows = tried(text);
  int64_t most = 0;
  for (int64_t r = 0; r < rows; ++r) most = std::max(most, ++counts[text[static_cast<size_t>(r * kApart + kBefore)]]);
  return static_cast<double>(most) / static_cast<double>(rows);
}

// What a model can do with new text, each as the share that it gets right.
struct Skills {
  double own = 0, gap = 0, pair = 0, next = 0;
};

Skills skills_of(const LanguageModel& model, const std::vector<int32_t>& text, const Rng& rng) {
  return {found_as_trained(model, text, rng), found(model, text, 1, kContext - kBefore - 1),
          found(model, text, 2, kContext - kBefore - 2), found(model, text, 1, 0)};
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
      "corpus, {context} words at a time: {causal} steps for the causal one, which is asked for every word, {masked} "
      "and {spans} for the others, which are asked for three in ten. (BERT hides 15 %; more is hidden here because "
      "there is little time.) They are tried on new text: first as they were trained; then a gap of one word and one "
      "of two, after {before} words and before others; and the next word, with nothing after it.",
      "width"_a = 64, "sentences"_a = std::ssize(r.text.sentences(r.text.train)), "context"_a = kContext,
      "causal"_a = kCausalSteps, "masked"_a = kMaskedSteps, "spans"_a = kSpansSteps, "before"_a = kBefore));
  const Rng rng = Rng(page.seed()).at("objectives");
  const Skills causal = skills_of(r.causal.model, r.text.test, rng),
               masked = skills_of(r.masked.model, r.text.test, rng), spans = skills_of(r.spans.model, r.text.test, rng);
  const auto row = [](const Reader& reader, const Skills& s) -> std::vector<std::string> {
    LanguageModel copy = reader.model;
    return {grouped(static_cast<uint64_t>(flatten(copy).count())), percent(s.own), percent(s.gap), percent(s.pair),
            percent(s.next)};
  };
  named_table(
      page,
      {verbatim(""), tr("parameters"), tr("as in training"), tr("a gap"), tr("a gap of two"), tr("the next word")},
      {{tr("causal (reads the left alone)"), row(r.causal, causal)},
       {tr("masked (reads both sides)"), row(r.masked, masked)},
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
  const double frequent = most_frequent(r.text.test), among = found_among_spans(r.spans.model, r.text.test);
  page.claim(spans.own > 2 * frequent,
             tr("The model of spans does what it was trained for: it writes the words of several cut-out spans."),
             tr("spans as in training {own}, always the most frequent word {frequent}", "own"_a = percent(spans.own),
                "frequent"_a = percent(frequent)));
  page.fact(
      tr("It has only read texts with four spans cut out. How well it fills a gap alone is left to chance: for some "
         "seeds it does far better on the same gap if three more spans are cut out after it, although it can then "
         "read fewer words."),
      tr("the gap alone {gap}, among four {among}", "gap"_a = percent(spans.gap), "among"_a = percent(among)));
  page.say(tr(
      "So the objective decides what a model is for. The causal one continues any text. The masked one fills gaps of a "
      "known length, each word on its own, so two words need not fit together. The model of spans reads all of a text "
      "and then writes as many words as it likes, each after the ones before: what a translation needs. Nothing is "
      "translated here, since the text has one language; in lab 10.7 the same encoder and decoder do it."));
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
  // Three fit on a line: encoder and decoder first, then the two that are one stack.
  figure.panels = {panel(spans.encoder, tr("spans: encoder")), panel(spans.cross, tr("spans: cross-attention")),
                   panel(spans.decoder, tr("spans: decoder")), panel(masked.encoder, tr("masked: encoder")),
                   panel(causal.decoder, tr("causal: decoder"))};
  figure.colours.low = 0;
  figure.colours.high = 0.3;
  figure.rows = 1;
  figure.cols = 5;
  page.draw(
      "three-patterns", figure,
      tr("Weights of the three trained models, mean of layers and heads. Above, encoder and decoder: a full square "
         "where every word sees all, a rectangle from what is written to what was read, and a triangle where a "
         "word sees itself and what was before. Below, a square alone and a triangle alone. Weights above 0.3 "
         "have the colour of 0.3."));
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
