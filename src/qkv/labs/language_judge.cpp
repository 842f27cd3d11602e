// Lab 11.9: beginnings of sentences about one or about several, and models that are trained to tell them apart.
#include <algorithm>
#include <array>
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

// Beginnings after a line end, filled up with line ends, and the label at the place that is asked.
struct Asked {
  Ids read, labels;  // (B, n); kNotAsked except at one place per row
  std::vector<int64_t> places;
};

Asked asked_rows(const Subjects& all, std::span<const int64_t> which, ReadAt at) {
  size_t longest = 0;
  for (const int64_t i : which) longest = std::max(longest, all.beginnings[static_cast<size_t>(i)].size());
  const int64_t rows = std::ssize(which), n = static_cast<int64_t>(longest) + 1;
  Asked out{Ids::empty({rows, n}), Ids::empty({rows, n}), {}};
  std::ranges::fill(std::span(out.read.mutable_ptr(), static_cast<size_t>(rows * n)), all.line_end);
  std::ranges::fill(std::span(out.labels.mutable_ptr(), static_cast<size_t>(rows * n)), kNotAsked);
  for (int64_t r = 0; r < rows; ++r) {
    const auto i = static_cast<size_t>(which[static_cast<size_t>(r)]);
    std::ranges::copy(all.beginnings[i], out.read.mutable_ptr() + r * n + 1);
    out.places.push_back(at == ReadAt::first ? 0 : std::ssize(all.beginnings[i]));
    out.labels.mutable_ptr()[r * n + out.places.back()] = all.several[i];
  }
  return out;
}

double share_right(const Classifier& model, const Subjects& test, ReadAt at) {
  const TapePause pause;
  std::vector<int64_t> which(test.beginnings.size());
  std::iota(which.begin(), which.end(), 0);
  int64_t right = 0;
  for (size_t begin = 0; begin < which.size(); begin += kJudgedAtOnce) {
    const auto some = std::span(which).subspan(begin, std::min<size_t>(kJudgedAtOnce, which.size() - begin));
    const Asked rows = asked_rows(test, some, at);
    const Tensor scores = model.head(model.body.features(rows.read, Run{}));
    for (size_t r = 0; r < some.size(); ++r) {
      const float* s = scores.ptr() + (static_cast<int64_t>(r) * rows.read.size(1) + rows.places[r]) * 2;
      right += (s[1] > s[0]) == (test.several[begin + r] == 1);
    }
  }
  return static_cast<double>(right) / static_cast<double>(which.size());
}

}  // namespace

Subjects subjects(const WordText& text, const std::vector<int32_t>& ids) {
  const auto id_of = [&](const char* word) { return text.tokenizer.encode(word).front(); };
  const int32_t is = id_of("is"), are = id_of("are"), stop = id_of(".");
  std::vector<int32_t> without;  // what does not say how many, or begins a question
  for (const char* word : {"you", "there", "it", "that", "who"}) without.push_back(id_of(word));
  std::array<std::vector<std::vector<int32_t>>, 2> found;
  for (const std::vector<int32_t>& words : text.sentences(ids)) {
    const auto verb = std::ranges::find_if(words, [&](int32_t w) { return w == is || w == are; });
    if (verb == words.end() || verb - words.begin() < 2 || words.back() != stop) continue;
    if (verb - words.begin() + 2 > kContext || std::ranges::find(without, *(verb - 1)) != without.end()) continue;
    found[*verb == are ? 1 : 0].emplace_back(words.begin(), verb);
  }
  Subjects out;
  out.line_end = text.tokenizer.line_end();
  for (size_t i = 0; i < std::min(found[0].size(), found[1].size()); ++i)
    for (const int32_t several : {0, 1}) {
      out.beginnings.push_back(found[static_cast<size_t>(several)][i]);
      out.several.push_back(several);
    }
  return out;
}

Subjects Subjects::part(size_t first, size_t count) const {
  const auto cut = [&](const auto& all) {
    const auto begin = all.begin() + static_cast<int64_t>(first);
    return std::vector(begin, begin + static_cast<int64_t>(count));
  };
  return {cut(beginnings), cut(several), line_end};
}

double judge(const JudgePlan& plan, const LanguageModel& body, const Subjects& train, const Subjects& test,
             const Rng& rng) {
  Classifier model{body, Linear(body.config.transformer.hidden, 2, rng.at("head"))};
  const auto count = std::ssize(train.beginnings);
  const auto loss = [&](int64_t step, const Run& run) {
    std::vector<int64_t> which;  // every example once, then all again in another order
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
