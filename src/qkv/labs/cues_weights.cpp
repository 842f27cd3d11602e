// Lab 10.1: pictures of weights, and attention as a database with approximate look-up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/labs/cues.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/ops/softmax.h"

namespace qkv::labs::cues {
namespace {

const std::vector<std::string> kNames = {"turing", "hopper", "lovelace", "shannon", "noether"};

// How often each letter occurs: (names, 26).
Tensor letters(const std::vector<std::string>& names) {
  Tensor counts = zeros({static_cast<int64_t>(names.size()), 26});
  for (size_t i = 0; i < names.size(); ++i)
    for (char c : names[i]) counts.mutable_ptr()[i * 26 + static_cast<size_t>(c - 'a')] += 1;
  return counts;
}

std::string year(const Attended& a, int64_t query) {
  return a.weights.column_mass().numel() && sum(a.weights.row(0, 0, query)).item() == 0
             ? "—"
             : rounded(a.output.at({query, 0}), 1);
}

}  // namespace

void identity_map(Page& page) {
  page.heading(tr("Weights as a picture"));
  page.say(tr(
      "A row of the heat map is a query, a column is a key, and the colour is a weight. The simplest picture is the "
      "identity: each query puts all its weight on the key that equals it. Attention gives this result when ten keys "
      "point in ten different directions and the queries are the same vectors, long enough for the softmax to "
      "choose."));
  const Tensor x = scale(eye(10), 40);
  const Tensor weights = attend(Dot{}, x, x, eye(10)).weights.matrix();
  page.draw("identity", heatmaps(weights, tr("Keys"), tr("Queries"), {}),
            tr("The weight is 1 where query and key are the same, else 0."),
            report::BenchLink("scores").set("score", "dot").set("q", x).set("k", x).set("v", eye(10)));
  const double off = largest_difference(weights.viewed({10, 10}), eye(10));
  page.claim(off == 0, tr("The weights are the identity matrix, bit for bit."),
             tr("largest |α − I| {off}", "off"_a = off));
}

void random_map(Page& page) {
  page.exercise("10.1.2");
  page.say(tr(
      "Ten by ten random numbers from [0, 1), with a softmax over each row. The colours look lively only because the "
      "scale is stretched: scores that differ by less than 1 give weights that differ by less than a factor of $e$, so "
      "each row is nearly an average. A row's effective number of keys is $\\exp(H)$, where $H$ is its entropy: 1 for "
      "a choice, 10 for an average. The second map has the same scores, ten times as large."));
  const Tensor scores = uniform({10, 10}, Rng(page.seed()).at("random-map"));
  const Tensor soft = softmax(scores), sharp = softmax(scale(scores, 10));
  const Tensor both = stack({soft, sharp});
  page.draw("random-softmax", heatmaps(both, tr("Keys"), tr("Queries"), {"softmax(S)", "softmax(10 S)"}, {}),
            tr("Random scores as attention weights. Both maps share one colour scale."),
            report::BenchLink("scores").set("score", "dot").set("q", scores).set("k", eye(10)).set("v", eye(10)));
  const Tensor entropy = Weights(soft.viewed({1, 1, 10, 10})).entropy(),
               sharp_entropy = Weights(sharp.viewed({1, 1, 10, 10})).entropy();
  double keys = 0, sharp_keys = 0, worst = 0, ratio = 0;
  for (int64_t i = 0; i < 10; ++i) {
    keys += std::exp(entropy.ptr()[i]) / 10;
    sharp_keys += std::exp(sharp_entropy.ptr()[i]) / 10;
    double total = 0;
    for (int64_t j = 0; j < 10; ++j) total += soft.at({i, j});
    worst = std::max(worst, std::abs(total - 1));
    const auto [low, high] = std::minmax_element(soft.ptr() + i * 10, soft.ptr() + i * 10 + 10);
    ratio = std::max(ratio, static_cast<double>(*high / *low));
  }
  page.claim(worst < 1e-6 && ratio < std::exp(1.0),
             tr("Every row sums to one, and no weight is $e$ times another in its row."),
             tr("largest |Σα − 1| {worst}, largest ratio of two weights {ratio:.2f}", "worst"_a = tiny(worst),
                "ratio"_a = ratio));
  page.claim(
      keys > 8.5 && sharp_keys < keys - 1,
      tr("Random scores below 1 spread the weight over nearly all keys; scores ten times as large concentrate it."),
      tr("effective keys out of 10: {keys:.2f}, with ten times the scores {sharp_keys:.2f}", "keys"_a = keys,
         "sharp_keys"_a = sharp_keys));
}

void database(Page& page) {
  page.exercise("11.1.1");
  page.say(tr(
      "A database holds key-value pairs, and attention reads it: here five names and years of birth. A key is the "
      "count of each letter, and a name is compared with a key by distance. **Exact look-up** is a score of 0 for the "
      "same letters and minus infinity otherwise. **Approximate look-up**, which databases call fuzzy matching, is a "
      "kernel: the boxcar kernel returns all keys within a radius, the Gaussian prefers the nearest and is "
      "differentiable. A **constant** score returns the average of the whole table. Only the score changes; the "
      "database does not."));
  const Tensor k = letters(kNames), v({5, 1}, {1912, 1906, 1815, 1916, 1882});
  const std::vector<std::string> asked = {"hopper", "shanon", "lovelase"};
  const Tensor q = letters(asked);
  const Attended exact = attend(Boxcar::bandwidth(0.5f), q, k, v), near = attend(Boxcar::bandwidth(1.5f), q, k, v);
  const Attended soft = attend(Gaussian::bandwidth(1), q, k, v), all = attend(Constant{}, q, k, v);
  const Tensor maps = reshape(stack({exact.weights.matrix(), near.weights.matrix(), soft.weights.matrix()}), {3, 3, 5});
  std::vector<std::vector<std::string>> rows;
  for (int64_t i = 0; i < 3; ++i)
    rows.push_back({asked[static_cast<size_t>(i)], year(exact, i), year(near, i), year(soft, i), year(all, i)});
  page.table({tr("query"), tr("exact look-up"), tr("radius 1.5"), tr("Gaussian, $h = 1$"), tr("constant")}, rows);
  page.draw(
      "database",
      heatmaps(maps, "", "", {tr("exact look-up"), tr("boxcar 1.5"), tr("Gaussian 1")},
               {.colours = {.low = 0, .high = 1}, .x_tokens = kNames, .y_tokens = asked, .cell_values = true}),
      tr("One table queried in three ways. For the two misspelt names, exact look-up finds nothing, and approximate "
         "look-up finds the right person."));
  page.claim(year(exact, 0) == "1906.0" && exact.weights.empty_rows() == 2 && exact.output.at({1, 0}) == 0,
             tr("Exact look-up is one-hot where the key exists, and empty, not an average, where it does not."),
             tr("f(hopper) = {year}, empty rows: {empty_rows}", "year"_a = year(exact, 0),
                "empty_rows"_a = exact.weights.empty_rows()));
  page.claim(year(near, 1) == "1916.0" && year(near, 2) == "1815.0" && soft.weights.row(0, 0, 1).at({3}) > 0.9 &&
                 soft.weights.row(0, 0, 2).at({2}) > 0.9,
             tr("A kernel finds both misspelt names."),
             tr("weight of shannon for \"shanon\" {shannon:.3f}, of lovelace for \"lovelase\" {lovelace:.3f}",
                "shannon"_a = soft.weights.row(0, 0, 1).at({3}), "lovelace"_a = soft.weights.row(0, 0, 2).at({2})));
}

void kinds_of_weights(Page& page) {
  page.heading(tr("Constraints on the weights"));
  page.say(tr(
      "The sum $\\sum_i \\alpha_i v_i$ makes sense under several constraints. Weights that are only non-negative reach "
      "the cone of the values; weights that also sum to one stay inside their convex hull, which is the usual case; a "
      "single weight of 1 is a look-up; equal weights are average pooling. Any non-negative similarity $K(q, k)$ can "
      "be divided by its sum, and that is a softmax with the score $\\log K$. Drawing one key at random, with the "
      "weights as probabilities, has no derivative; models that do so are trained by reinforcement learning. A "
      "weighted mean has one, and this chapter uses it throughout."));
  page.formula("\\frac{K(q, k_i)}{\\sum_j K(q, k_j)} = \\mathrm{softmax}(\\log K(q, k_i))");
  const Rng rng = Rng(page.seed()).at("kinds");
  const Tensor q = normal({20, 3}, rng.at("q")), k = normal({30, 3}, rng.at("k")), v = normal({30, 1}, rng.at("v"));
  double worst = 0;
  const Attended gaussian = attend(Gaussian{}, q, k, v);
  for (int64_t i = 0; i < 20; ++i) {
    double weighted = 0, total = 0;
    for (int64_t j = 0; j < 30; ++j) {
      double square = 0;
      for (int64_t f = 0; f < 3; ++f) square += std::pow(static_cast<double>(q.at({i, f})) - k.at({j, f}), 2);
      total += std::exp(-square / 2);
      weighted += std::exp(-square / 2) * v.ptr()[j];
    }
    worst = std::max(worst, std::abs(weighted / total - gaussian.output.at({i, 0})));
  }
  page.claim(worst < 1e-5, tr("Dividing a Gaussian kernel by its sum equals the softmax of its logarithm."),
             tr("largest difference {difference}", "difference"_a = tiny(worst)));
}

}  // namespace qkv::labs::cues
