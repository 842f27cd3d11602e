// Lab 11.9: sentences with and without a mistake, and models that are trained to tell them apart.
#include <algorithm>
#include <numeric>

#include "qkv/data/corruption.h"
#include "qkv/data/shuffle.h"
#include "qkv/labs/language.h"
#include "qkv/nn/module.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/schedule.h"

namespace qkv::labs::language {
namespace {

constexpr int64_t kJudgeRows = 16, kJudgedAtOnce = 50;

struct Classifier {
  LanguageModel body;
  Linear head;
  void visit(auto&& f) {
    f("body", body);
    f("head", head);
  }
};

// Sentences between line ends, filled up with line ends, and the label at the place that is asked.
struct Asked {
  Ids read, labels;  // (B, n); kNotAsked except at one place per row
  std::vector<int64_t> places;
};

Asked asked_rows(const Judged& all, std::span<const int64_t> which, ReadAt at) {
  size_t longest = 0;
  for (const int64_t i : which) longest = std::max(longest, all.sentences[static_cast<size_t>(i)].size());
  const int64_t rows = std::ssize(which), n = static_cast<int64_t>(longest) + 2;
  Asked out{Ids::empty({rows, n}), Ids::empty({rows, n}), {}};
  std::ranges::fill(std::span(out.read.mutable_ptr(), static_cast<size_t>(rows * n)), all.line_end);
  std::ranges::fill(std::span(out.labels.mutable_ptr(), static_cast<size_t>(rows * n)), kNotAsked);
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(which[static_cast<size_t>(r)]);
    std::ranges::copy(all.sentences[i], out.read.mutable_ptr() + r * n + 1);
    out.places.push_back(at == ReadAt::first ? 0 : std::ssize(all.sentences[i]) + 1);
    out.labels.mutable_ptr()[r * n + out.places.back()] = all.right[i];
  }
  return out;
}

double share_right(const Classifier& model, const Judged& test, ReadAt at) {
  const TapePause pause;
  std::vector<int64_t> which(test.sentences.size());
  std::iota(which.begin(), which.end(), 0);
  int64_t right = 0;
  for (size_t begin = 0; begin < which.size(); begin += kJudgedAtOnce) {
    const auto some = std::span(which).subspan(begin, std::min<size_t>(kJudgedAtOnce, which.size() - begin));
    const Asked rows = asked_rows(test, some, at);
    const Tensor scores = model.head(model.body.features(rows.read, Run{}));
    for (size_t r = 0; r < some.size(); ++r) {
      const float* s = scores.ptr() + (static_cast<int64_t>(r) * rows.read.size(1) + rows.places[r]) * 2;
      right += (s[1] > s[0]) == (test.right[begin + r] == 1);
    }
  }
  return static_cast<double>(right) / static_cast<double>(which.size());
}

}  // namespace

Judged judged(const std::vector<std::vector<int32_t>>& sentences, size_t first, size_t count, int32_t line_end,
              const Rng& rng) {
  Judged out;
  out.line_end = line_end;
  for (size_t i = first; out.sentences.size() < count; ++i) {
    check(i < sentences.size(), "[judged] there are only ", sentences.size(), " sentences");
    std::vector<int32_t> words = sentences[i];
    if (words.size() < 4 || std::ssize(words) + 2 > kContext) continue;
    const bool right = out.sentences.size() % 2 == 0;
    if (!right) {  // the last word is a full stop or a question mark, and stays
      const auto at = static_cast<int64_t>(rng.below(words.size() - 2, i));
      std::iter_swap(words.begin() + at, words.begin() + at + 1);
    }
    out.sentences.push_back(std::move(words));
    out.right.push_back(right);
  }
  return out;
}

Judged Judged::part(size_t first, size_t count) const {
  const auto cut = [&](const auto& all) {
    const auto begin = all.begin() + static_cast<int64_t>(first);
    return std::vector(begin, begin + static_cast<int64_t>(count));
  };
  return {cut(sentences), cut(right), line_end};
}

double judge(const JudgePlan& plan, const LanguageModel& body, const Judged& train, const Judged& test,
             const Rng& rng) {
  Classifier model{body, Linear(body.config.transformer.hidden, 2, rng.at("head"))};
  const auto count = std::ssize(train.sentences);
  const auto loss = [&](int64_t step, const Run& run) {
    std::vector<int64_t> which;  // every sentence once, then all again in another order
    for (int64_t i = step * kJudgeRows; i < (step + 1) * kJudgeRows; ++i)
      which.push_back(
          shuffled(count, rng.at("order").at(static_cast<uint64_t>(i / count)))[static_cast<size_t>(i % count)]);
    const Asked rows = asked_rows(train, which, plan.at);
    Tensor x;
    if (plan.frozen) {
      const TapePause pause;
      x = model.body.features(rows.read, Run{});
    } else {
      x = model.body.features(rows.read, run);
    }
    return linear_cross_entropy(x, model.head.weight, model.head.bias, rows.labels, {.ignore_id = kNotAsked});
  };
  Adam adam = adamw(0.01f);
  const FitOptions options{.steps = plan.steps, .rate = cosine_rate(plan.rate, plan.steps, plan.steps / 10), .clip = 1};
  if (plan.frozen)
    fit(model.head, adam, options, loss);
  else
    fit(model, adam, options, loss);
  return share_right(model, test, plan.at);
}

}  // namespace qkv::labs::language
