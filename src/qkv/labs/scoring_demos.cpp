// Lab 10.3: the book's demos of additive and scaled dot-product attention, with equal, random and different keys.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/scoring.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/shape.h"

namespace qkv::labs::scoring {
namespace {

Ids two_and_six() { return Ids({2}, {2, 6}); }

// Rows 0..3, 4..7, ... for both batch elements: (2, 10, 4).
Tensor counting_values() { return tile(arange(0, 40).viewed({1, 10, 4}), {2, 1, 1}); }

Tensor expected_output() { return Tensor({2, 1, 4}, {2, 3, 4, 5, 10, 11, 12, 13}); }

double effective_keys(const Attended& a) {
  double total = 0;
  const Tensor entropy = a.weights.entropy();
  for (float h : entropy.data()) total += std::exp(h) / static_cast<double>(entropy.numel());
  return total;
}

}  // namespace

void equal_keys(Page& page) {
  page.heading(tr("Two scores, one answer: equal keys"));
  page.say(tr(
      "**Additive attention** is a small network with one hidden layer, so query and key may have different lengths; "
      "it has no biases. **Scaled dot-product attention** needs no parameters, but query and key must have the same "
      "length $d$."));
  page.formula("a(q, k) = w_v^\\top \\tanh(W_q q + W_k k), \\quad a(q, k) = \\frac{q^\\top k}{\\sqrt{d}}");
  page.say(tr(
      "The book's demo: random queries (2, 1, 20), keys (2, 10, 2) that are all ones, values 0 to 39 in rows of four "
      "for both batch elements, valid lengths 2 and 6, 8 hidden units, and dropout 0.1, which is off outside training. "
      "Then the same with the dot product and queries (2, 1, 2). Where keys are equal, so are their scores, for any "
      "parameters: the weights are uniform over the valid keys and the output is the mean of the first 2 and the first "
      "6 rows of values."));
  const Rng rng = Rng(page.seed()).at("equal-keys");
  const Tensor keys = ones({2, 10, 2}), values = counting_values();
  const Additive additive = Additive::random(20, 2, 8, rng.at("additive"));
  const Tensor q20 = normal({2, 1, 20}, rng.at("q20")), q2 = normal({2, 1, 2}, rng.at("q2"));
  const Mask mask = Mask::valid_lens(two_and_six());
  const Attended added = attend(additive, q20, keys, values, mask, {}, {.dropout = 0.1f});
  const Attended dotted = attend(ScaledDot{}, q2, keys, values, mask, {}, {.dropout = 0.5f});
  page.print(tr("additive:\n{additive}\nscaled dot product:\n{dot}", "additive"_a = shown(added.output),
                "dot"_a = shown(dotted.output)));
  const Tensor maps = reshape(stack({added.weights.matrix(), dotted.weights.matrix()}), {2, 2, 10});
  page.draw(
      "equal-keys",
      heatmaps(maps, tr("Keys"), tr("Queries"), {tr("additive"), tr("scaled dot product")}, {.y_tokens = {"0", "1"}}),
      tr("Both maps are 1/2 on two keys and 1/6 on six."),
      report::BenchLink("scores")
          .set("q", q2.viewed({2, 2}))
          .set("k", ones({10, 2}))
          .set("v", arange(0, 40).viewed({10, 4}))
          .set("lens", "2, 6"));
  page.beside_the_book(tr("both scores on equal keys"), shown(expected_output()), shown(added.output));
  const double off = std::max(largest_difference(added.output, expected_output()),
                              largest_difference(dotted.output, expected_output()));
  page.claim(off < 1e-4, tr("Both give [[2, 3, 4, 5]] and [[10, 11, 12, 13]]."),
             tr("largest difference {difference}", "difference"_a = tiny(off)));

  const Attended noisy =
      attend(ScaledDot{}, q2, keys, values, mask, {.training = true, .rng = rng.at("dropout")}, {.dropout = 0.5f});
  page.say(
      tr("In training, dropout is applied to the weights before they multiply the values: at rate 0.5 each is randomly "
         "set to 0 or doubled. So the same attention now gives a different output, shown below: a sum of the rows that "
         "survived, no longer their mean. The weights kept for inspection are those before dropout."));
  page.print(shown(noisy.output));
  page.claim(largest_difference(noisy.weights.matrix(), dotted.weights.matrix()) == 0,
             tr("Dropout changes the output in training, never the weights that are shown."),
             tr("largest change of a weight 0"));
}

void random_keys(Page& page) {
  page.heading(tr("The English edition's demo: random keys"));
  page.say(
      tr("The English edition draws keys and values at random, with the same valid lengths. Now the weights inside the "
         "valid part differ, and beyond it they are 0 as before."));
  const Rng rng = Rng(page.seed()).at("random-keys");
  const Tensor keys = normal({2, 10, 2}, rng.at("k")), values = normal({2, 10, 4}, rng.at("v"));
  const Mask mask = Mask::valid_lens(two_and_six());
  const Attended dotted =
      attend(ScaledDot{}, normal({2, 1, 2}, rng.at("q2")), keys, values, mask, {}, {.dropout = 0.5f});
  const Attended added = attend(Additive::random(20, 2, 8, rng.at("additive")), normal({2, 1, 20}, rng.at("q20")), keys,
                                values, mask, {}, {.dropout = 0.1f});
  const Tensor maps = reshape(stack({dotted.weights.matrix(), added.weights.matrix()}), {2, 2, 10});
  page.print(tr("scaled dot product: {dot}, additive: {additive}", "dot"_a = dotted.output.shape(),
                "additive"_a = added.output.shape()));
  page.draw(
      "random-keys",
      heatmaps(maps, tr("Keys"), tr("Queries"), {tr("scaled dot product"), tr("additive")}, {.y_tokens = {"0", "1"}}),
      tr("Random keys get different weights, within the valid lengths 2 and 6."));
  bool masked = true;
  for (int64_t p = 0; p < 2; ++p)
    for (int64_t c = 0; c < 10; ++c)
      masked = masked && (c < 2 || maps.at({p, 0, c}) == 0) && (c < 6 || maps.at({p, 1, c}) == 0);
  page.claim(masked && dotted.output.shape() == Shape{2, 1, 4} && added.output.shape() == Shape{2, 1, 4},
             tr("Outputs are (2, 1, 4), and no key beyond the valid length has any weight."),
             tr("largest weight beyond the lengths 0"));
}

void different_keys(Page& page) {
  page.exercise("10.3.1");
  page.say(tr(
      "They agreed only because the keys were equal. Below, both scores get the same queries and the same keys: keys "
      "of ones, random keys, and the random keys ten times as long. The dot product grows with the key, so long keys "
      "lead to a hard choice. The additive score passes through tanh and can never leave $\\pm \\sum_j \\lvert w_j "
      "\\rvert$ (where $w_j$ are the elements of $w_v$): its weights stay within a factor of $\\exp(2 \\sum_j \\lvert "
      "w_j \\rvert)$ however long the keys are. And additive attention has parameters: before training it knows "
      "nothing about similarity, whereas the dot product measures it from the start."));
  const Rng rng = Rng(page.seed()).at("different-keys");
  const Tensor q = normal({1, 4, 2}, rng.at("q")), k = normal({1, 10, 2}, rng.at("k")), v = zeros({1, 10, 1});
  const Additive additive = Additive::random(2, 2, 8, rng.at("additive"));
  const Tensor cases[] = {ones({1, 10, 2}), k, scale(k, 10)};
  Tensor maps = Tensor::empty({2, 3, 4, 10});
  std::vector<std::vector<std::string>> rows;
  const char* names[] = {"1", "k", "10 k"};
  for (int64_t c = 0; c < 3; ++c) {
    const Attended a = attend(additive, q, cases[c], v), s = attend(ScaledDot{}, q, cases[c], v);
    std::copy_n(a.weights.matrix().ptr(), 40, maps.mutable_ptr() + c * 40);
    std::copy_n(s.weights.matrix().ptr(), 40, maps.mutable_ptr() + (3 + c) * 40);
    rows.push_back({fmt::format("${}$", names[c]),
                    rounded(largest_difference(a.weights.matrix(), s.weights.matrix()), 3),
                    rounded(effective_keys(a), 2), rounded(effective_keys(s), 2)});
  }
  Figure figure =
      heatmaps(maps, tr("Keys"), tr("Queries"), {tr("keys of ones"), tr("random keys"), tr("ten times as long")},
               {.colours = {.low = 0, .high = 1}});
  figure.panels[0].y.label = tr("additive");
  figure.panels[3].y.label = tr("scaled dot");
  page.draw(
      "different-keys", figure, tr("Top: additive. Bottom: scaled dot product. They agree only on equal keys."),
      report::BenchLink("scores").set("q", q.viewed({4, 2})).set("k", k.viewed({10, 2})).set("v", v.viewed({10, 1})));
  page.table(
      {tr("keys"), tr("largest difference of a weight"), tr("effective keys, additive"), tr("effective keys, dot")},
      rows);

  int64_t differ = 0, sharper = 0;
  double worst_ratio = 0;
  for (uint64_t s = 0; s < 100; ++s) {
    const Rng r = rng.at(s);
    const Tensor qs = normal({1, 4, 2}, r.at("q")), ks = normal({1, 10, 2}, r.at("k"));
    const Additive net = Additive::random(2, 2, 8, r.at("additive"));
    differ += largest_difference(attend(net, qs, ks, v).weights.matrix(),
                                 attend(ScaledDot{}, qs, ks, v).weights.matrix()) > 0.05;
    const Attended a = attend(net, qs, scale(ks, 10), v), d = attend(ScaledDot{}, qs, scale(ks, 10), v);
    sharper += effective_keys(d) < effective_keys(a);
    double bound = 0;
    for (float w : net.w_v.data()) bound += 2 * std::abs(w);
    for (int64_t i = 0; i < 4; ++i) {
      const Tensor row = a.weights.row(0, 0, i);
      const auto [low, high] = std::minmax_element(row.data().begin(), row.data().end());
      worst_ratio = std::max(worst_ratio, std::log(*high / *low) / bound);
    }
  }
  page.claim(
      differ >= 95 && sharper >= 95,
      tr("With random keys the two scores differ by more than 0.05 somewhere, and with long keys the dot product is "
         "the sharper, in at least 95 of 100 draws."),
      tr("they differ in {differ} of 100 draws, the dot product is sharper in {sharper}", "differ"_a = differ,
         "sharper"_a = sharper));
  page.claim(worst_ratio <= 1 + 1e-5, tr("In all 100 draws the weights of additive attention stay within their bound."),
             tr("largest log-ratio of two weights {worst_ratio:.3f} of the bound", "worst_ratio"_a = worst_ratio));
}

}  // namespace qkv::labs::scoring
