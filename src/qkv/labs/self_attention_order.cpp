// Lab 10.6, exercises 2 and (English edition) 3: learned positions, absolute or relative, compared with sines and
// cosines.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "qkv/attention/multi_head.h"
#include "qkv/attention/positions.h"
#include "qkv/attention/relative_positions.h"
#include "qkv/labs/self_attention.h"
#include "qkv/labs/show.h"
#include "qkv/labs/work.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/probe.h"
#include "qkv/train/fit.h"

namespace qkv::labs::self_attention {
namespace {

// Every token must name the token before it (the first one: itself). Trained on lines of 16, tested on lines of 48.
constexpr int64_t kWords = 12, kModelWidth = 64, kHeads = 2, kShort = 16, kLong = 48, kFar = 8, kBatch = 32,
                  kSteps = 350;

// The table of biases holds them divided by this, so that a short training can move scores as far as needed.
constexpr float kBiasUnit = 8;
constexpr PositionKind kAll[] = {PositionKind::none, PositionKind::sinusoidal, PositionKind::learned,
                                 PositionKind::relative};

struct Copier {
  PositionKind places = PositionKind::none;
  Tensor words;         // (V, width)
  Tensor table;         // learned: (48, width)
  RelativeBias biases;  // relative: by distance from -8 to 8; larger distances count as 8
  MultiHead self;
  Linear answer;

  Copier() = default;
  Copier(PositionKind kind, const Rng& rng)
      : places(kind),
        words(parameter(normal({kWords, kModelWidth}, rng.at("words")))),
        self({.width = kModelWidth, .heads = kHeads}, rng.at("self")),
        answer(kModelWidth, kWords, rng.at("answer")) {
    if (kind == PositionKind::learned) table = parameter(normal({kLong, kModelWidth}, rng.at("table"), 0, 0.02f));
    if (kind == PositionKind::relative) biases = RelativeBias(kHeads, kFar);
  }

  Mask mask(int64_t n) const {
    return places == PositionKind::relative ? Mask::relative(scale(biases(n, n), kBiasUnit)) : Mask::none();
  }

  Tensor logits(const Ids& ids, const Run& run) const {
    const int64_t n = ids.size(1);
    Tensor x = embedding(words, ids);
    if (places == PositionKind::sinusoidal) x = x + sinusoidal_positions(n, kModelWidth);
    if (places == PositionKind::learned) x = x + slice(table, 0, 0, n);
    return answer(self(x, x, x, mask(n), run));
  }

  void visit(auto&& f) {
    f("words", words);
    f("table", table);
    f("biases", biases);
    f("self", self);
    f("answer", answer);
  }
};

struct Lines {
  Ids words, before;  // (B, n)
};

Lines draw_lines(int64_t rows, int64_t n, const Rng& rng) {
  Lines lines{Ids::empty({rows, n}), Ids::empty({rows, n})};
  for (int64_t i = 0; i < rows * n; ++i) {
    lines.words.mutable_ptr()[i] = static_cast<int32_t>(rng.below(kWords, static_cast<uint64_t>(i)));
    lines.before.mutable_ptr()[i] = lines.words.ptr()[i % n == 0 ? i : i - 1];
  }
  return lines;
}

struct Task {
  const Copier& model;
  Rng rng;
  int64_t batches() const { return kSteps; }
  Lines batch(int64_t, int64_t index) const { return draw_lines(kBatch, kShort, rng.at(static_cast<uint64_t>(index))); }
  int64_t rows(const Lines& lines) const { return lines.words.size(0); }
  int64_t count(const Lines& lines) const { return lines.words.numel(); }
  Loss loss(const Lines& lines, int64_t begin, int64_t end, const Run& run) const {
    const Shape part{end - begin, kShort};
    const Tensor sum = cross_entropy(model.logits(lines.words.part(begin * kShort, part), run),
                                     lines.before.part(begin * kShort, part), {.reduction = Reduction::sum});
    return {sum, static_cast<double>(part.numel())};
  }
};

struct Trained {
  Copier model;
  std::vector<double> right;  // by position, on lines of 48
  double mean(int64_t begin, int64_t end) const {
    double sum = 0;
    for (int64_t i = begin; i < end; ++i) sum += right[static_cast<size_t>(i)];
    return sum / static_cast<double>(end - begin);
  }
};

struct Copiers {
  std::vector<Trained> all;  // in the order of kAll
  const Trained& of(PositionKind kind) const {
    return all[static_cast<size_t>(std::find(std::begin(kAll), std::end(kAll), kind) - std::begin(kAll))];
  }
};

std::vector<double> right_by_position(const Copier& model, const Lines& lines) {
  const Tensor logits = model.logits(lines.words, {});
  std::vector<double> right(kLong, 0);
  for (int64_t i = 0; i < lines.words.numel(); ++i) {
    const float* row = logits.ptr() + i * kWords;
    if (std::max_element(row, row + kWords) - row == lines.before.ptr()[i]) right[static_cast<size_t>(i % kLong)] += 1;
  }
  for (double& r : right) r /= static_cast<double>(lines.words.size(0));
  return right;
}

const Copiers& copiers(Page& page) {
  Copiers& c = page.shared<Copiers>();
  if (!c.all.empty()) return c;
  const Rng rng = Rng(page.seed()).at("order");
  const Lines test = draw_lines(200, kLong, rng.at("test"));
  Work work(page, tr("training a copier for each kind of position"), std::size(kAll));
  for (PositionKind kind : kAll) {
    Trained t{Copier(kind, rng.at("model")), {}};
    Parameters all = flatten(t.model);
    Adam adam;
    WorkObserver follower(work, c.all.size());
    Observer* observers[] = {&follower};
    fit(all, adam, {.epochs = 1, .rate = cosine_rate(0.01f, kSteps, 20)}, Task{t.model, rng.at("lines")}, observers);
    t.right = right_by_position(t.model, test);
    c.all.push_back(std::move(t));
  }
  return c;
}

struct Watch : Probe {
  Tensor weights;
  void attention(std::string_view, const Weights& seen) override { weights = seen.matrix(); }
};

// Mean weights of both heads on a line of 24: half as long again as in training.
Tensor map_of(const Copier& model, const Rng& rng) {
  const int64_t n = 24;
  Watch watch;
  model.logits(draw_lines(1, n, rng).words, {.probe = &watch});
  Tensor mean = Tensor::empty({n, n});
  for (int64_t i = 0; i < n * n; ++i)
    mean.mutable_ptr()[i] = (watch.weights.ptr()[i] + watch.weights.ptr()[n * n + i]) / 2;
  return mean;
}

}  // namespace

void learned_positions(Page& page) {
  page.exercise("10.6.2");
  page.say(tr(
      "The simplest design: a table with one vector for each position, a parameter like any other, added where the "
      "sines and cosines were. It can learn whatever suits the task, but knows nothing about positions that training "
      "never reached. To see both, take a task of pure order: every token must name the token before it. One layer, "
      "{heads} heads, width {width}, trained for {steps} steps on lines of {short} tokens, then tested on lines of "
      "{long}. A fourth model, for the next exercise, is trained alongside.",
      "heads"_a = kHeads, "width"_a = kModelWidth, "steps"_a = kSteps, "short"_a = kShort, "long"_a = kLong));
  const Copiers& c = copiers(page);
  std::vector<double> place;
  for (int64_t i = 0; i < kLong; ++i) place.push_back(static_cast<double>(i));
  page.draw("order-by-position",
            curves({{tr("none"), place, c.of(PositionKind::none).right, line_style("k:")},
                    {tr("sinusoidal"), place, c.of(PositionKind::sinusoidal).right, line_style("b-")},
                    {tr("learned"), place, c.of(PositionKind::learned).right, line_style("r--")},
                    {tr("relative"), place, c.of(PositionKind::relative).right, line_style("g-.")}},
                   {.label = tr("position")}, {.label = tr("share right"), .low = 0, .high = 1.05}),
            tr("How often the token before is named correctly, by position. Training ended at position 15."));
  const auto row = [&](PositionKind kind) -> std::vector<std::string> {
    const Trained& t = c.of(kind);
    return {grouped(count_parameters(t.model)), percent(t.mean(0, kShort)), percent(t.mean(kShort, kLong))};
  };
  named_table(page, {tr("positions"), tr("parameters"), tr("right, 0 to 15"), tr("right, 16 to 47")},
              {{tr("none"), row(PositionKind::none)},
               {tr("sinusoidal"), row(PositionKind::sinusoidal)},
               {tr("learned"), row(PositionKind::learned)},
               {tr("relative"), row(PositionKind::relative)}});
  const Trained &none = c.of(PositionKind::none), &sine = c.of(PositionKind::sinusoidal),
                &learned = c.of(PositionKind::learned);
  page.claim(none.mean(0, kShort) < 0.5 && sine.mean(0, kShort) > 0.9 && learned.mean(0, kShort) > 0.9,
             tr("Without positions the task cannot be solved; with either kind it can."),
             tr("right at positions 0 to 15: none {none}, sinusoidal {sinusoidal}, learned {learned}",
                "none"_a = percent(none.mean(0, kShort)), "sinusoidal"_a = percent(sine.mean(0, kShort)),
                "learned"_a = percent(learned.mean(0, kShort))));
  page.claim(
      learned.mean(kShort + 1, kLong) < 0.6 && sine.mean(kShort + 1, kLong) < 0.7,
      tr("Past the last trained position the learned table is useless: those rows are as random as they began. Sines "
         "and cosines do not generalise either. (Counted from position 17 on, where the token before is past training "
         "too; the table's last column includes position 16.)"),
      tr("positions {first} to {last}: learned {learned}, sinusoidal {sinusoidal}", "first"_a = kShort + 1,
         "last"_a = kLong - 1, "learned"_a = percent(learned.mean(kShort + 1, kLong)),
         "sinusoidal"_a = percent(sine.mean(kShort + 1, kLong))));
}

void where_they_look(Page& page) {
  page.heading(tr("Where the four models look"));
  const Copiers& c = copiers(page);
  std::vector<Tensor> maps;
  for (size_t k = 0; k < 4; ++k) maps.push_back(map_of(c.all[k].model, Rng(page.seed()).at("map")));
  page.draw(
      "order-maps",
      heatmaps(stack(maps), tr("Keys"), tr("Queries"), {tr("none"), tr("sinusoidal"), tr("learned"), tr("relative")},
               {.colours = {.low = 0, .high = 1}}),
      tr("Where tokens look in a line of 24 (mean of both heads): the line beside the diagonal is the token before. "
         "Rows and columns from 16 on were never trained."));
  page.say(tr(
      "Sines and cosines have a vector for every position, however far, and a rotation that looks one back would work "
      "everywhere. But training on 16 positions does not require that rotation: anything that separates these 16 will "
      "do, and something else was learned."));
}

void relative_biases(Page& page) {
  page.exercise("11.6.3");
  page.say(tr(
      "Order is a matter of distances, so learn those: a number $b_{j - i}$ for every distance of key $j$ from query "
      "$i$ and every head, added to the score (after Shaw and others, 2018, and Raffel and others, 2020). Distances "
      "beyond {far} share one number, so the table has {entries} entries per head and fits any length.",
      "far"_a = kFar, "entries"_a = 2 * kFar + 1));
  page.formula("a(q_i, k_j) = \\frac{q_i^\\top k_j}{\\sqrt{d}} + b_{j - i}");
  const Trained& relative = copiers(page).of(PositionKind::relative);
  std::vector<Series> lines;
  int64_t best = 0;
  float highest = -1e9f;
  for (int64_t h = 0; h < kHeads; ++h) {
    Series line{tr("Head {head}", "head"_a = h + 1), {}, {}, line_style(h == 0 ? "bo-" : "ro-")};
    for (int64_t d = -kFar; d <= kFar; ++d) {
      const float b = kBiasUnit * relative.model.biases.table.at({h, d + kFar});
      line.x.push_back(static_cast<double>(d));
      line.y.push_back(b);
      if (b > highest) {
        highest = b;
        best = d;
      }
    }
    lines.push_back(std::move(line));
  }
  page.draw("relative-bias", curves(lines, {.label = tr("key minus query")}, {.label = tr("learned bias")}),
            tr("The learned biases: a bonus for the key just before the query."));
  page.claim(best == -1, tr("The largest bias belongs to the token before: the table can be interpreted."),
             tr("distance {distance}, bias {bias:.1f}", "distance"_a = best, "bias"_a = highest));
  page.claim(relative.mean(0, kShort) > 0.9 && relative.mean(kShort, kLong) > 0.9,
             tr("Trained on 16 tokens it does just as well on 48: a distance means the same everywhere."),
             tr("right at positions 0 to 15: {trained}, at 16 to 47: {beyond}",
                "trained"_a = percent(relative.mean(0, kShort)), "beyond"_a = percent(relative.mean(kShort, kLong))));
  page.say(tr(
      "The Transformer of 10.7 uses such biases with the setting `positions: relative`; `rotary` and `alibi` are two "
      "other ways to put distances into the scores."));
}

}  // namespace qkv::labs::self_attention
