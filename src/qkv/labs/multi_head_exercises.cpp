// Lab 10.5: exercises. The weights of the heads drawn, how different they are, which of them matter, and pruning.
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

std::vector<std::string> head_names() {
  std::vector<std::string> names;
  for (int64_t h = 1; h <= kHeads; ++h) names.push_back(fmt::format("Head {}", h));
  return names;
}

// Mean over lines and queries of half the sum of |alpha - alpha'|: 0 for equal maps, 1 for maps that never meet.
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

// E |dL/dxi_h| over lines, L the loss of a line, a mean over its answers.
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

// Closed one after another, each time the head whose loss costs least now.
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
      if (loss < best) best = loss, next = h;
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
  page.heading({"Exercise 10.5.1: the weights of the heads", "练习 10.5.1：各头的权重"});
  const Readers& r = readers(page);
  const Lines test = test_lines(page);
  const Lines line{test.letters.part(0, {1, kLength}), test.digits.part(0, {1, kLength}),
                   test.answers.part(0, {1, kLength, kQuestions})};
  const Tensor before = r.several[0].before.attended(line).weights.matrix(),
               after = r.several[0].after.attended(line).weights.matrix();
  const Tensor both = reshape(stack({before, after}), {2, kHeads, kLength, kLength});
  const auto tokens = tokens_of(test, 0);
  page.say(
      {"The maps of the model above on a line it has never seen, before training and after. A row is a token that "
       "asks, a column one that is asked. After training one can read off who does what: a column of its own for the "
       "first token, a line beside the diagonal for the token before, a scattered pattern, different in every line, "
       "for the partners. Heads that no question needs follow a pattern of no use, or repeat another's.",
       "上面的模型在一行从未见过的输入上的权重图，训练前与训练后。一行是提问的词元，一列是被问的词元。训练后可以看出"
       "谁在做什么：看第一个词元的头是一整列，看前一个词元的头是对角线旁的一条线，找伙伴的头是散落的、每行输入都不同"
       "的图案。没有问题需要的头，图案没有用处，或者重复别的头。"});
  Figure figure = heatmaps(both, "Keys", "", head_names(),
                           {.colours = {.low = 0, .high = 1}, .x_tokens = tokens, .y_tokens = tokens});
  figure.panels[0].y.label = "Queries, before training";
  figure.panels[kAll].y.label = "Queries, after training";
  page.draw("head-maps", std::move(figure),
            {"The six heads on one line: above before training, below after it.",
             "六个头在同一行上：上面训练前，下面训练后。"});
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
  page.say({"The share of each head's weight that goes to the three wanted tokens, over all test lines:",
            "每个头的权重落在三个目标词元上的比例，取全部测试行的平均："});
  page.table({{"head", "头"}, {"token before", "前一个词元"}, {"first token", "第一个词元"}, {"partner", "伙伴"}},
             rows);
  page.claim(*std::min_element(best.begin(), best.end()) > 0.6,
             {"For each question there is a head that puts most of its weight on the token with the answer.",
              "对每个问题，都有一个头把大部分权重放在有答案的词元上。"},
             fmt::format("largest share: token before {}, first {}, partner {}", percent(best[0]), percent(best[1]),
                         percent(best[2])));
}

void distances(Page& page) {
  page.heading({"How different the heads are", "各头有多不同"});
  page.say(
      {"The distance of two rows of weights, as of any two distributions, is half the sum of the absolute "
       "differences (total variation): 0 if they are equal, 1 if no token gets weight from both. Averaged over all "
       "queries of all test lines it says how different two heads are.",
       "两行权重的距离，和任何两个分布一样，是绝对差之和的一半（全变差）：相等时为 0，没有一个词元同时得到两者的权重"
       "时为 1。对所有测试行的所有查询取平均，就得到两个头有多不同。"});
  page.formula("D(a, b) = \\frac{1}{2} \\sum_j \\lvert \\alpha_j^a - \\alpha_j^b \\rvert");
  const Readers& r = readers(page);
  const Lines test = test_lines(page);
  const Tensor before = head_distances(r.several[0].before, test), after = head_distances(r.several[0].after, test);
  const Tensor both = stack({before, after});
  std::vector<std::string> numbers;
  for (int64_t h = 1; h <= kHeads; ++h) numbers.push_back(std::to_string(h));
  page.draw("head-distances",
            heatmaps(both, "Head", "Head", {"untrained", "trained"},
                     {.colours = {.low = 0, .high = 1}, .x_tokens = numbers, .y_tokens = numbers, .cell_values = true}),
            {"Mean distance between the maps of every two heads.", "每两个头的权重图之间的平均距离。"});
  const double untrained = mean_between(before), trained = mean_between(after);
  page.claim(
      trained > 1.5 * untrained,
      {"Training drives the heads apart on average: nothing in the loss asks for it, but two equal heads answer "
       "one question twice. Nothing forbids that either: see whether some pair has become alike.",
       "训练使各头平均而言分开：损失并没有这样要求，但两个相同的头只会把一个问题回答两遍。也没有什么禁止这样：看看是否有一对头变得相像。"},
      fmt::format("mean distance {:.2f} before training, {:.2f} after", untrained, trained));
}

void importance(Page& page) {
  page.heading({"Exercise 10.5.2: which heads matter", "练习 10.5.2：哪些头重要"});
  page.say(
      {"Put a gate $\\xi_h$ on what head $h$ found, 1 if open and 0 if closed. Two measures of its importance: "
       "**mask** it, that is close the gate and see by how much the loss on test lines rises; or ask the "
       "**gradient** (Michel, Levy and Neubig, 2019), the mean over lines of",
       "给第 $h$ 个头的结果加一个门 $\\xi_h$，打开为 1，关闭为 0。衡量重要性有两种办法：**掩蔽**它，即关上门，看测试"
       "行上的损失上升多少；或者看**梯度**（Michel、Levy 与 Neubig，2019），即下式对各行的平均："});
  page.formula("I_h = E_x \\left\\lvert \\frac{\\partial L(x)}{\\partial \\xi_h} \\right\\rvert");
  page.say({"Masking needs a pass over the data for each head, the gradient one forward and one backward pass for all.",
            "掩蔽要为每个头把数据过一遍；梯度则一次前向加一次反向就得到全部。"});
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
  page.table({{"head closed", "关闭的头"},
              {"loss rises by", "损失上升"},
              {"rank", "名次"},
              {"$I_h$", "$I_h$"},
              {"rank", "名次"},
              {"before", "前一个"},
              {"first", "第一个"},
              {"partner", "伙伴"}},
             rows);
  std::vector<std::string> names;
  for (int64_t h = 1; h <= kHeads; ++h) names.push_back(std::to_string(h));
  page.draw("head-importance",
            bars(names, {{"masking", relative(rise)}, {"gradient", relative(gradient)}}, {.label = "Head"},
                 {.label = "importance, largest = 1", .low = 0}),
            {"Both measures, each divided by its largest value.", "两种衡量，各除以自己的最大值。"});
  const auto by_mask = least_first(rise), by_gradient = least_first(gradient);
  const double least = rise[by_mask[0]], most = rise[by_mask.back()];
  page.claim(
      most > 0.05 && least < 0.1 * most,
      {"The heads are far from equally useful: the least useful one costs less than a tenth of the most useful one.",
       "各头的用处相差悬殊：最没用的头关上后的代价，不到最有用的十分之一。"},
      fmt::format("closing one head raises the loss by {} to {} nats per answer", nats(least), nats(most)));
  page.claim(
      rise[by_gradient[0]] < 0.1 * most && rise[by_gradient.back()] > rise[by_gradient[0]],
      {"The gradient, too, finds a head that can go: the one with the smallest $I_h$ costs less than a tenth of the "
       "most useful one.",
       "梯度也能找出可以去掉的头：$I_h$ 最小的头关上后的代价，不到最有用的十分之一。"},
      fmt::format(
          "closing the head with the smallest I_h raises the loss by {}, that with the largest by {} nats per answer",
          nats(rise[by_gradient[0]]), nats(rise[by_gradient.back()])));
  page.say(
      {"The two need not give the same order. The gradient says what a small turn of the gate would do, masking what closing it does; a "
       "model that is sure of its answers hardly feels a small turn, so all $I_h$ are small here and only their order counts. And both "
       "look at one head at a time: of two heads that do the same work each seems useless, as long as the other is there.",
       "两者给出的次序不必相同。梯度说的是门稍微转动一点会怎样，掩蔽说的是关上会怎样；对答案很有把握的模型几乎感觉不到微小的转动，所以这里"
       "的 $I_h$ 都很小，只有次序有意义。而且两者都是一次只看一个头：两个做同样工作的头，只要另一个还在，每个都显得没有用。"});
}

void pruning(Page& page) {
  page.heading({"Pruning", "剪枝"});
  page.say(
      {"So prune one at a time and measure again after each. Below, the heads are closed one after the other: by "
       "masking, measured anew each time; by both measures taken once at the beginning; and, for contrast, the most "
       "useful first. The orders are chosen on lines of their own.",
       "所以应当一次剪一个，剪后重新衡量。下面逐个关闭各头：按掩蔽，每次重新衡量；按两种衡量，只在开始时量一次；作为"
       "对照，先关最有用的。次序是在另外的行上选定的。"});
  const Readers& r = readers(page);
  const Reader& model = r.several[0].after;
  const Lines test = test_lines(page);
  // Chosen on lines of their own, so that the curves are of lines that had no say in the choice.
  const Lines chosen_on = draw_lines(250, Rng(page.seed()).at("multi-head").at("choice"));
  const auto by_mask = least_first(losses_above(each_closed(model, chosen_on), 0));
  const auto by_gradient = least_first(gate_gradients(model, chosen_on));
  const auto greedy = greedy_order(model, chosen_on);
  const std::vector<Score> best = pruned(model, test, greedy);
  std::vector<double> count;
  for (size_t i = 0; i <= kAll; ++i) count.push_back(static_cast<double>(i));
  page.draw("pruning",
            curves({{"measured anew", count, losses_of(best), line_style("bo-")},
                    {"masking, once", count, losses_of(pruned(model, test, by_mask)), line_style("g--")},
                    {"gradient, once", count, losses_of(pruned(model, test, by_gradient)), line_style("m-.")},
                    {"most useful first", count, losses_of(pruned(model, test, {by_mask.rbegin(), by_mask.rend()})),
                     line_style("r:")}},
                   {.label = "heads closed"}, {.label = "loss, nats per answer", .low = 0}),
            {"Loss on test lines as heads are closed. Three questions need at least three heads.",
             "逐个关闭头时测试行上的损失。三个问题至少需要三个头。"});
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < best.size(); ++i)
    rows.push_back({i == 0 ? "-" : std::to_string(greedy[i - 1] + 1), std::to_string(kAll - i),
                    rounded(best[i].loss, 4), percent(best[i].right[0]), percent(best[i].right[1]),
                    percent(best[i].right[2])});
  page.table({{"head closed", "关闭的头"},
              {"heads left", "剩下的头"},
              {"loss", "损失"},
              {"before", "前一个"},
              {"first", "第一个"},
              {"partner", "伙伴"}},
             rows);
  std::vector<size_t> spare = {harmless(best)};
  double two_left = best[kAll - 2].all();
  for (size_t s = 1; s < r.several.size(); ++s) {
    const Reader& other = r.several[s].after;
    const std::vector<Score> scores = pruned(other, test, greedy_order(other, chosen_on));
    spare.push_back(harmless(scores));
    two_left = std::max(two_left, scores[kAll - 2].all());
  }
  const std::string counts = fmt::format("{}, {} and {}", spare[0], spare[1], spare[2]);
  std::sort(spare.begin(), spare.end());
  page.claim(
      spare[1] >= 2 && two_left < 0.9,
      {"After training at least two of the six heads can be closed without harm (less than 2 % of the answers lost), in the "
       "median of the three starts; but two heads never answer three questions. How many can go differs: sometimes two "
       "heads share one question, and then both are needed.",
       "训练之后，六个头中至少有两个可以关掉而无损（答案正确率下降不到 2%），取三个起点的中位数；但两个头绝答不出三个问题。"
       "能关掉几个并不一定：有时两个头合答一个问题，那就都少不了。"},
      fmt::format("{} heads can go from the three models; with two heads left at most {} right", counts,
                  percent(two_left)));
  page.say(
      {"Large models are like this one: Michel, Levy and Neubig could close a good part of the heads of trained "
       "translation models, and in some layers all but one, with little harm.",
       "大模型也是如此：Michel、Levy 与 Neubig 能关掉训练好的翻译模型中相当一部分头，有些层甚至只留一个，而损害很小。"});
}

}  // namespace qkv::labs::multi_head
