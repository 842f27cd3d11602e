// Lab 10.1: hard attention. One key is drawn from the weights instead of averaging all of them.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/data/shuffle.h"
#include "qkv/labs/cues.h"
#include "qkv/labs/show.h"
#include "qkv/labs/work.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/ops/softmax.h"
#include "qkv/tensor/tape.h"
#include "qkv/train/fit.h"

namespace qkv::labs::cues {
namespace {

constexpr int64_t kKeys = 8, kCues = 8, kRows = 32, kSteps = 300, kDraws = 1000;

// alone: every cue belongs to one key, and its value is wanted. twins: two keys have the same cue and different values,
// and either value is right.
enum class Desk { alone, twins };
enum class Way { soft, hard, with_baseline };

struct Rows {
  Ids cells;             // (B, keys): the place of (cue of the query, cue of the key) in the matrix of scores
  Tensor value;          // (B, keys)
  Tensor loss;           // (B, keys): if that key's value were the answer
  Tensor first, second;  // (B, 1): the values that are right; the same if there is one
};

Rows draw(Desk desk, const Rng& rng) {
  Rows out{Ids::empty({kRows, kKeys}), normal({kRows, kKeys}, rng.at("values")), Tensor::empty({kRows, kKeys}),
           Tensor::empty({kRows, 1}), Tensor::empty({kRows, 1})};
  for (int64_t r = 0; r < kRows; ++r) {
    const Rng own = rng.at(static_cast<uint64_t>(r));
    std::vector<int64_t> cues = shuffled(kKeys, own.at("cues"));
    if (desk == Desk::twins)
      for (int64_t& cue : cues) cue /= 2;
    const auto wanted = static_cast<int64_t>(own.below(desk == Desk::twins ? kCues / 2 : kCues, 0));
    std::vector<float> right;
    for (int64_t j = 0; j < kKeys; ++j) {
      const int64_t cue = cues[static_cast<size_t>(j)];
      out.cells.mutable_ptr()[r * kKeys + j] = static_cast<int32_t>(wanted * kCues + cue);
      if (cue == wanted) right.push_back(out.value.ptr()[r * kKeys + j]);
    }
    out.first.mutable_ptr()[r] = right.front();
    out.second.mutable_ptr()[r] = right.back();
    for (int64_t j = 0; j < kKeys; ++j) {
      const float v = out.value.ptr()[r * kKeys + j];
      out.loss.mutable_ptr()[r * kKeys + j] =
          std::min((v - right.front()) * (v - right.front()), (v - right.back()) * (v - right.back()));
    }
  }
  return out;
}

// log alpha (B, keys) from the matrix of scores (cues, cues).
Tensor log_weights(const Tensor& scores, const Rows& rows) {
  return log_softmax(reshape(gather_rows(reshape(scores, {kCues * kCues, 1}), rows.cells), {kRows, kKeys}));
}

// One key per row, drawn from alpha, as 0 and 1: (B, keys).
Tensor drawn(const Tensor& log_alpha, const Rng& rng) {
  Tensor out = zeros({kRows, kKeys});
  const Tensor u = uniform({kRows}, rng);
  for (int64_t r = 0; r < kRows; ++r) {
    double left = u.ptr()[r];
    int64_t j = 0;
    for (; j + 1 < kKeys; ++j) {
      left -= std::exp(static_cast<double>(log_alpha.ptr()[r * kKeys + j]));
      if (left < 0) break;
    }
    out.mutable_ptr()[r * kKeys + j] = 1;
  }
  return out;
}

// The squared distance of the mean value to the nearest right one, averaged over the rows.
Tensor soft_loss(const Tensor& log_alpha, const Rows& rows) {
  const Tensor y = sum(mul(exp(log_alpha), rows.value), -1, KeepDims::yes);
  const Tensor a = sub(y, rows.first), b = sub(y, rows.second);
  return mean(min(concat({mul(a, a), mul(b, b)}, 1), 1));
}

// A function whose gradient is an estimate of that of the expected loss: (loss - baseline) log alpha of the drawn key.
Tensor hard_estimate(const Tensor& log_alpha, const Rows& rows, const Tensor& chosen, double baseline) {
  const Tensor loss = sum(mul(rows.loss, chosen), 1);
  return mean(mul(shift(loss, static_cast<float>(-baseline)), sum(mul(log_alpha, chosen), 1)));
}

double expected_loss(const Tensor& scores, const Rows& rows) {
  return mean(sum(mul(exp(log_weights(scores, rows)), rows.loss), 1)).item();
}

struct Learned {
  Tensor scores;
  std::vector<double> steps, losses;  // what the answers cost on new rows
};

struct Scores {
  Tensor matrix;
  void visit(auto&& f) { f("matrix", matrix); }
};

Learned learn(Desk desk, Way way, const Rng& rng) {
  Scores model{parameter(zeros({kCues, kCues}))};
  Learned out;
  Adam adam;
  double baseline = 0;
  const auto measure = [&](int64_t step) {
    double sum = 0;
    for (uint64_t test = 0; test < 8; ++test) {
      const Rows rows = draw(desk, rng.at("test").at(test));
      sum += way == Way::soft ? soft_loss(log_weights(model.matrix, rows), rows).item()
                              : expected_loss(model.matrix, rows);
    }
    out.steps.push_back(static_cast<double>(step));
    out.losses.push_back(sum / 8);
  };
  measure(0);
  fit(model, adam,
      {.epochs = 30,
       .steps = kSteps,
       .rate = [](int64_t) { return 0.05f; },
       .on_epoch = [&](const Progress& p) { measure(p.step); }},
      [&](int64_t step, const Run&) {
        const Rows rows = draw(desk, rng.at("rows").at(static_cast<uint64_t>(step)));
        const Tensor log_alpha = log_weights(model.matrix, rows);
        if (way == Way::soft) return soft_loss(log_alpha, rows);
        const Tensor chosen = drawn(log_alpha.detached(), rng.at("draws").at(static_cast<uint64_t>(step)));
        const double now = mean(sum(mul(rows.loss, chosen), 1)).item();
        const Tensor estimate = hard_estimate(log_alpha, rows, chosen, way == Way::with_baseline ? baseline : 0);
        baseline = step == 0 ? now : 0.9 * baseline + 0.1 * now;  // the running mean of earlier losses
        return estimate;
      });
  out.scores = model.matrix;
  return out;
}

// Gradients of the same rows at the same scores, over many draws.
struct Spread {
  double variance = 0;  // summed over all scores
  double off = 0;       // squared distance of their mean from the gradient of the expected loss
};
Spread spread(const Tensor& at, const Rows& rows, double baseline, const Rng& rng) {
  const int64_t n = kCues * kCues;
  std::vector<double> sums(static_cast<size_t>(n)), squares(static_cast<size_t>(n));
  for (int64_t d = 0; d < kDraws; ++d) {
    const Tensor scores = parameter(at.copied());
    Tape tape;
    const Tensor log_alpha = log_weights(scores, rows);
    tape.backward(
        hard_estimate(log_alpha, rows, drawn(log_alpha.detached(), rng.at(static_cast<uint64_t>(d))), baseline));
    const Tensor gradient = tape.grad(scores);
    for (int64_t i = 0; i < n; ++i) {
      sums[static_cast<size_t>(i)] += gradient.ptr()[i];
      squares[static_cast<size_t>(i)] += std::pow(gradient.ptr()[i], 2.0);
    }
  }
  const Tensor scores = parameter(at.copied());
  Tape tape;
  tape.backward(mean(sum(mul(exp(log_weights(scores, rows)), rows.loss), 1)));
  const Tensor exact = tape.grad(scores);
  Spread out;
  for (int64_t i = 0; i < n; ++i) {
    const double m = sums[static_cast<size_t>(i)] / kDraws;
    out.variance += squares[static_cast<size_t>(i)] / kDraws - m * m;
    out.off += std::pow(m - exact.ptr()[i], 2);
  }
  return out;
}

}  // namespace

void hard_attention(Page& page) {
  page.heading(tr("Soft and hard: averaging all values, or drawing one"));
  page.say(tr(
      "Attention pooling here is **soft**: it averages all values, and the average has a gradient. **Hard** attention "
      "(Xu et al., 2015) draws one key from the weights and takes its value alone. A draw has no gradient; what can be "
      "followed is the gradient of the expected loss, estimated from the draws themselves (REINFORCE; Williams, "
      "1992):"));
  page.formula("\\nabla E[L] = E[(L_j - b) \\nabla \\log \\alpha_j], \\quad j \\sim \\alpha");
  page.say(
      tr("The estimate is right on average for any baseline $b$ that does not depend on the draw. The toy task: {keys} "
         "keys, each with a cue and a random value; the query names a cue, and the value of its key is wanted. What is "
         "learned is a score for every pair of cues, {steps} steps with {rows} rows each.",
         "keys"_a = kKeys, "steps"_a = kSteps, "rows"_a = kRows));
  const Rng rng = Rng(page.seed()).at("hard");
  std::vector<Learned> alone(3), twins(3);
  {
    Work work(page, tr("training soft and hard attention"), 6);
    parallel_for(6, 1e9, [&](int64_t job) {
      const SerialScope serial;
      const auto way = static_cast<Way>(job % 3);
      (job < 3 ? alone : twins)[static_cast<size_t>(job % 3)] =
          learn(job < 3 ? Desk::alone : Desk::twins, way, rng.at(job < 3 ? "alone" : "twins"));
      work.at(static_cast<size_t>(job), 1);
    });
  }
  const auto figure = [](const std::vector<Learned>& of) {
    return curves({{tr("soft"), of[0].steps, of[0].losses, line_style("b-")},
                   {tr("hard"), of[1].steps, of[1].losses, line_style("r:")},
                   {tr("hard, with a baseline"), of[2].steps, of[2].losses, line_style("g--")}},
                  {.label = tr("step")}, {.label = tr("loss on new rows"), .low = 0});
  };
  page.draw("hard", figure(alone), tr("One key is right. Soft attention has the exact gradient and learns fastest."));
  // The spread of the gradient at the start, and half-way to a solution.
  const Rows rows = draw(Desk::alone, rng.at("spread"));
  std::vector<std::pair<Text, std::vector<std::string>>> table;
  bool unbiased = true, smaller = true;
  double plain_variance = 0, base_variance = 0;
  for (const float strength : {0.f, 2.f}) {
    Tensor at = scale(eye(kCues), strength);
    const double baseline = expected_loss(at, rows);
    const Spread plain = spread(at, rows, 0, rng.at("plain")), based = spread(at, rows, baseline, rng.at("based"));
    unbiased &= plain.off < 3 * plain.variance / kDraws && based.off < 3 * based.variance / kDraws;
    smaller &= based.variance < plain.variance;
    table.push_back({strength == 0 ? tr("at the start") : tr("half-way"),
                     {"0", tiny(plain.variance), tiny(based.variance), rounded(plain.variance / based.variance, 2)}});
    if (strength == 0) {
      plain_variance = plain.variance;
      base_variance = based.variance;
    }
  }
  page.say(tr("The variance of the gradient over {draws} draws, on the same rows, added up over all scores:",
              "draws"_a = kDraws));
  named_table(page, {verbatim(""), tr("soft"), tr("hard"), tr("hard, with a baseline"), tr("times smaller")}, table);
  page.claim(unbiased,
             tr("With and without a baseline the estimates are right on average: their mean is the gradient of the "
                "expected loss, up to the error that so many draws leave."),
             tr("the squared distance is below three times variance / {draws} everywhere", "draws"_a = kDraws));
  page.claim(smaller,
             tr("A baseline makes the gradient of hard attention less noisy; that of soft attention has no noise."),
             tr("at the start {plain} without, {based} with it", "plain"_a = tiny(plain_variance),
                "based"_a = tiny(base_variance)));
  page.claim(
      alone[0].losses.back() < alone[1].losses.back(),
      tr("Where one value is right, soft attention learns it better in the same number of steps."),
      tr("loss {soft:.3f} soft, {hard:.3f} hard, {based:.3f} hard with a baseline", "soft"_a = alone[0].losses.back(),
         "hard"_a = alone[1].losses.back(), "based"_a = alone[2].losses.back()));
  page.say(
      tr("**When hard wins.** Now two keys have the same cue and different values, and either value is right. Their "
         "scores are equal, so soft attention averages them, and the average is neither. Hard attention takes one. The "
         "same happens wherever a mean of good answers is a bad answer; and hard attention reads one value instead of "
         "{keys}.",
         "keys"_a = kKeys));
  page.draw("hard-wins", figure(twins), tr("Two keys are right. The mean of both values is neither of them."));
  page.claim(twins[2].losses.back() < 0.5 * twins[0].losses.back(),
             tr("Where two different values are both right, hard attention beats soft attention."),
             tr("loss {soft:.3f} soft, {based:.3f} hard with a baseline", "soft"_a = twins[0].losses.back(),
                "based"_a = twins[2].losses.back()));
}

}  // namespace qkv::labs::cues
