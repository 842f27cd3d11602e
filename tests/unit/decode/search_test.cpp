// Search over a toy model whose best outputs can be found by trying all of them.
#include "qkv/decode/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/decode/force.h"
#include "qkv/ops/softmax.h"
#include "support/threads.h"
#include "unit/decode/toy_steps.h"

namespace qkv {
namespace {

using namespace tests;

// Every output of at most `longest` tokens that ends, with its log probability.
void enumerate(const Toy& toy, std::vector<int32_t>& history, double log_p, int longest,
               std::map<std::vector<int32_t>, double>& all) {
  const Tensor p = log_softmax(toy.scores_of(history).viewed({1, toy.scores_of(history).numel()}));
  all[{history.begin() + 2, history.end()}] = log_p + p.ptr()[kEnd];
  if (static_cast<int>(history.size()) - 2 == longest) return;
  for (int32_t v = 0; v < p.numel(); ++v) {
    if (v == kEnd || v == kBegin) continue;
    history.push_back(v);
    enumerate(toy, history, log_p + p.ptr()[v], longest, all);
    history.pop_back();
  }
}

TEST(Search, AWideBeamFindsTheBestOfAllOutputs) {
  Toy toy(5);
  for (const double penalty : {0.0, 0.75, 1.5}) {
    for (int32_t source = 10; source < 16; ++source) {
      std::map<std::vector<int32_t>, double> all;
      std::vector<int32_t> history = {source, kBegin};
      enumerate(toy, history, 0, 3, all);
      std::vector<int32_t> best;
      double best_score = -1e300;
      for (const auto& [tokens, log_p] : all) {
        const double score = log_p / std::pow(static_cast<double>(tokens.size() + 1), penalty);
        if (score > best_score) {
          best_score = score;
          best = tokens;
        }
      }
      const Ids one = sources({source});
      const auto found = search(
          toy, one, ones_like(one),
          {.beam = 200, .length_penalty = penalty, .max_length = 4, .begin = kBegin, .end = kEnd, .never = {kBegin}});
      ASSERT_EQ(found[0].size(), 1u);
      // Outputs of four tokens are cut off by max_length before their end; the best one that ended must be at least as
      // good as any.
      if (!found[0][0].ended || found[0][0].tokens.size() > 3) continue;
      EXPECT_EQ(found[0][0].tokens, best);
      EXPECT_NEAR(found[0][0].score, best_score, 1e-6);
    }
  }
}

TEST(Search, GreedyTakesTheLargestEveryTime) {
  Toy toy(20);
  const Ids one = sources({3});
  const auto found = search(toy, one, ones_like(one), {.max_length = 30, .begin = kBegin, .end = kEnd});
  std::vector<int32_t> history = {3, kBegin}, wanted;
  for (int i = 0; i < 30; ++i) {
    const Tensor s = toy.scores_of(history);
    const auto next = static_cast<int32_t>(std::max_element(s.ptr(), s.ptr() + s.numel()) - s.ptr());
    if (next == kEnd) break;
    wanted.push_back(next);
    history.push_back(next);
  }
  EXPECT_EQ(found[0][0].tokens, wanted);
}

// The book's example of 9.8: greedy A B C <end> has probability 0.048, the path through C 0.054.
class BookExample : public Toy {
 public:
  BookExample() : Toy(5) {}  // begin, end, A, B, C
  Tensor scores_of(const std::vector<int32_t>& h) const override {
    const std::vector<int32_t> p(h.begin() + 2, h.end());
    const auto table = [](float end, float a, float b, float c) {
      return Tensor({5}, {-1e9f, std::log(end), std::log(a), std::log(b), std::log(c)});
    };
    if (p.empty()) return table(0.1f, 0.5f, 0.2f, 0.2f);
    if (p.size() == 1) return table(0.2f, 0.1f, 0.4f, 0.3f);
    if (p == std::vector<int32_t>{2, 4}) return table(0.1f, 0.1f, 0.6f, 0.2f);
    if (p.size() == 2) return table(0.2f, 0.2f, 0.2f, 0.4f);
    return table(0.6f, 0.1f, 0.2f, 0.1f);
  }
};

TEST(Search, TheBooksExampleGreedyAgainstBeam) {
  BookExample model;
  const Ids one = sources({9});
  const SearchOptions greedy{.length_penalty = 0, .max_length = 10, .begin = kBegin, .end = kEnd};
  const auto a = search(model, one, ones_like(one), greedy)[0][0];
  EXPECT_EQ(a.tokens, (std::vector<int32_t>{2, 3, 4}));
  EXPECT_NEAR(std::exp(a.log_probability), 0.048, 1e-6);
  SearchOptions beam = greedy;
  beam.beam = 2;
  beam.length_penalty = 0.75;
  const auto b = search(model, one, ones_like(one), beam)[0][0];
  EXPECT_EQ(b.tokens, (std::vector<int32_t>{2, 4, 3}));
  EXPECT_NEAR(std::exp(b.log_probability), 0.054, 1e-6);
  EXPECT_NEAR(b.score, b.log_probability / std::pow(4.0, 0.75), 1e-9);
}

TEST(Search, SentencesDoNotAffectEachOther) {
  Toy toy(12);
  const SearchOptions options{
      .beam = 4, .best = 4, .max_length = 12, .begin = kBegin, .end = kEnd, .never = {kBegin}, .keep_attention = true};
  const Ids many = sources({1, 2, 3, 4, 5, 6, 7});
  for (const int threads_used : {1, 2}) {
    const qkv_test::ThreadsScope threads_scope(threads_used);
    const auto together = search(toy, many, ones_like(many), options);
    for (int32_t s = 1; s <= 7; ++s) {
      const Ids one = sources({s});
      const auto alone = search(toy, one, ones_like(one), options)[0];
      const auto& mate = together[static_cast<size_t>(s - 1)];
      ASSERT_EQ(alone.size(), mate.size());
      for (size_t i = 0; i < alone.size(); ++i) {
        EXPECT_EQ(alone[i].tokens, mate[i].tokens);
        EXPECT_EQ(alone[i].score, mate[i].score);
        if (i > 0) {
          EXPECT_GE(alone[i - 1].score, alone[i].score);
        }
      }
    }
  }
}

TEST(Search, AttentionFollowsItsHypothesisThroughTheBeam) {
  Toy toy(12);
  const Ids many = sources({1, 2, 3, 4});
  const auto found = search(
      toy, many, ones_like(many),
      {.beam = 5, .best = 5, .max_length = 9, .begin = kBegin, .end = kEnd, .never = {kBegin}, .keep_attention = true});
  for (size_t s = 0; s < found.size(); ++s)
    for (const Hypothesis& h : found[s]) {
      ASSERT_EQ(h.attention.size(0), static_cast<int64_t>(h.tokens.size() + (h.ended ? 1 : 0)));
      for (int64_t t = 0; t < h.attention.size(0); ++t) {
        EXPECT_EQ(h.attention.at({t, 0, 0}), static_cast<float>(s + 1));
        EXPECT_EQ(h.attention.at({t, 0, 1}), static_cast<float>(t + 1));
        EXPECT_EQ(h.attention.at({t, 0, 2}),
                  static_cast<float>(t == 0 ? kBegin : h.tokens[static_cast<size_t>(t - 1)]));
      }
    }
}

// Sentence s ends after any s tokens.
class Countdown : public Toy {
 public:
  Countdown() : Toy(6) {}
  Tensor scores_of(const std::vector<int32_t>& h) const override {
    Tensor out = Toy::scores_of(h);
    out.mutable_ptr()[kEnd] = static_cast<int32_t>(h.size()) - 2 >= h[0] ? 100.0f : -100.0f;
    return out;
  }
};

TEST(Search, FinishedSentencesLeaveTheBatch) {
  Countdown model;
  const Ids many = sources({3, 1, 2});
  const auto found = search(model, many, ones_like(many), {.max_length = 40, .begin = kBegin, .end = kEnd});
  for (size_t s = 0; s < 3; ++s) {
    EXPECT_TRUE(found[s][0].ended);
    EXPECT_EQ(found[s][0].tokens.size(), static_cast<size_t>(many.ptr()[s]));
  }
  EXPECT_EQ(model.rows_of_steps, (std::vector<size_t>{3, 3, 2, 1}));
  Countdown wide;
  search(wide, many, ones_like(many), {.beam = 3, .max_length = 40, .begin = kBegin, .end = kEnd, .never = {kBegin}});
  // All three hypotheses of a sentence end at once here.
  EXPECT_EQ(wide.rows_of_steps, (std::vector<size_t>{3, 9, 6, 3}));
}

TEST(Search, RowsThatStayWhereTheyAreAreNotMoved) {
  Countdown model;
  const Ids many = sources({5, 5});
  search(model, many, ones_like(many), {.max_length = 40, .begin = kBegin, .end = kEnd});
  EXPECT_EQ(model.moves, 0);
  const Ids uneven = sources({5, 2});
  search(model, uneven, ones_like(uneven), {.max_length = 40, .begin = kBegin, .end = kEnd});
  EXPECT_EQ(model.moves, 1);
}

// Here the ids that are never written are the likeliest ones.
class Tempting : public Toy {
 public:
  Tempting() : Toy(8) {}
  Tensor scores_of(const std::vector<int32_t>& h) const override {
    Tensor out = Toy::scores_of(h);
    out.mutable_ptr()[kBegin] = out.mutable_ptr()[5] = out.mutable_ptr()[7] = 50;
    return out;
  }
};

TEST(Search, DoesNotWriteIdsInNever) {
  Tempting model;
  const Ids many = sources({1, 2, 3, 4});
  const auto plain = search(model, many, ones_like(many), {.max_length = 6, .begin = kBegin, .end = kEnd});
  EXPECT_EQ(plain[0][0].tokens, std::vector<int32_t>(6, kBegin));
  for (const int64_t beam : {1, 3, 20}) {
    const auto found =
        search(model, many, ones_like(many),
               {.beam = beam, .best = beam, .max_length = 6, .begin = kBegin, .end = kEnd, .never = {kBegin, 5, 7}});
    for (const auto& f : found) {
      EXPECT_FALSE(f.empty());
      for (const Hypothesis& h : f)
        for (const int32_t token : h.tokens) EXPECT_TRUE(token != kBegin && token != 5 && token != 7) << token;
    }
  }
}

TEST(Search, CutsOffAtTheLongest) {
  Toy toy(30);
  const Ids one = sources({2});
  const auto h = search(toy, one, ones_like(one), {.max_length = 1, .begin = kBegin, .end = kEnd})[0][0];
  EXPECT_LE(h.tokens.size(), 1u);
  EXPECT_TRUE(search(toy, one, ones_like(one), {.max_length = 0})[0][0].tokens.empty());
  const Ids none = Ids::empty({0, 1});
  EXPECT_TRUE(search(toy, none, Ids::empty({0}), {}).empty());
}

// Tokens of score -inf cannot follow. Only token 2 can, and after four of them also the end; or nothing at all.
class Narrow : public Toy {
 public:
  explicit Narrow(bool ends) : Toy(5), ends_(ends) {}
  Tensor scores_of(const std::vector<int32_t>& h) const override {
    constexpr float no = -std::numeric_limits<float>::infinity();
    const bool last = h.size() >= 6;
    return Tensor({5}, {no, last && ends_ ? 0 : no, last && !ends_ ? no : 0, no, no});
  }

 private:
  bool ends_;
};

TEST(Search, WhatIsImpossibleIsNeverWritten) {
  const Ids one = sources({3});
  for (const int64_t beam : {1, 3, 10}) {
    Narrow ends(true), sticks(false);
    const SearchOptions options{.beam = beam, .max_length = 20, .begin = kBegin, .end = kEnd};
    const Hypothesis out = search(ends, one, ones_like(one), options)[0][0];
    EXPECT_EQ(out.tokens, std::vector<int32_t>(4, 2)) << beam;
    EXPECT_TRUE(out.ended);
    EXPECT_NEAR(out.log_probability, std::log(0.5), 1e-6);
    const Hypothesis cut = search(sticks, one, ones_like(one), options)[0][0];
    EXPECT_EQ(cut.tokens, std::vector<int32_t>(4, 2)) << beam;
    EXPECT_FALSE(cut.ended);
    EXPECT_EQ(cut.log_probability, 0);
  }
}

class NotNumbers : public Toy {
 public:
  explicit NotNumbers(int all) : Toy(5), all_(all) {}
  Tensor scores_of(const std::vector<int32_t>& h) const override {
    const float bad = h.size() >= 4 ? std::numeric_limits<float>::quiet_NaN() : 0;
    return Tensor({5}, {bad, all_ ? bad : 0, bad, all_ ? bad : 1, bad});
  }

 private:
  int all_;
};

TEST(Search, ScoresThatAreNotNumbersAreAnError) {
  const Ids one = sources({3});
  for (const int all : {0, 1})
    for (const int64_t beam : {1, 3}) {
      NotNumbers toy(all);
      try {
        search(toy, one, ones_like(one), {.beam = beam, .max_length = 20, .begin = kBegin, .end = kEnd});
        FAIL();
      } catch (const Error& e) {
        EXPECT_STREQ(e.what(), "[search] the model's scores are not numbers");
      }
    }
}

TEST(Search, RefusesWhatMakesNoSense) {
  Toy toy(4);
  const Ids one = sources({2});
  const auto message = [&](const SearchOptions& options) {
    try {
      search(toy, one, ones_like(one), options);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(message({.beam = 0}), "[search] the beam must hold 1 hypothesis or more, got 0");
  EXPECT_EQ(message({.beam = 2, .best = 3}), "[search] cannot return the best 3 of a beam of 2");
  EXPECT_EQ(message({.max_length = -1}), "[search] the maximum length must be 0 or more, got -1");
}

TEST(Force, AgreesWithSearchOnItsOwnOutput) {
  Toy toy(10);
  const Ids many = sources({1, 2, 3});
  const auto found =
      search(toy, many, ones_like(many),
             {.beam = 3, .max_length = 30, .begin = kBegin, .end = kEnd, .never = {kBegin}, .keep_attention = true});
  std::vector<std::vector<int32_t>> targets;
  for (const auto& f : found) {
    targets.push_back(f[0].tokens);
    if (f[0].ended) targets.back().push_back(kEnd);
  }
  const auto forced = force(toy, many, ones_like(many), targets, kBegin);
  for (size_t s = 0; s < forced.size(); ++s) {
    EXPECT_NEAR(forced[s].log_probability(), found[s][0].log_probability, 1e-9);
    ASSERT_EQ(forced[s].attention.shape(), found[s][0].attention.shape());
    EXPECT_TRUE(std::equal(forced[s].attention.data().begin(), forced[s].attention.data().end(),
                           found[s][0].attention.data().begin()));
  }
  const auto unseen = force(toy, many, ones_like(many), targets, kBegin, /*keep_attention=*/false);
  for (size_t s = 0; s < unseen.size(); ++s) {
    EXPECT_EQ(unseen[s].log_probabilities, forced[s].log_probabilities);
    EXPECT_FALSE(unseen[s].attention.defined());
  }
}

TEST(Force, RefusesIdsPastTheVocabulary) {
  Toy toy(10);
  const Ids one = sources({1});
  const std::vector<std::vector<int32_t>> targets = {{3, 10}};
  try {
    force(toy, one, ones_like(one), targets, kBegin);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[force] the target has id 10, but there are scores for 10 tokens");
  }
}

}  // namespace
}  // namespace qkv
