// Diagrams of 10.1 to 10.5: cues, pooling, scoring, encoder and decoder, heads.
#include <fmt/format.h>

#include "qkv/labs/sketches.h"

namespace qkv::labs {
namespace {

// Five things on a desk in a row, and an eye above them; the arrows are as wide as the weights.
void desk(DiagramPen& pen, double left, const Text& title, const Text& wish, const std::vector<double>& weights,
          const std::string& link) {
  pen.strong(left + 180, 18, title);
  const size_t eye = pen.circle(left + 180, 70, 24, tr("eye"));
  if (!wish.empty()) {
    const size_t query = pen.box(left + 4, 50, 118, 40, wish, Part::query, "#cues-the-words");
    pen.join(query, eye, Part::query);
  }
  const std::vector<Text> things = {tr("news-\npaper"), tr("report"), tr("red cup"), tr("note-\nbook"), tr("book")};
  for (size_t i = 0; i < things.size(); ++i) {
    const size_t thing = pen.box(left + 4 + 72 * static_cast<double>(i), 190, 64, 44, things[i],
                                 i == 2 ? Part::weight : Part::value, link);
    pen.join(thing, eye, weights[i] > 0.3 ? Part::weight : Part::plain).width = 0.8 + 7 * weights[i];
  }
}

}  // namespace

Sketch cues_sketch() {
  DiagramPen pen(760, 268, tr("Two cues: what draws the eye, and what is wanted"));
  desk(pen, 0, tr("involuntary: what draws the eye"), {}, {0.05, 0.05, 0.8, 0.05, 0.05},
       "#cues-a-desk-with-five-things");
  desk(pen, 392, tr("voluntary: what is wanted"), tr("I want to\nread (query)"), {0.1, 0.1, 0.05, 0.05, 0.7},
       "#cues-a-desk-with-five-things");
  pen.soft(180, 252, tr("pooling without a query"));
  pen.soft(572, 252, tr("attention: a query meets keys"));
  return {
      "cues-diagram", pen.done(),
      tr("The same desk twice. Without a wish the eye goes to the red cup; the reader's wish moves it to the book.")};
}

Sketch pooling_sketch() {
  DiagramPen pen(700, 250, tr("Queries, keys, values and pooling"));
  const size_t query = pen.box(20, 100, 90, 40, tr("query\n(wish)"), Part::query, "#cues-the-words");
  const size_t pooling = pen.box(400, 90, 130, 60, tr("attention\npooling"), Part::weight,
                                 "#kernel-regression-kernel-regression-is-attention");
  const size_t output = pen.box(590, 100, 90, 40, tr("output"), Part::output, "#cues-weights-as-a-picture");
  pen.strong(205, 18, tr("keys"));
  pen.strong(315, 18, tr("values"));
  std::vector<size_t> values;
  for (int i = 0; i < 4; ++i) {
    const double y = 34 + 52 * i;
    const size_t key = pen.box(170, y, 70, 36, fmt::format("k{}", i + 1), Part::key, "#cues-the-words");
    values.push_back(pen.box(280, y, 70, 36, fmt::format("v{}", i + 1), Part::value, "#cues-the-words"));
    pen.join(query, key, Part::query);
    pen.path({{240, y + 18}, {280, y + 18}}, Part::weight);
  }
  for (const size_t value : values) pen.join(value, pooling, Part::value);
  pen.join(pooling, output);
  pen.soft(260, 242, tr("each key belongs to one value; its weight says how much of it is taken"));
  return {"pooling-diagram", pen.done(),
          tr("A query is compared with every key; the values are averaged with the weights that result.")};
}

Sketch scoring_sketch() {
  DiagramPen pen(760, 262, tr("From scores to weights to the output"));
  const size_t query = pen.box(10, 100, 80, 40, tr("query"), Part::query, "#scoring-a-score-for-every-pair");
  const size_t softmax = pen.box(360, 40, 76, 160, tr("masked\nsoftmax"), Part::layer, "#scoring-masked-softmax");
  const size_t sum = pen.circle(620, 120, 24, "Σ", Part::layer, "#scoring-the-batched-matrix-product");
  const size_t output = pen.box(672, 100, 80, 40, tr("output"), Part::output, "#scoring-the-batched-matrix-product");
  for (int i = 0; i < 3; ++i) {
    const double y = 40 + 62 * i;
    const std::string number = std::to_string(i + 1);
    const size_t key = pen.box(130, y, 60, 36, "k" + number, Part::key, "#scoring-a-score-for-every-pair");
    const size_t score =
        pen.box(230, y, 96, 36, "a(q, k" + number + ")", Part::plain, "#scoring-why-divide-by-the-square-root-of-d");
    const size_t weight = pen.box(470, y, 44, 36, "α" + number, Part::weight, "#scoring-masked-softmax");
    const size_t value = pen.box(540, y, 44, 36, "v" + number, Part::value, "#scoring-a-score-for-every-pair");
    pen.join(query, key, Part::query);
    pen.join(key, score);
    pen.path({{326, y + 18}, {360, y + 18}});
    pen.path({{436, y + 18}, {470, y + 18}});
    pen.words(527, y + 18, "×");
    pen.join(value, sum, Part::value);
    (void)weight;
  }
  (void)softmax;
  pen.join(sum, output);
  pen.words(140, 238, "a = qᵀk / √d", "#scoring-why-divide-by-the-square-root-of-d");
  pen.words(420, 238, "a = wᵀ tanh(W₁q + W₂k)", "#scoring-a-score-for-every-pair");
  pen.words(660, 238, "a = qᵀWk", "#exercise-10.3.2");
  return {
      "scoring-diagram", pen.done(),
      tr("The scoring function compares, softmax turns scores into weights, the weights mix the values. Below: three "
         "scoring functions.")};
}

Sketch seq2seq_sketch() {
  DiagramPen pen(760, 420, tr("Encoder and decoder, without and with attention"));
  const std::vector<std::string> source = {"i'm", "home", "."}, target = {"je", "suis", "chez", "moi"};
  const auto half = [&](double top, const Text& title, bool attention) {
    pen.strong(130, top + 12, title);
    std::vector<size_t> encoder, decoder;
    for (size_t i = 0; i < source.size(); ++i) {
      const double x = 20 + 84 * static_cast<double>(i);
      pen.words(x + 32, top + 172, source[i]);
      pen.path({{x + 32, top + 162}, {x + 32, top + 138}});
      encoder.push_back(pen.box(x, top + 100, 64, 36, fmt::format("h{}", i + 1), attention ? Part::key : Part::layer,
                                "#bahdanau-the-baseline-a-whole-sentence-in-one-vector-9-6-9-7"));
      if (i) pen.join(encoder[i - 1], encoder[i]);
    }
    for (size_t i = 0; i < target.size(); ++i) {
      const double x = 420 + 84 * static_cast<double>(i);
      pen.words(x + 32, top + 172, i ? Label(target[i - 1]) : Label("<bos>"));
      pen.path({{x + 32, top + 162}, {x + 32, top + 138}});
      decoder.push_back(pen.box(x, top + 100, 64, 36, fmt::format("s{}", i + 1), attention ? Part::query : Part::layer,
                                attention ? "#bahdanau-attention-a-new-look-at-every-step"
                                          : "#bahdanau-the-baseline-a-whole-sentence-in-one-vector-9-6-9-7"));
      pen.path({{x + 32, top + 100}, {x + 32, top + (attention ? 92.0 : 62.0)}}).head = !attention;
      if (!attention) pen.words(x + 32, top + 50, target[i]);
      if (i) pen.join(decoder[i - 1], decoder[i]);
    }
    return std::pair(encoder, decoder);
  };
  const auto [encoder, decoder] = half(0, tr("without attention"), false);
  const size_t vector = pen.box(300, 92, 84, 52, tr("one vector"), Part::weight,
                                "#bahdanau-the-baseline-a-whole-sentence-in-one-vector-9-6-9-7");
  pen.join(encoder.back(), vector);
  pen.join(vector, decoder.front());
  const double top = 220;
  const auto [states, queries] = half(top, tr("with attention"), true);
  pen.join(states.back(), queries.front()).dashed = true;
  const size_t attention =
      pen.box(285, top + 24, 110, 36, tr("attention"), Part::weight, "#bahdanau-attention-a-new-look-at-every-step");
  for (const size_t state : states) pen.join(state, attention, Part::key);
  for (size_t i = 0; i < queries.size(); ++i) {
    const double x = 452 + 84 * static_cast<double>(i);
    pen.path({{x, top + 92}, {x, top + 50}, {395, top + 50}}, Part::query).dashed = true;
    pen.path({{395, top + 34}, {x + 16, top + 34}, {x + 16, top + 100}}, Part::weight);
  }
  pen.soft(560, top + 14, tr("a new context for every word; dashed: the query"));
  return {"seq2seq-diagram", pen.done(),
          tr("Above, the decoder gets the whole sentence in one vector. Below, before every word it asks all states of "
             "the encoder anew.")};
}

Sketch multi_head_sketch() {
  DiagramPen pen(760, 330, tr("Multi-head attention"));
  const std::vector<std::pair<Text, Part>> inputs = {
      {tr("queries"), Part::query}, {tr("keys"), Part::key}, {tr("values"), Part::value}};
  const size_t concat =
      pen.box(180, 62, 400, 32, tr("concatenate"), Part::layer, "#multi-head-which-numbers-belong-to-which-head");
  const size_t out = pen.box(300, 10, 160, 32, tr("linear, W_o"), Part::output, "#multi-head-how-large-it-is");
  pen.join(concat, out);
  std::vector<size_t> given;
  for (size_t i = 0; i < inputs.size(); ++i)
    given.push_back(pen.box(150 + 180 * static_cast<double>(i), 282, 100, 34, inputs[i].first, inputs[i].second,
                            "#multi-head-several-attentions-side-by-side"));
  for (int h = 0; h < 3; ++h) {
    const double left = 40 + 240 * h;
    const Text name = h < 2 ? tr("attention, head {head}", "head"_a = h + 1) : tr("attention, head h");
    const size_t head =
        pen.box(left, 122, 200, 40, name, Part::weight, "#multi-head-one-product-or-a-loop-over-the-heads");
    pen.path({{left + 100, 122}, {left + 100 + (380 - left - 100) * 0.3, 94}});
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t linear = pen.box(left + 4 + 68 * static_cast<double>(i), 194, 56, 30, tr("linear"), inputs[i].second,
                                    "#multi-head-several-attentions-side-by-side");
      pen.join(given[i], linear, inputs[i].second).width = 0.8;
      pen.path({{left + 32 + 68 * static_cast<double>(i), 194}, {left + 32 + 68 * static_cast<double>(i), 162}},
               inputs[i].second);
    }
  }
  pen.words(500, 142, "…");
  return {"multi-head-diagram", pen.done(),
          tr("Every head has its own matrices for queries, keys and values and looks on its own; one more matrix mixes "
             "what they found.")};
}

}  // namespace qkv::labs
