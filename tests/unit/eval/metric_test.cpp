// Metrics beyond sacreBLEU's numbers: the book's BLEU, worked examples, errors, resampling.
#include <gtest/gtest.h>

#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/eval/bleu.h"
#include "qkv/eval/chrf.h"
#include "qkv/eval/d2l_bleu.h"
#include "qkv/eval/significance.h"
#include "qkv/eval/unicode.h"
#include "support/files.h"
#include "support/threads.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;
using qkv_test::error_of;

TEST(D2lBleu, GivesTheBooksNumbers) {
  struct Row {
    const char *prediction, *label;
    double printed;
  };
  for (const Row& row :
       {Row{"il est riche .", "il est calme .", 0.658}, Row{"je suis en retard ?", "je suis chez moi .", 0.447},
        Row{"je suis chez moi <unk> !", "je suis chez moi .", 0.719},
        Row{"je suis riche .", "je suis chez moi .", 0.512},
        Row{"je suis chez moi partie .", "je suis chez moi .", 0.803}, Row{"je perdu .", "j'ai perdu .", 0.687},
        Row{"il est calme calme !", "il est calme .", 0.651},
        Row{"je suis chez moi je suis chez moi je", "je suis chez moi .", 0.522}, Row{"entre .", "va !", 0.0},
        Row{"va !", "va !", 1.0}})
    EXPECT_NEAR(d2l_bleu(row.prediction, row.label), row.printed, 0.0005) << row.prediction;
}

TEST(D2lBleu, WorksTheExampleOfTheText) {
  EXPECT_NEAR(d2l_bleu("A B", "A B C D E F"), std::exp(1 - 6.0 / 2), 1e-12);
  // Lengths 5 and 6; p1 = 4/5, p2 = 3/4, p3 = 1/3, p4 = 0.
  const double penalty = std::exp(1 - 6.0 / 5);
  EXPECT_NEAR(d2l_bleu("A B B C D", "A B C D E F", 1), penalty * std::pow(0.8, 0.5), 1e-12);
  EXPECT_NEAR(d2l_bleu("A B B C D", "A B C D E F", 3),
              penalty * std::pow(0.8, 0.5) * std::pow(0.75, 0.25) * std::pow(1 / 3.0, 0.125), 1e-12);
  EXPECT_EQ(d2l_bleu("A B B C D", "A B C D E F", 4), 0);
}

TEST(D2lBleu, LimitsTheOrderToAShortPrediction) {
  EXPECT_EQ(d2l_bleu("va", "va"), 1);
  EXPECT_NEAR(d2l_bleu("va", "va !"), std::exp(-1.0), 1e-12);
  EXPECT_EQ(d2l_bleu("", "va !"), 0);  // one empty token, which does not occur in the label
  EXPECT_EQ(d2l_bleu("", ""), 1);
  EXPECT_EQ(d2l_bleu("a  b", "a b"), 0);  // the empty token between two spaces breaks the pair
  EXPECT_NEAR(d2l_bleu("a  b", "a b", 1), std::pow(2 / 3.0, 0.5), 1e-12);
}

TEST(D2lBleu, OfACorpusIsTheMeanOfItsLines) {
  const Lines hypotheses = {"va !", "il est RICHE .", "je suis riche ."};
  const std::vector<Lines> references = {{"va !", "il est calme .", "je suis chez moi ."}};
  EXPECT_NEAR(
      corpus_score(D2lBleu(), hypotheses, references),
      (1 + d2l_bleu("il est riche .", "il est calme .") + d2l_bleu("je suis riche .", "je suis chez moi .")) / 3,
      1e-12);
  EXPECT_EQ(error_of([&] {
              corpus_score(D2lBleu(), hypotheses, {references[0], references[0]});
            }),
            "[d2l-bleu] is defined for one reference, got 2");
  EXPECT_EQ(error_of([] { d2l_bleu("a", "a", 0); }), "[d2l_bleu] k must be at least 1, got 0");
}

TEST(Bleu, CountsTheWorkedExampleOfPapineni) {
  const Bleu bleu({.tokenizer = BleuTokenizer::none});
  const auto counts = count_segments(bleu, {"the the the the the the the"},
                                     {{"The cat is on the mat"}, {"There is a cat on the mat the"}});
  EXPECT_EQ(counts.rows, (std::vector<double>{7, 6, 2, 0, 0, 0, 7, 6, 5, 4}));
}

TEST(Bleu, TakesTheShorterOfTwoReferencesAsClose) {
  const auto counts = count_segments(Bleu(), {"a b c"}, {{"a b c d"}, {"a b"}});
  EXPECT_EQ(counts.rows[1], 2);
}

TEST(Metrics, RefuseWhatCannotBeScored) {
  EXPECT_EQ(error_of([] {
              corpus_score(Bleu(), {"a", "b"}, {{"a"}});
            }),
            "[BLEU] numbers of lines differ: hypothesis 2, reference 1");
  EXPECT_EQ(error_of([] { corpus_score(Bleu(), {"a"}, {}); }), "[BLEU] there is no reference");
  EXPECT_EQ(error_of([] { corpus_score(Chrf({.word_order = 2}), {}, {{}}); }),
            "[chrF2++] there is nothing to score: 0 lines");
  EXPECT_EQ(error_of([] { corpus_score(Chrf(), {"a\xC3("}, {{"a"}}); }),
            "invalid UTF-8 at byte 2 of a line of 3 bytes");
  EXPECT_EQ(error_of([] { Chrf({.char_order = 0}); }),
            "[chrF] expected char_order >= 1, word_order >= 0 and beta >= 1, got 0, 0 and 2");
}

TEST(Unicode, FindsWhatIsNotUtf8) {
  EXPECT_EQ(invalid_utf8("plain, \xC3\xA9, \xE4\xB8\xAD, \xF0\x9F\x98\x80"), std::nullopt);
  EXPECT_EQ(invalid_utf8("ab\xFF"), 2u);
  EXPECT_EQ(invalid_utf8("\xC3"), 0u);
  EXPECT_EQ(invalid_utf8("x\xED\xA0\x80"), 1u);  // a surrogate
  EXPECT_EQ(invalid_utf8("\xC0\x80"), 0u);       // an overlong form
}

// A corpus of made-up words; every `period`-th word is wrong.
Lines corpus(int period) {
  Lines lines;
  for (int l = 0; l < 60; ++l) {
    std::string line;
    for (int w = 0; w < 12; ++w)
      line += (l * 12 + w) % period == 0 ? "wrong " : "w" + std::to_string((l * 7 + w * 3) % 50) + " ";
    lines.push_back(line);
  }
  return lines;
}

TEST(Significance, IsTheSameAtAnyNumberOfThreads) {
  const Lines reference = corpus(1 << 20);
  const Bleu bleu;
  const SegmentCounts a = count_segments(bleu, corpus(5), {reference}),
                      b = count_segments(bleu, corpus(7), {reference});
  const qkv_test::ThreadsScope threads_scope;
  set_threads(1);
  const auto one = bootstrap_scores(bleu, a, 300);
  const double p_one = paired_randomization_p(bleu, a, b, 300);
  set_threads(4);
  EXPECT_EQ(bootstrap_scores(bleu, a, 300), one);
  EXPECT_EQ(paired_randomization_p(bleu, a, b, 300), p_one);
  EXPECT_NE(bootstrap_scores(bleu, a, 300, 1), one);
}

TEST(Significance, IntervalHoldsTheScoreAndShrinksWithTheCorpus) {
  const Lines reference = corpus(1 << 20), hypothesis = corpus(5);
  const Chrf chrf;
  const SegmentCounts counts = count_segments(chrf, hypothesis, {reference});
  const double score = chrf.score(counts.sums());
  const Interval interval = interval95(bootstrap_scores(chrf, counts));
  EXPECT_LT(std::abs(interval.mean - score), interval.half_width);
  EXPECT_GT(interval.half_width, 0);
  Lines four, four_reference;
  for (int i = 0; i < 4; ++i) {
    four.insert(four.end(), hypothesis.begin(), hypothesis.end());
    four_reference.insert(four_reference.end(), reference.begin(), reference.end());
  }
  const Interval smaller = interval95(bootstrap_scores(chrf, count_segments(chrf, four, {four_reference})));
  EXPECT_NEAR(smaller.half_width / interval.half_width, 0.5, 0.1);  // 1 / sqrt(4)
}

TEST(Significance, IntervalIsTheMiddleNinetyFivePercent) {
  std::vector<double> scores;
  for (int i = 99; i >= 0; --i) scores.push_back(i);
  const Interval interval = interval95(scores);  // 2 of 100 cut off at each end
  EXPECT_EQ(interval.mean, 49.5);
  EXPECT_EQ(interval.half_width, 0.5 * (97 - 2));
}

TEST(Significance, TellsASystemThatDiffersFromOneThatDoesNot) {
  const Lines reference = corpus(1 << 20);
  const Bleu bleu;
  const SegmentCounts base = count_segments(bleu, corpus(5), {reference}),
                      better = count_segments(bleu, corpus(19), {reference});
  const auto samples = bootstrap_scores(bleu, base), better_samples = bootstrap_scores(bleu, better);
  const double difference = bleu.score(better.sums()) - bleu.score(base.sums());
  ASSERT_GT(difference, 20);
  EXPECT_EQ(paired_bootstrap_p(samples, better_samples, difference), 1 / 1001.0);
  EXPECT_EQ(paired_randomization_p(bleu, base, better, 1000), 1 / 1001.0);
  // A system does not differ from itself; sacreBLEU counts the samples beyond 0 and gives 1 / 1001.
  EXPECT_EQ(paired_bootstrap_p(samples, samples, 0), 1);
  EXPECT_EQ(paired_randomization_p(bleu, base, base, 1000), 1);
  EXPECT_EQ(paired_bootstrap_p(std::vector<double>{1, 1, 1, 1}, std::vector<double>{2, 2, 2, 6}, 1),
            2 / 5.0);  // 5 - 2 > 1, once
  // Two equally good systems: swapping changes as much as the difference about half the time.
  Lines left = corpus(5), right = corpus(5);
  for (size_t i = 0; i < left.size(); ++i) (i % 2 ? left : right)[i] = reference[i];
  const double p = paired_randomization_p(bleu, count_segments(bleu, left, {reference}),
                                          count_segments(bleu, right, {reference}), 1000);
  EXPECT_GT(p, 0.05);
}

}  // namespace
}  // namespace qkv
