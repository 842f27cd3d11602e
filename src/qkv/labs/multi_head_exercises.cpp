// Lab 10.5: exercises. Pictures of the heads' weights, how different the heads are, which of them matter, and pruning.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/attention/attend.h"
#include "qkv/labs/multi_head.h"
#include "qkv/labs/show.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv::labs::multi_head {
namespace {

constexpr size_t kAll = static_cast<size_t>(kHeads);

// Mean over lines and queries of half the sum of |alpha - alpha'|: 0 for equal maps, 1 for maps that never overlap.
Tensor head_distances(const Reader& reader, const Lines& lines) {
  const Tensor w = reader.attended(lines).weights.matrix();
  const int64_t map = kLength * kLength;
  Tensor out = zeros({kHeads, kHeads});
  for (int64_t a = 0; a < kHeads; ++a)
    for (int64_t b = 0; b < kHeads; ++b) {
      double total = 0;
      for (int64_t line = 0; line < lines.rows(); ++line) {
        const float *p = w.ptr() + (line * kHeads + a) * map, *q = w.ptr() + (line * kHeads + b) * map;
        for (int64_t i = 0; i < map; ++i) total += std::abs(p[i] - q[i]);
      }
      out.mutable_ptr()[a * kHeads + b] = static_cast<float>(total / 2 / static_cast<double>(lines.rows() * kLength));
    }
  return out;
}

double mean_between(const Tensor& distances) {
  double sum = 0;
  for (float d : distances.data()) sum += d;
  return sum / static_cast<double>(kHeads * (kHeads - 1));
}

Tensor gates_without(const std::vector<size_t>& closed) {
  Tensor gates = ones({1, 1, kHeads, 1});
  for (size_t h : closed) gates.mutable_ptr()[h] = 0;
  return gates;
}

std::vector<Score> each_closed(const Reader& reader, const Lines& lines) {
  const Tensor found = reader.attended(lines).output;
  std::vector<Score> scores;
  for (size_t h = 0; h < kAll; ++h) scores.push_back(score(reader, found, lines, gates_without({h})));
  return scores;
}

// E |dL/dxi_h| over lines, where L is the mean loss over the answers of a line.
std::vector<double> gate_gradients(const Reader& reader, const Lines& lines) {
  const Tensor gates = parameter(ones({lines.rows(), 1, kHeads, 1}));
  Tape tape;
  const Tensor logits = reader.logits(reader.attended(lines).output, gates);
  tape.backward(
      scale(cross_entropy(logits, lines.answers, {.reduction = Reduction::sum}), 1.0f / (kLength * kQuestions)));
  const Tensor gradient = tape.grad(gates);
  std::vector<double> mean(kAll, 0);
  for (int64_t i = 0; i < gradient.numel(); ++i)
    mean[static_cast<size_t>(i % kHeads)] += std::abs(gradient.ptr()[i]) / static_cast<double>(lines.rows());
  return mean;
}

std::vector<double> losses_above(const std::vector<Score>& scores, double base) {
  std::vector<double> rise;
  for (const Score& s : scores) rise.push_back(s.loss - base);
  return rise;
}

// Heads from the least useful to the most.
std::vector<size_t> least_first(const std::vector<double>& useful) {
  std::vector<size_t> order(useful.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return useful[a] < useful[b]; });
  return order;
}

size_t rank_of(const std::vector<double>& useful, size_t head) {
  const auto order = least_first(useful);
  return useful.size() - static_cast<size_t>(std::find(order.begin(), order.end(), head) - order.begin());
}

std::vector<double> relative(std::vector<double> values) {
  const double most = *std::max_element(values.begin(), values.end());
  for (double& v : values) v = std::max(v / most, 0.0);
  return values;
}

// The order of greedy closing: each time the head whose closing raises the loss least.
std::vector<size_t> greedy_order(const Reader& reader, const Lines& lines) {
  const Tensor found = reader.attended(lines).output;
  std::vector<size_t> closed;
  while (closed.size() < kAll) {
    double best = 1e9;
    size_t next = 0;
    for (size_t h = 0; h < kAll; ++h) {
      if (std::find(closed.begin(), closed.end(), h) != closed.end()) continue;
      closed.push_back(h);
      const double loss = score(reader, found, lines, gates_without(closed)).loss;
      closed.pop_back();
      if (loss < best) {
        best = loss;
        next = h;
      }
    }
    closed.push_back(next);
  }
  return closed;
}

std::vector<Score> pruned(const Reader& reader, const Lines& lines, const std::vector<size_t>& order) {
  const Tensor found = reader.attended(lines).output;
  std::vector<Score> scores;
  for (size_t count = 0; count <= order.size(); ++count)
    scores.push_back(
        score(reader, found, lines, gates_without({order.begin(), order.begin() + static_cast<int64_t>(count)})));
  return scores;
}

// How many heads can be closed in that order before more than 2 % of the answers are lost.
size_t harmless(const std::vector<Score>& scores) {
  size_t count = 0;
  while (count + 1 < scores.size() && scores[count + 1].all() > scores[0].all() - 0.02) ++count;
  return count;
}

// Four decimals, and never "-0.0000".
std::string nats(double loss) { return rounded(std::abs(loss) < 5e-5 ? 0 : loss, 4); }

std::vector<double> losses_of(const std::vector<Score>& scores) { return losses_above(scores, 0); }

// The share of each head's weight that goes to the token before, to the first token and to the partner, over all lines.
std::vector<std::vector<double>> shares(const Reader& reader, const Lines& lines) {
  const Tensor w = reader.attended(lines).weights.matrix();
  std::vector<std::vector<double>> share(kAll, std::vector<double>(3, 0));
  for (int64_t b = 0; b < lines.rows(); ++b)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t i = 0; i < kLength; ++i) {
        const float* row = w.ptr() + ((b * kHeads + h) * kLength + i) * kLength;
        const int32_t* letters = lines.letters.ptr() + b * kLength;
        int64_t partner = 0;
        while (letters[partner] != (letters[i] ^ 1)) ++partner;
        const int64_t wanted[] = {std::max<int64_t>(i - 1, 0), 0, partner};
        for (size_t q = 0; q < 3; ++q)
          share[static_cast<size_t>(h)][q] += row[wanted[q]] / static_cast<double>(lines.rows() * kLength);
      }
  return share;
}

}  // namespace

void drawn(Page& page) {
  page.exercise("10.5.1");
  const Readers& r = readers(page);
  const Lines test = test_lines(page);
  const Lines line{test.letters.part(0, {1, kLength}), test.digits.part(0, {1, kLength}),
                   test.answers.part(0, {1, kLength, kQuestions})};
  const Tensor before = r.several[0].before.attended(line).weights.matrix(),
               after = r.several[0].after.attended(line).weights.matrix();
  const Tensor both = reshape(stack({before, after}), {2, kHeads, kLength, kLength});
  const auto tokens = tokens_of(test, 0);
  page.say(tr(
      "The maps of the model above on a line it has never seen, before and after training. A row is a token that asks, "
      "a column one that is asked. After training you can see which head does what: a full column for the first token, "
      "a line next to the diagonal for the token before, and a scattered pattern, different for every line, for the "
      "partners. Heads that no question needs show a useless pattern or repeat that of another head."));
  Figure figure = heatmaps(both, tr("Keys"), "", head_names(kHeads),
                           {.colours = {.low = 0, .high = 1}, .x_tokens = tokens, .y_tokens = tokens});
  figure.panels[0].y.label = tr("Queries, before training");
  figure.panels[kAll].y.label = tr("Queries, after training");
  page.draw("head-maps", std::move(figure), tr("The six heads on one line. Top: before training; bottom: after it."));
  const auto share = shares(r.several[0].after, test);
  std::vector<std::vector<std::string>> rows;
  std::vector<double> best(3, 0);
  for (size_t h = 0; h < kAll; ++h) {
    rows.push_back({std::to_string(h + 1)});
    for (size_t q = 0; q < 3; ++q) {
      rows.back().push_back(percent(share[h][q]));
      best[q] = std::max(best[q], share[h][q]);
    }
  }
  page.say(tr("The share of each head's weight that goes to the three wanted tokens, over all test lines:"));
  page.table({tr("head"), tr("token before"), tr("first token"), tr("partner")}, rows);
  page.claim(*std::min_element(best.begin(), best.end()) > 0.6,
             tr("For each question there is a head that puts most of its weight on the token with the answer."),
             tr("largest share: token before {before}, first {first}, partner {partner}", "before"_a = percent(best[0]),
                "first"_a = percent(best[1]), "partner"_a = percent(best[2])));
}

void distances(Page& page) {
  page.heading(tr("How different the heads are"));
  page.say(
      tr("The distance between two rows of weights, as between any two distributions, is half the sum of the absolute "
         "differences (total variation): 0 if they are equal, 1 if no token gets weight from both. Averaged over all "
         "queries of all test lines, it tells how different two heads are."));
  page.formula("D(a, b) = \\frac{1}{2} \\sum_j \\lvert \\alpha_j^a - \\alpha_j^b \\rvert");
  const Readers& r = readers(page);
  const Lines test = test_lines(page);
  const Tensor before = head_distances(r.several[0].before, test), after = head_distances(r.several[0].after, test);
  const Tensor both = stack({before, after});
  std::vector<std::string> numbers;
  for (int64_t h = 1; h <= kHeads; ++h) numbers.push_back(std::to_string(h));
  page.draw("head-distances",
            heatmaps(both, tr("Head"), tr("Head"), {tr("untrained"), tr("trained")},
                     {.colours = {.low = 0, .high = 1}, .x_tokens = numbers, .y_tokens = numbers, .cell_values = true}),
            tr("Mean distance between the maps of each pair of heads."));
  const double untrained = mean_between(before), trained = mean_between(after);
  page.claim(
      trained > 1.5 * untrained,
      tr("Training drives the heads apart on average: nothing in the loss asks for it, but two equal heads only answer "
         "one question twice. Nothing forbids that either: see whether some pair has become alike."),
      tr("mean distance {untrained:.2f} before training, {trained:.2f} after", "untrained"_a = untrained,
         "trained"_a = trained));
}

void importance(Page& page) {
  page.exercise("10.5.2");
  page.say(
      tr("Put a gate $\\xi_h$ on the output of head $h$, 1 if open and 0 if closed. There are two measures of its "
         "importance: **mask** it, that is, close the gate and see how much the loss on test lines rises; or use the "
         "**gradient** (Michel, Levy and Neubig, 2019), the mean over lines of"));
  page.formula("I_h = E_x \\left\\lvert \\frac{\\partial L(x)}{\\partial \\xi_h} \\right\\rvert");
  page.say(tr(
      "Masking needs one pass over the data per head; the gradient needs one forward and one backward pass for all."));
  const Reader& model = readers(page).several[0].after;
  const Lines test = test_lines(page);
  const double base = score(model, test).loss;
  const std::vector<Score> closed = each_closed(model, test);
  const std::vector<double> rise = losses_above(closed, base), gradient = gate_gradients(model, test);
  std::vector<std::vector<std::string>> rows;
  for (size_t h = 0; h < kAll; ++h)
    rows.push_back({std::to_string(h + 1), nats(rise[h]), std::to_string(rank_of(rise, h)),
                    fmt::format("{:.1e}", gradient[h]), std::to_string(rank_of(gradient, h)),
                    percent(closed[h].right[0]), percent(closed[h].right[1]), percent(closed[h].right[2])});
  page.table({tr("head closed"), tr("loss rises by"), tr("rank"), verbatim("$I_h$"), tr("rank"), tr("before"),
              tr("first"), tr("partner")},
             rows);
  std::vector<Label> names;
  for (int64_t h = 1; h <= kHeads; ++h) names.emplace_back(std::to_string(h));
  page.draw("head-importance",
            bars(names, {{tr("masking"), relative(rise)}, {tr("gradient"), relative(gradient)}}, {.label = tr("Head")},
                 {.label = tr("importance, largest = 1"), .low = 0}),
            tr("Both measures, each divided by its largest value."));
  const auto by_mask = least_first(rise), by_gradient = least_first(gradient);
  const double least = rise[by_mask[0]], most = rise[by_mask.back()];
  page.claim(
      most > 0.05 && least < 0.1 * most,
      tr("The heads are far from equally useful: closing the least useful one costs less than a tenth as much as "
         "closing the most useful one."),
      tr("closing one head raises the loss by {least} to {most} nats per answer", "least"_a = nats(least),
         "most"_a = nats(most)));
  page.claim(
      rise[by_gradient[0]] < 0.1 * most && rise[by_gradient.back()] > rise[by_gradient[0]],
      tr("The gradient also finds a head that can go: closing the one with the smallest $I_h$ costs less than a tenth "
         "as much as closing the most useful one."),
      tr("closing the head with the smallest I_h raises the loss by {smallest}, the one with the largest by {largest} "
         "nats per answer",
         "smallest"_a = nats(rise[by_gradient[0]]), "largest"_a = nats(rise[by_gradient.back()])));
  page.say(tr(
      "The two need not give the same order. The gradient tells what a small change of the gate would do, masking what "
      "closing it does; a model that is sure of its answers hardly reacts to a small change, so all $I_h$ are small "
      "here and only their order counts. And both look at one head at a time: if two heads do the same work, each "
      "seems useless as long as the other is there."));
}

void pruning(Page& page) {
  page.heading(tr("Pruning"));
  page.say(tr(
      "So prune one head at a time and measure again after each. Below, the heads are closed one after another: by "
      "masking, measured again each time; by either measure, taken once at the beginning; and, for contrast, the most "
      "useful first. The orders are chosen on separate lines."));
  const Readers& r = readers(page);
  const Reader& model = r.several[0].after;
  const Lines test = test_lines(page);
  // The orders are chosen on separate lines, so that the test lines have no influence on the choice.
  const Lines chosen_on = draw_lines(250, Rng(page.seed()).at("multi-head").at("choice"));
  const auto by_mask = least_first(losses_above(each_closed(model, chosen_on), 0));
  const auto by_gradient = least_first(gate_gradients(model, chosen_on));
  const auto greedy = greedy_order(model, chosen_on);
  const std::vector<Score> best = pruned(model, test, greedy);
  std::vector<double> count;
  for (size_t i = 0; i <= kAll; ++i) count.push_back(static_cast<double>(i));
  page.draw("pruning",
            curves({{tr("measured again"), count, losses_of(best), line_style("bo-")},
                    {tr("masking, once"), count, losses_of(pruned(model, test, by_mask)), line_style("g--")},
                    {tr("gradient, once"), count, losses_of(pruned(model, test, by_gradient)), line_style("m-.")},
                    {tr("most useful first"), count, losses_of(pruned(model, test, {by_mask.rbegin(), by_mask.rend()})),
                     line_style("r:")}},
                   {.label = tr("heads closed")}, {.label = tr("loss, nats per answer"), .low = 0}),
            tr("Loss on test lines as heads are closed. Three questions need at least three heads."));
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < best.size(); ++i)
    rows.push_back({i == 0 ? "-" : std::to_string(greedy[i - 1] + 1), std::to_string(kAll - i),
                    rounded(best[i].loss, 4), percent(best[i].right[0]), percent(best[i].right[1]),
                    percent(best[i].right[2])});
  page.table({tr("head closed"), tr("heads left"), tr("loss"), tr("before"), tr("first"), tr("partner")}, rows);
  std::vector<size_t> spare = {harmless(best)};
  double two_left = best[kAll - 2].all();
  for (size_t s = 1; s < r.several.size(); ++s) {
    const Reader& other = r.several[s].after;
    const std::vector<Score> scores = pruned(other, test, greedy_order(other, chosen_on));
    spare.push_back(harmless(scores));
    two_left = std::max(two_left, scores[kAll - 2].all());
  }
  const std::vector<size_t> counts = spare;
  std::sort(spare.begin(), spare.end());
  page.claim(
      spare[1] >= 2 && two_left < 0.9,
      tr("After training at least two of the six heads can be closed without harm (less than 2 % of the answers lost), "
         "in the median of the three starts; but two heads never answer three questions. How many can go varies: "
         "sometimes two heads share one question, and then both are needed."),
      tr("{first}, {second} and {third} heads can be closed in the three models; with two heads left, at most {share} "
         "right",
         "first"_a = counts[0], "second"_a = counts[1], "third"_a = counts[2], "share"_a = percent(two_left)));
  page.say(tr(
      "Large models are similar: Michel, Levy and Neubig could close a large share of the heads of trained translation "
      "models, and in some layers all but one, with little harm."));
}

}  // namespace qkv::labs::multi_head
