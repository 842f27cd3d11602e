// Lab 10.1: cues. What a query, a key and a value are, shown on a desk with five things.
#include "qkv/labs/cues.h"

#include <fmt/format.h>

#include <algorithm>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/sections.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs {
namespace cues {
namespace {

std::vector<Text> things() { return {tr("newspaper"), tr("report"), tr("red cup"), tr("notebook"), tr("book")}; }
constexpr int kCup = 2, kBook = 4;

// What each thing offers, (5, 4): how vivid it looks, and how good it is to drink from, to read, to write on.
Tensor offers() {
  return Tensor({5, 4}, {0.1f, 0,    0.5f, 0.1f, 0.1f, 0,    0.4f, 0.2f, 1.0f, 1,
                         0.0f, 0.0f, 0.2f, 0,    0.2f, 1.0f, 0.3f, 0,    1.0f, 0.1f});
}

// The place of each thing on the desk, in decimetres, (5, 2).
Tensor places() { return Tensor({5, 2}, {1, 5, 2, 2, 5, 4, 7, 6, 8, 1}); }

// Wanting to drink, wanting to read: (2, 4).
Tensor tasks(float strength) { return Tensor({2, 4}, {0, strength, 0, 0, 0, 0, strength, 0}); }

std::vector<double> weights_of(const Attended& attended, int64_t query) {
  return numbers(attended.weights.row(0, 0, query));
}

std::string place(const Tensor& output, int64_t query) {
  return fmt::format("({:.2f}, {:.2f})", output.at({query, 0}), output.at({query, 1}));
}

std::vector<std::string> pooling_row(const std::string& name, const Attended& a, int64_t query) {
  std::vector<std::string> row = {name};
  for (double w : weights_of(a, query)) row.push_back(rounded(w, 3));
  row.push_back(place(a.output, query));
  return row;
}

bool same_rows(const Tensor& x) {
  const int64_t n = x.size(-1);
  return std::equal(x.ptr(), x.ptr() + n, x.ptr() + n);
}

}  // namespace

void words(Page& page) {
  page.heading(tr("The words"));
  page.say(tr(
      "The eye sends the brain about a hundred million bits per second, far more than we can examine; attention "
      "selects. Two kinds of cue guide it. A **nonvolitional cue** is in the thing: a red cup among grey papers "
      "catches the eye on its own. A **volitional cue** is in the task: if you want to read, you find the book "
      "although the cup is redder. (Note 000 shows one colour picture among black-and-white ones: it catches the eye, "
      "unless the task is to look at the black-and-white ones.) Models use both under other names: what a thing shows "
      "of itself is its key, what the task asks for is the query, and the input taken in is the value."));
  const auto row = [](const Text& term, const char* symbol) {
    return std::vector<std::string>{term.in(Language::zh), term.in(Language::en), symbol};
  };
  page.table({tr("Chinese (the notes use several terms)"), tr("English"), tr("symbol")},
             {row(tr("volitional cue, query"), "$q$"), row(tr("nonvolitional cue, key"), "$k$"),
              row(tr("sensory input, value"), "$v$"), row(tr("attention pooling"), "$f$"),
              row(tr("scoring function, attention score"), "$a$"), row(tr("attention weight"), "$\\alpha$"),
              row(tr("masked softmax, valid length"), "—"),
              row(tr("additive, scaled dot-product, multi-head attention, self-attention"), "—"),
              row(tr("positional encoding, residual connection, layer normalisation"), "—")});
  page.say(
      tr("In symbols: the weights come from comparing the query with every key, and the output is the weighted mean of "
         "the values."));
  page.formula(
      "f(q) = \\sum_{i=1}^{m} \\alpha(q, k_i) v_i, \\quad \\alpha(q, k_i) = \\frac{\\exp(a(q, k_i))}{\\sum_{j=1}^{m} "
      "\\exp(a(q, k_j))}");
}

void desk(Page& page) {
  page.heading(tr("A desk with five things"));
  page.say(tr(
      "The scene with the cup and the book can be computed. There are five things on a desk. The key of each has four "
      "features: how vivid it looks, and how good it is to drink from, to read and to write on. The value is its place "
      "on the desk, so the output of the pooling is the point where the eye goes."));
  const Tensor k = offers(), v = places();
  std::vector<std::vector<Text>> rows;
  for (int64_t i = 0; i < 5; ++i) {
    rows.push_back({things()[static_cast<size_t>(i)]});
    for (int64_t f = 0; f < 4; ++f) rows.back().emplace_back(rounded(k.at({i, f}), 1));
    rows.back().emplace_back(place(v, i));
  }
  page.word_table({tr("thing"), tr("vivid"), tr("to drink"), tr("to read"), tr("to write on"), tr("place (value)")},
                  rows);

  page.say(tr(
      "Without a query there are only the things. Average pooling weights them all equally. A score of the key alone, "
      "$a(k) = w^\\top k$ with a $w$ that looks only at vividness, picks the cup; divided by a small temperature it "
      "picks the largest and nothing else: a hard choice, related to max pooling (which takes the maximum of each "
      "feature separately, not one thing as a whole). Fully connected and convolutional layers are of this kind too: "
      "what a filter responds to is in the picture, and there is no query. Then come two queries, wanting to drink and "
      "wanting to read, scored by the dot product $q^\\top k$:"));
  const Tensor q = tasks(8), vivid({4}, {5, 0, 0, 0});
  const Attended average = attend(Constant{}, q, k, v), salient = attend(Salience{vivid}, q, k, v);
  const Attended largest = attend(Salience{vivid, 0.01f}, q, k, v), asked = attend(Dot{}, q, k, v);
  std::vector<Text> head = things();
  head.insert(head.begin(), tr("pooling"));
  head.push_back(verbatim("$f$"));
  page.table(head, {pooling_row("$a = 0$", average, 0), pooling_row("$a = w^\\top k$", salient, 0),
                    pooling_row("$a = w^\\top k / 0.01$", largest, 0), pooling_row("$a = q_1^\\top k$", asked, 0),
                    pooling_row("$a = q_2^\\top k$", asked, 1)});
  std::vector<Label> names;
  for (const Text& thing : things()) names.emplace_back(thing);
  page.draw("desk-weights",
            bars(names,
                 {{tr("no query: salience"), weights_of(salient, 0)},
                  {tr("query: drink"), weights_of(asked, 0)},
                  {tr("query: read"), weights_of(asked, 1)}},
                 {}, {.label = tr("attention weight"), .low = 0, .high = 1}),
            tr("The cup wins when there is no query and for the thirsty; the reader looks at the book."),
            report::BenchLink("scores").set("score", "dot").set("q", q).set("k", k).set("v", v));
  double spread = 0;
  for (double w : weights_of(average, 0)) spread = std::max(spread, std::abs(w - 0.2));
  page.claim(spread < 1e-7, tr("Average pooling is attention with a constant score: every weight is 1/5."),
             tr("largest |α − 1/5| {spread}", "spread"_a = tiny(spread)));
  page.claim(same_rows(average.output) && same_rows(salient.output) && same_rows(largest.output),
             tr("Average pooling, salience and the hard choice give the same bits for both tasks."),
             tr("f(q₁) = f(q₂) for all three"));
  const double cup = salient.weights.row(0, 0, 0).at({kCup}), only = largest.weights.row(0, 0, 0).at({kCup});
  page.claim(cup > 0.9 && only == 1,
             tr("The vivid cup draws the eye; in the limit of a small temperature it gets all the weight."),
             tr("weight of the cup {cup:.3f}, at temperature 0.01 {only:.3f}", "cup"_a = cup, "only"_a = only));
  const double drink = asked.weights.row(0, 0, 0).at({kCup}), read = asked.weights.row(0, 0, 1).at({kBook});
  page.claim(drink > 0.95 && read > 0.95,
             tr("A query moves the weight: to the cup for the thirsty, to the book for the reader."),
             tr("α(drink, cup) = {drink:.3f}, α(read, book) = {read:.3f}", "drink"_a = drink, "read"_a = read));
}

namespace {

struct Trained {
  std::vector<double> step, loss;
  Tensor output;  // (2, 2), one row per task
};

// Gradient descent on the mean squared distance between where the eye goes and where it should go.
template <class MakeScorer>
Trained train(const Tensor& w, const MakeScorer& scorer, const Tensor& wanted) {
  Trained result;
  Tensor leaf = parameter(w);
  for (int step = 0; step <= 600; ++step) {
    Tape tape;
    const Attended a = attend(scorer(leaf), tasks(1), offers(), places());
    const Tensor loss = scale(squared_error(a.output, wanted, Reduction::sum), 0.5f);
    tape.backward(loss);
    const Tensor gradient = tape.grad(leaf);
    for (int64_t i = 0; i < w.numel(); ++i) leaf.mutable_ptr()[i] -= 0.5f * gradient.ptr()[i];
    result.step.push_back(step);
    result.loss.push_back(loss.item());
    result.output = a.output.detached();
  }
  return result;
}

}  // namespace

void learned_pooling(Page& page) {
  page.heading(tr("Learned, with and without a query"));
  page.say(tr(
      "Could a better $w$ serve both tasks? Train it: the thirsty should look at the cup, the reader at the book, and "
      "the loss is the mean squared distance on the desk. A score of the key alone must give both the same answer, and "
      "the best single answer is the point halfway between cup and book, where there is nothing. Its loss cannot go "
      "below a quarter of their squared distance. With $a = q^\\top W k$ there is no such floor."));
  const Tensor v = places();
  const Tensor wanted({2, 2}, {v.at({kCup, 0}), v.at({kCup, 1}), v.at({kBook, 0}), v.at({kBook, 1})});
  const double dx = v.at({kCup, 0}) - v.at({kBook, 0}), dy = v.at({kCup, 1}) - v.at({kBook, 1}),
               floor = (dx * dx + dy * dy) / 4;
  const Trained keys_only = train(
      zeros({4}), [](const Tensor& w) { return Salience{w}; }, wanted);
  const Trained with_query = train(
      zeros({4, 4}), [](const Tensor& w) { return Bilinear{w}; }, wanted);
  page.table(
      {tr("learned score"), tr("the thirsty look at"), tr("the reader looks at"), tr("loss")},
      {{"$w^\\top k$", place(keys_only.output, 0), place(keys_only.output, 1), rounded(keys_only.loss.back(), 4)},
       {"$q^\\top W k$", place(with_query.output, 0), place(with_query.output, 1),
        rounded(with_query.loss.back(), 4)}});
  page.draw("learned-pooling",
            curves({{tr("key only"), keys_only.step, keys_only.loss},
                    {tr("query and key"), with_query.step, with_query.loss},
                    {tr("floor without a query"), {0, 600}, {floor, floor}, line_style("k:")}},
                   {.label = tr("step")}, {.label = tr("mean squared distance"), .scale = AxisScale::log}),
            tr("The loss stops at the floor when the score cannot see the task, and keeps falling when it can."));
  page.claim(
      same_rows(keys_only.output) && keys_only.loss.back() > floor - 1e-4 && keys_only.loss.back() < 1.05 * floor,
      tr("Learned pooling without a query ends in one compromise for both tasks."),
      tr("loss {loss:.4f} after training, the floor is {floor:.4f}", "loss"_a = keys_only.loss.back(),
         "floor"_a = floor));
  page.claim(with_query.loss.back() < 0.05 * floor, tr("With a query the same training serves both."),
             tr("loss {loss:.4f} after training, the floor without a query was {floor:.4f}",
                "loss"_a = with_query.loss.back(), "floor"_a = floor));
}

}  // namespace cues

Lab cues_lab() {
  return {"10.1",
          "cues",
          tr("Attention cues: queries, keys and values"),
          {cues::words, cues::desk, cues::black_and_white, cues::convolution_cue, cues::learned_pooling,
           cues::identity_map, cues::random_map, cues::database, cues::kinds_of_weights, cues::hard_attention,
           cues::translation, cues::covariance, cues::search_engine, cues::squeeze_and_excitation}};
}

}  // namespace qkv::labs
