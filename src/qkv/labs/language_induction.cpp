// Lab 11.9: induction heads. A model of two layers learns to repeat what it has read once; one of one layer cannot.
#include <algorithm>
#include <array>

#include "qkv/attention/attention_of.h"
#include "qkv/core/parallel.h"
#include "qkv/labs/language.h"
#include "qkv/labs/show.h"
#include "qkv/labs/work.h"
#include "qkv/models/transformer_decoder.h"
#include "qkv/nn/module.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/schedule.h"

namespace qkv::labs::language {
namespace {

constexpr int64_t kLetters = 24, kLength = 32, kShortest = 5, kPeriods = 10;  // periods of 5 to 14 letters
constexpr int64_t kRows = 32, kSteps = 500, kEvery = 20, kHeads = 4, kWidth = 64, kTests = 64;

// Rows that repeat a random word of different letters to their end.
struct Repeats {
  Ids letters, next;             // (B, n)
  std::vector<int64_t> periods;  // of each row

  Repeats(int64_t rows, const Rng& rng) : letters(Ids::empty({rows, kLength})), next(Ids::empty({rows, kLength})) {
    for (int64_t r = 0; r < rows; ++r) {
      const Rng row = rng.at(static_cast<uint64_t>(r));
      const int64_t period = kShortest + static_cast<int64_t>(row.below(kPeriods, 0));
      std::array<int32_t, kLetters> word;
      for (int32_t i = 0; i < kLetters; ++i) word[static_cast<size_t>(i)] = i;
      for (int64_t i = 0; i < period; ++i)
        std::swap(word[static_cast<size_t>(i)],
                  word[static_cast<size_t>(i) +
                       row.below(static_cast<uint64_t>(kLetters - i), 1 + static_cast<uint64_t>(i))]);
      for (int64_t i = 0; i < kLength; ++i) {
        letters.mutable_ptr()[r * kLength + i] = word[static_cast<size_t>(i % period)];
        next.mutable_ptr()[r * kLength + i] = word[static_cast<size_t>((i + 1) % period)];
      }
      periods.push_back(period);
    }
  }
  // From here on the next letter can be known: the word has been read, and its first letter again.
  int64_t known_from(int64_t row) const { return periods[static_cast<size_t>(row)]; }
};

std::string spelled(const Repeats& rows, int64_t row, int64_t count) {
  std::string out;
  for (int64_t i = 0; i < count; ++i) out += static_cast<char>('a' + rows.letters.ptr()[row * kLength + i]);
  return out;
}

// The share of letters that can be known and that the model finds, and its loss on them.
struct Found {
  double right = 0, loss = 0;
};

Found found(const TransformerDecoder& model, const Repeats& rows) {
  const Tensor logits = model.logits(rows.letters, {}, {});
  Found out;
  int64_t count = 0;
  for (int64_t r = 0; r < rows.letters.size(0); ++r)
    for (int64_t i = rows.known_from(r); i < kLength; ++i, ++count) {
      const float* at = logits.ptr() + (r * kLength + i) * kLetters;
      const int32_t wanted = rows.next.ptr()[r * kLength + i];
      const float largest = *std::max_element(at, at + kLetters);
      double total = 0;
      for (int64_t k = 0; k < kLetters; ++k) total += std::exp(static_cast<double>(at[k] - largest));
      out.right += at[wanted] == largest;
      out.loss += std::log(total) + static_cast<double>(largest - at[wanted]);
    }
  return {out.right / static_cast<double>(count), out.loss / static_cast<double>(count)};
}

// How much a head attends to the letter before, and to the letters that followed the current one earlier.
struct HeadScore {
  double previous = 0, induction = 0;
};

std::vector<std::vector<HeadScore>> head_scores(const TransformerDecoder& model, const Repeats& rows) {
  const AttentionWeights seen = attention_of(model, rows.letters, Memory{});
  std::vector<std::vector<HeadScore>> out;
  for (size_t layer = 0; layer < model.stack.blocks.size(); ++layer) {
    out.emplace_back(kHeads);
    const Weights& weights = seen.at(std::to_string(layer) + ".self");
    for (int64_t h = 0; h < kHeads; ++h) {
      HeadScore& score = out.back()[static_cast<size_t>(h)];
      int64_t count = 0;
      for (int64_t r = 0; r < rows.letters.size(0); ++r) {
        const Tensor map = weights.head(r, h);
        const int64_t period = rows.known_from(r);
        for (int64_t i = period; i < kLength; ++i, ++count) {
          score.previous += map.ptr()[i * kLength + i - 1];
          for (int64_t j = i - period + 1; j > 0; j -= period) score.induction += map.ptr()[i * kLength + j];
        }
      }
      score.previous /= static_cast<double>(count);
      score.induction /= static_cast<double>(count);
    }
  }
  return out;
}

// The head of a layer with the largest score.
struct Best {
  int64_t head = 0;
  double score = 0;
};
Best best(const std::vector<HeadScore>& layer, double HeadScore::*kind) {
  const auto at = std::ranges::max_element(layer, {}, kind);
  return {at - layer.begin(), (*at).*kind};
}

struct Repeater {
  TransformerDecoder model;
  std::vector<double> steps, right, loss, previous, induction;  // during training, on new rows

  double end() const { return right.back(); }
  // The first measured step at which a curve passes a value; 0 if it never does.
  double passes(const std::vector<double>& curve, double value) const {
    const auto at = std::ranges::find_if(curve, [&](double y) { return y >= value; });
    return at == curve.end() ? 0 : steps[static_cast<size_t>(at - curve.begin())];
  }
};

struct Repeaters {
  Repeater one, two;
};

Repeats test_rows(const Page& page) { return Repeats(kTests, Rng(page.seed()).at("induction").at("test")); }

Repeater trained(int64_t layers, const Rng& rng, const Repeats& test, WorkObserver follower) {
  const TransformerConfig config{.hidden = kWidth,
                                 .ffn = 4 * kWidth,
                                 .heads = kHeads,
                                 .layers = layers,
                                 .dropout = 0,
                                 .norm = NormPlace::pre,
                                 .positions = PositionKind::rotary};
  Repeater out{TransformerDecoder(config, kLetters, Cross::no, rng.at("init")), {}, {}, {}, {}, {}};
  const auto measure = [&](double step) {
    const Found now = found(out.model, test);
    const auto scores = head_scores(out.model, test);
    out.steps.push_back(step);
    out.right.push_back(now.right);
    out.loss.push_back(now.loss);
    out.previous.push_back(best(scores.front(), &HeadScore::previous).score);
    out.induction.push_back(best(scores.back(), &HeadScore::induction).score);
  };
  measure(0);
  Adam adam = adamw(0.01f);
  fit(out.model, adam,
      {.epochs = kSteps / kEvery,
       .steps = kSteps,
       .rate = [](int64_t step) { return 3e-3f * std::min(1.0f, static_cast<float>(step + 1) / 50); },
       .clip = 1,
       .on_epoch =
           [&](const Progress& p) {
             measure(static_cast<double>(p.step));
             follower.step(p);
           }},
      [&](int64_t step, const Run& run) {
        const Repeats rows(kRows, rng.at("rows").at(static_cast<uint64_t>(step)));
        return cross_entropy(out.model.logits(rows.letters, {}, run), rows.next);
      });
  return out;
}

const Repeaters& repeaters(Page& page) {
  Repeaters& r = page.shared<Repeaters>();
  if (!r.two.steps.empty()) return r;
  const Rng rng = Rng(page.seed()).at("induction");
  const Repeats test = test_rows(page);
  Work work(page, tr("training models of one layer and of two"), 2);
  parallel_for(2, 1e9, [&](int64_t task) {
    const SerialScope serial;
    (task == 0 ? r.two : r.one) =
        trained(task == 0 ? 2 : 1, rng.at("model"), test, WorkObserver(work, static_cast<size_t>(task)));
  });
  return r;
}

}  // namespace

void induction_task(Page& page) {
  page.heading(tr("Repeating what was read once"));
  page.say(tr(
      "A language model can use what its prompt says without changing a weight: give it a name once, and it uses the "
      "name again. The smallest case of such **learning in context** is to repeat. A row is a word of {shortest} to "
      "{longest} different random letters, repeated until the row has {length}. No word is likely to appear twice in "
      "training, so there is nothing to remember; but from the second time on, the next letter is the one that "
      "followed the current letter before.",
      "shortest"_a = kShortest, "longest"_a = kShortest + kPeriods - 1, "length"_a = kLength));
  const Repeats rows = test_rows(page);
  page.print(verbatim(spelled(rows, 0, kLength) + "\n" + spelled(rows, 1, kLength) + "\n" + spelled(rows, 2, kLength)));
  page.say(tr(
      "One layer of attention can look for earlier copies of the current letter, but what it finds there is that "
      "letter, not the one after it. Two layers can do it in two steps: a head of the first layer tells every position "
      "which letter came **before** it; a head of the second looks for positions whose earlier letter is the current "
      "one, and copies the letter there. Such a pair is called an **induction head** (Elhage et al., 2021; Olsson et "
      "al., 2022)."));
}

void induction_training(Page& page) {
  page.heading(tr("When the head appears"));
  page.say(
      tr("A decoder-only Transformer, {width} wide with {heads} heads, rotary positions and a causal mask, is trained "
         "twice on the same rows: with two layers and with one. Every {every} steps it is tried on {tests} new rows, "
         "only where the next letter can be known. A head's **induction score** is the weight that it gives to letters "
         "that followed the current one before; its **previous-letter score** is the weight on the letter before. The "
         "figure has the best head of the second and of the first layer.",
         "width"_a = kWidth, "heads"_a = kHeads, "every"_a = kEvery, "tests"_a = kTests));
  const Repeaters& r = repeaters(page);
  const double guess = std::log(static_cast<double>(kLetters));
  std::vector<double> loss, loss_one;
  for (const double l : r.two.loss) loss.push_back(std::min(1.0, l / guess));
  for (const double l : r.one.loss) loss_one.push_back(std::min(1.0, l / guess));
  page.draw("induction-training",
            curves({{tr("loss, two layers"), r.two.steps, loss, line_style("b-")},
                    {tr("loss, one layer"), r.one.steps, loss_one, line_style("r--")},
                    {tr("induction score"), r.two.steps, r.two.induction, line_style("g-")},
                    {tr("previous-letter score"), r.two.steps, r.two.previous, line_style("k:")}},
                   {.label = tr("step")}, {.label = tr("loss (1: guessing) and score"), .low = 0, .high = 1}),
            tr("The loss falls when the induction head appears. Losses are divided by that of a blind guess."));
  const auto row = [](const Repeater& m) -> std::vector<std::string> {
    return {rounded(m.loss.back(), 3), percent(m.end()), rounded(m.previous.back(), 2), rounded(m.induction.back(), 2)};
  };
  named_table(page,
              {verbatim(""), tr("loss, nats per letter"), tr("letters right"), tr("previous-letter score"),
               tr("induction score")},
              {{tr("one layer"), row(r.one)}, {tr("two layers"), row(r.two)}});
  page.claim(r.two.end() > 0.95 && r.one.end() < 0.5,
             tr("With two layers the model repeats words it has never seen; with one layer it cannot."),
             tr("two layers {two} of the letters right, one layer {one}", "two"_a = percent(r.two.end()),
                "one"_a = percent(r.one.end())));
  const double learned = r.two.passes(r.two.right, 0.5), formed = r.two.passes(r.two.induction, 0.5);
  page.claim(learned > 0 && formed > 0 && std::abs(learned - formed) <= 3 * kEvery,
             tr("The head and the ability appear together: half of the letters are right within 60 steps of the moment "
                "when the head gives half of its weight to the right place."),
             tr("half right at step {learned}, half of the weight at step {formed}", "learned"_a = learned,
                "formed"_a = formed));
}

void induction_heads(Page& page) {
  page.heading(tr("The two heads"));
  const Repeater& model = repeaters(page).two;
  const Repeats test = test_rows(page);
  const auto scores = head_scores(model.model, test);
  const Best before = best(scores[0], &HeadScore::previous), after = best(scores[1], &HeadScore::induction);
  // The row with the shortest word shows the most repetitions.
  const int64_t row = std::ranges::min_element(test.periods) - test.periods.begin();
  const int64_t shown_letters = std::min<int64_t>(kLength, 3 * test.periods[static_cast<size_t>(row)]);
  const AttentionWeights seen = attention_of(model.model, test.letters, Memory{});
  const auto corner = [&](const char* path, int64_t head) {
    const Tensor map = seen.at(path).head(row, head);
    Tensor out = Tensor::empty({shown_letters, shown_letters});
    for (int64_t i = 0; i < shown_letters; ++i)
      std::copy_n(map.ptr() + i * kLength, shown_letters, out.mutable_ptr() + i * shown_letters);
    return out;
  };
  std::vector<std::string> letters;
  for (const char c : spelled(test, row, shown_letters)) letters.emplace_back(1, c);
  const auto panel = [&](const Tensor& map, const Text& title) {
    return Panel{HeatMap{map, letters, letters}, title, {.label = tr("Keys")}, {.label = tr("Queries")}};
  };
  Figure figure;
  figure.cols = 2;
  figure.panels = {
      panel(corner("0.self", before.head), tr("layer 1, head {head}: the letter before", "head"_a = before.head + 1)),
      panel(corner("1.self", after.head), tr("layer 2, head {head}: what came next", "head"_a = after.head + 1))};
  figure.colours.low = 0;
  figure.colours.high = 1;
  page.draw("induction-heads", figure,
            tr("The attention of both heads on a word that is read three times. In the first pass the right head has "
               "nothing to find; afterwards it looks one letter past the earlier copy of the current letter."));
  page.claim(before.score > 0.5 && after.score > 0.7,
             tr("A head of the first layer looks at the letter before; a head of the second looks at what followed the "
                "current letter last time."),
             tr("previous-letter score {before:.2f}, induction score {after:.2f}; best induction score with one layer "
                "{one:.2f}",
                "before"_a = before.score, "after"_a = after.score, "one"_a = repeaters(page).one.induction.back()));
}

void induction_without(Page& page) {
  page.heading(tr("Without one of its heads"));
  page.say(
      tr("A score says where a head looks, not what the model needs. So turn heads off in the trained model: set the "
         "columns of the output projection that read them to zero, and try the same rows again."));
  const Repeater& trained = repeaters(page).two;
  const Repeats test = test_rows(page);
  const auto scores = head_scores(trained.model, test);
  const auto without = [&](size_t layer, const std::vector<int64_t>& heads) {
    TransformerDecoder model = trained.model;
    Tensor& weight = model.stack.blocks[layer].self.to_out.weight;  // (width, heads D)
    Tensor kept = Tensor::empty(weight.shape());
    std::copy_n(weight.ptr(), weight.numel(), kept.mutable_ptr());
    const int64_t head_width = kWidth / kHeads;
    for (int64_t i = 0; i < kWidth; ++i)
      for (const int64_t h : heads) std::fill_n(kept.mutable_ptr() + i * kWidth + h * head_width, head_width, 0.0f);
    weight = kept;
    return found(model, test).right;
  };
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  for (size_t layer = 0; layer < 2; ++layer)
    for (int64_t h = 0; h < kHeads; ++h) {
      const HeadScore& s = scores[layer][static_cast<size_t>(h)];
      rows.push_back({tr("layer {layer}, head {head}", "layer"_a = layer + 1, "head"_a = h + 1),
                      {rounded(s.previous, 2), rounded(s.induction, 2), percent(without(layer, {h}))}});
    }
  // Several heads may share the work.
  std::vector<int64_t> before, others, all;
  const double half = best(scores[0], &HeadScore::previous).score / 2;
  for (int64_t h = 0; h < kHeads; ++h) {
    (scores[0][static_cast<size_t>(h)].previous > half ? before : others).push_back(h);
    all.push_back(h);
  }
  const double no_before = without(0, before), no_others = without(0, others), no_second = without(1, all);
  rows.push_back({tr("layer 1, those that look at the letter before"), {"–", "–", percent(no_before)}});
  rows.push_back({tr("layer 1, the others"), {"–", "–", percent(no_others)}});
  rows.push_back({tr("layer 2, all heads"), {"–", "–", percent(no_second)}});
  named_table(page, {tr("turned off"), tr("previous-letter score"), tr("induction score"), tr("letters right")}, rows);
  page.claim(no_before < no_others - 0.2 && no_second < 0.3,
             tr("In the first layer the model needs the heads that look at the letter before far more than the others. "
                "Without the second layer's heads it knows nothing. Where several heads do the same, one can be "
                "spared."),
             tr("{before} right without the former, {others} without the others, {none} without the second layer's "
                "heads",
                "before"_a = percent(no_before), "others"_a = percent(no_others), "none"_a = percent(no_second)));
}

}  // namespace qkv::labs::language
