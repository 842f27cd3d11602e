// Sampling from a toy model: frequencies, truncation, and samples that do not depend on other sentences.
#include "qkv/decode/sample.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "qkv/core/parallel.h"
#include "qkv/decode/force.h"
#include "support/files.h"
#include "support/threads.h"
#include "unit/decode/toy_steps.h"

namespace qkv {
namespace {

using namespace tests;

constexpr int32_t kNever = 4;

SampleOptions one_token(int64_t samples) {
  return {.samples = samples, .seed = 5, .max_length = 1, .begin = kBegin, .end = kEnd, .never = {kBegin, kNever}};
}

std::vector<uint64_t> numbers_of(const Ids& source) {
  std::vector<uint64_t> out;
  for (int64_t b = 0; b < source.size(0); ++b) out.push_back(static_cast<uint64_t>(source.ptr()[b]));
  return out;
}

std::vector<std::vector<Hypothesis>> samples_of(Toy& toy, const Ids& source, const SampleOptions& options) {
  return sample(toy, source, ones_like(source), numbers_of(source), options);
}

// How often each first token was drawn; an output that ended at once drew the end.
std::vector<int64_t> first_tokens(Toy& toy, int64_t vocabulary, int32_t source, const SampleOptions& options) {
  const Ids one = sources({source});
  std::vector<int64_t> counts(static_cast<size_t>(vocabulary), 0);
  const auto found = samples_of(toy, one, options);
  for (const Hypothesis& h : found[0]) ++counts[static_cast<size_t>(h.ended ? kEnd : h.tokens.at(0))];
  return counts;
}

// e^(score / temperature), 0 for tokens that are never written, normalised to sum to 1.
std::vector<double> probabilities(const Toy& toy, int32_t source, double temperature) {
  const Tensor scores = toy.scores_of({source, kBegin});
  std::vector<double> p;
  for (int64_t v = 0; v < scores.numel(); ++v)
    p.push_back(v == kBegin || v == kNever ? 0 : std::exp(scores.ptr()[v] / temperature));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& v : p) v /= sum;
  return p;
}

double chi_square(const std::vector<int64_t>& counts, const std::vector<double>& p) {
  const double all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  double sum = 0;
  for (size_t v = 0; v < p.size(); ++v) {
    if (p[v] > 0)
      sum += std::pow(static_cast<double>(counts[v]) - all * p[v], 2) / (all * p[v]);
    else
      EXPECT_EQ(counts[v], 0) << v;
  }
  return sum;
}

TEST(Sample, FrequenciesAreTheModelsProbabilities) {
  Toy toy(9);
  for (const double temperature : {0.7, 1.0, 2.5})
    for (const int32_t source : {1, 2, 3}) {
      SampleOptions options = one_token(20000);
      options.temperature = temperature;
      const auto p = probabilities(toy, source, temperature);
      // 6 degrees of freedom (7 tokens may be written): 22.5 is exceeded once in a thousand. The same counts do not fit
      // another temperature.
      const auto counts = first_tokens(toy, 9, source, options);
      EXPECT_LT(chi_square(counts, p), 22.5);
      EXPECT_GT(chi_square(counts, probabilities(toy, source, temperature * 1.5)), 100);
    }
}

TEST(Sample, EveryStepFollowsTheModelGivenWhatWasDrawnBefore) {
  Toy toy(6);
  SampleOptions options = one_token(20000);
  options.max_length = 2;
  const Ids one = sources({7});
  std::map<int32_t, std::vector<int64_t>> second;
  const auto found = samples_of(toy, one, options);
  for (const Hypothesis& h : found[0])
    if (!h.tokens.empty()) {
      auto& counts = second.try_emplace(h.tokens[0], 6, 0).first->second;
      ++counts[static_cast<size_t>(h.tokens.size() == 1 ? kEnd : h.tokens[1])];
    }
  EXPECT_EQ(second.size(), 3u);
  for (const auto& [first, counts] : second) {
    const Tensor scores = toy.scores_of({7, kBegin, first});
    std::vector<double> p;
    for (int32_t v = 0; v < 6; ++v) p.push_back(v == kBegin || v == kNever ? 0 : std::exp(scores.ptr()[v]));
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& v : p) v /= sum;
    EXPECT_LT(chi_square(counts, p), 16.3) << first;  // 3 degrees of freedom, once in a thousand
  }
}

TEST(Sample, TopKLeavesTheKLikeliestInTheirProportions) {
  Toy toy(40);
  for (const int64_t k : {1, 2, 5, 1000}) {
    SampleOptions options = one_token(20000);
    options.top_k = k;
    options.temperature = 1.5;
    auto p = probabilities(toy, 3, 1.5);
    std::vector<double> order = p;
    std::sort(order.rbegin(), order.rend());
    const double least = order[static_cast<size_t>(std::min<int64_t>(k, 38)) - 1];
    double kept = 0;
    for (double& v : p) kept += v = v >= least ? v : 0;
    for (double& v : p) v /= kept;
    EXPECT_LT(chi_square(first_tokens(toy, 40, 3, options), p), 76)
        << k;  // 37 degrees of freedom, once in five thousand
  }
}

TEST(Sample, TopPLeavesTheFewestTokensThatReachIt) {
  Toy toy(300);  // more tokens than are tried first
  for (const double top_p : {0.001, 0.3, 0.9, 0.999}) {
    for (const int64_t top_k : {0, 20}) {
      SampleOptions options = one_token(30000);
      options.top_p = top_p;
      options.top_k = top_k;
      options.temperature = 2;
      const auto p = probabilities(toy, 3, 2);
      std::vector<int32_t> order(p.size());
      std::iota(order.begin(), order.end(), 0);
      std::sort(order.begin(), order.end(),
                [&](int32_t a, int32_t b) { return p[static_cast<size_t>(a)] > p[static_cast<size_t>(b)]; });
      if (top_k > 0) order.resize(20);
      double all = 0, sum = 0;
      for (const int32_t v : order) all += p[static_cast<size_t>(v)];
      std::set<int32_t> nucleus;
      for (size_t i = 0; i < order.size() && sum < top_p * all; ++i) {
        nucleus.insert(order[i]);
        sum += p[static_cast<size_t>(order[i])];
      }
      const auto counts = first_tokens(toy, 300, 3, options);
      for (int32_t v = 0; v < 300; ++v) {
        const double wanted = 30000 * p[static_cast<size_t>(v)] / sum;
        if (!nucleus.contains(v)) {
          EXPECT_EQ(counts[static_cast<size_t>(v)], 0) << v;
        } else if (wanted > 20) {
          EXPECT_NEAR(static_cast<double>(counts[static_cast<size_t>(v)]), wanted, 5 * std::sqrt(wanted)) << v;
        }
      }
    }
  }
}

TEST(Sample, NoTemperatureOrHardlyAnyIsGreedySearch) {
  Toy toy(30);
  const Ids many = sources({1, 2, 3, 4, 5});
  const auto greedy =
      search(toy, many, ones_like(many),
             {.max_length = 12, .begin = kBegin, .end = kEnd, .never = {kBegin}, .keep_attention = true});
  for (const double temperature : {0.0, 1e-300, 1e-6}) {
    const auto found = samples_of(toy, many,
                                  {.samples = 2,
                                   .temperature = temperature,
                                   .max_length = 12,
                                   .begin = kBegin,
                                   .end = kEnd,
                                   .never = {kBegin},
                                   .keep_attention = true});
    for (size_t s = 0; s < 5; ++s)
      for (const Hypothesis& h : found[s]) {
        EXPECT_EQ(h.tokens, greedy[s][0].tokens);
        EXPECT_EQ(h.ended, greedy[s][0].ended);
        EXPECT_EQ(h.log_probability, greedy[s][0].log_probability);
        EXPECT_EQ(h.score, greedy[s][0].score);
        ASSERT_EQ(h.attention.shape(), greedy[s][0].attention.shape());
        EXPECT_TRUE(
            std::equal(h.attention.data().begin(), h.attention.data().end(), greedy[s][0].attention.data().begin()));
      }
  }
}

TEST(Sample, DependsOnSeedNumberAndSampleButNotOnMatesOrThreads) {
  Toy toy(12);
  const SampleOptions options{.samples = 4,
                              .top_k = 9,
                              .top_p = 0.95,
                              .seed = 8,
                              .max_length = 12,
                              .begin = kBegin,
                              .end = kEnd,
                              .never = {kBegin}};
  const Ids many = sources({1, 2, 3, 4, 5, 6, 7});
  const qkv_test::ThreadsScope threads_scope;
  std::vector<std::vector<Hypothesis>> before;
  std::set<std::vector<int32_t>> different;
  for (const int count : {1, 2, 8}) {
    set_threads(count);
    const auto together = samples_of(toy, many, options);
    for (int32_t s = 1; s <= 7; ++s) {
      const auto alone = samples_of(toy, sources({s}), options)[0];
      const auto& mate = together[static_cast<size_t>(s - 1)];
      SampleOptions fewer = options;
      fewer.samples = 2;
      const auto two = samples_of(toy, sources({s}), fewer)[0];
      for (size_t n = 0; n < 4; ++n) {
        EXPECT_EQ(alone[n].tokens, mate[n].tokens);
        EXPECT_EQ(alone[n].log_probability, mate[n].log_probability);
        if (n < 2) {
          EXPECT_EQ(two[n].tokens, mate[n].tokens);
        }
        different.insert(mate[n].tokens);
      }
    }
    for (size_t s = 0; s < before.size(); ++s)
      for (size_t n = 0; n < 4; ++n) EXPECT_EQ(before[s][n].log_probability, together[s][n].log_probability);
    before = together;
  }
  EXPECT_GT(different.size(), 20u);
  SampleOptions other = options;
  other.seed = 9;
  int same = 0;
  const auto reseeded = samples_of(toy, many, other);
  for (size_t s = 0; s < 7; ++s)
    for (size_t n = 0; n < 4; ++n) same += reseeded[s][n].tokens == before[s][n].tokens;
  EXPECT_LT(same, 8);
}

TEST(Sample, LogProbabilitiesAndAttentionAreTheModelsOwn) {
  Toy toy(10);
  const Ids one = sources({2});
  const auto found = samples_of(toy, one,
                                {.samples = 6,
                                 .temperature = 3,
                                 .top_k = 6,
                                 .seed = 1,
                                 .max_length = 9,
                                 .begin = kBegin,
                                 .end = kEnd,
                                 .never = {kBegin},
                                 .keep_attention = true})[0];
  for (const Hypothesis& h : found) {
    std::vector<std::vector<int32_t>> target = {h.tokens};
    if (h.ended) target[0].push_back(kEnd);
    const Forced forced = force(toy, one, ones_like(one), target, kBegin)[0];
    EXPECT_DOUBLE_EQ(h.log_probability, forced.log_probability());
    EXPECT_DOUBLE_EQ(h.score, h.log_probability / std::pow(static_cast<double>(target[0].size()), 0.75));
    ASSERT_EQ(h.attention.shape(), forced.attention.shape());
    EXPECT_TRUE(std::equal(h.attention.data().begin(), h.attention.data().end(), forced.attention.data().begin()));
  }
}

TEST(Sample, FinishedSamplesLeaveTheBatch) {
  Toy toy(5);
  const Ids many = sources({1, 2, 3});
  const auto found =
      samples_of(toy, many, {.samples = 4, .max_length = 8, .begin = kBegin, .end = kEnd, .never = {kBegin}});
  std::vector<size_t> wanted = {3};
  for (size_t step = 1; step < 8; ++step) {
    size_t rows = 0;
    for (const auto& f : found)
      for (const Hypothesis& h : f) rows += h.tokens.size() >= step ? 1 : 0;
    if (rows > 0) wanted.push_back(rows);
  }
  EXPECT_EQ(toy.rows_of_steps, wanted);
}

class Broken : public Toy {
 public:
  explicit Broken(float value) : Toy(4), value_(value) {}
  Tensor scores_of(const std::vector<int32_t>&) const override { return Tensor({4}, {value_, value_, value_, 0}); }

 private:
  float value_;
};

TEST(Sample, RefusesWhatMakesNoSense) {
  using qkv_test::error_of;
  Toy toy(4);
  const Ids one = sources({2});
  const auto message = [&](const SampleOptions& options) { return error_of([&] { samples_of(toy, one, options); }); };
  EXPECT_EQ(message({.samples = 0}), "[sample] samples must be 1 or more, got 0");
  EXPECT_EQ(message({.temperature = -0.5}), "[sample] the temperature must be 0 or more, got -0.5");
  EXPECT_EQ(message({.temperature = NAN}), "[sample] the temperature must be 0 or more, got nan");
  EXPECT_EQ(message({.top_k = -1}), "[sample] top k must be 0 (all tokens) or more, got -1");
  EXPECT_EQ(message({.top_p = 0}), "[sample] top p must be above 0 and at most 1, got 0");
  EXPECT_EQ(message({.top_p = 1.5}), "[sample] top p must be above 0 and at most 1, got 1.5");
  EXPECT_EQ(message({.max_length = -1}), "[sample] the maximum length must be 0 or more, got -1");
  EXPECT_EQ(error_of([&] { sample(toy, one, ones_like(one), {}, {}); }),
            "[sample] source (1, 1), lengths (1,) and 0 numbers do not fit");
  EXPECT_EQ(message({.begin = 0, .end = 1, .never = {0, 1, 2, 3}}),
            "[sample] every token that may be written has probability 0");
  Broken nan(NAN), infinite(INFINITY);
  EXPECT_EQ(error_of([&] { samples_of(nan, one, {}); }),
            "[sample] the model's scores are not finite: the largest number among them is 0");
  EXPECT_EQ(error_of([&] { samples_of(infinite, one, {}); }),
            "[sample] the model's scores are not finite: the largest number among them is inf");
  EXPECT_TRUE(samples_of(toy, one, {.max_length = 0})[0][0].tokens.empty());
  EXPECT_TRUE(samples_of(toy, Ids::empty({0, 1}), {}).empty());
}

}  // namespace
}  // namespace qkv
