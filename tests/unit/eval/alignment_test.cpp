// Pharaoh files and the alignment error rate.
#include <gtest/gtest.h>

#include "qkv/eval/alignment.h"
#include "support/files.h"

namespace qkv {
namespace {

using Lines = std::vector<std::string>;
using qkv_test::error_of;

Alignment parsed(const std::string& line, int base = 0) {
  return parse_alignments(Lines{line}, verbatim("x.align"), base).lines[0];
}

TEST(Alignment, ReadsSureAndPossibleLinks) {
  EXPECT_EQ(parsed("10-2 0p1\t3?4 \r"), (Alignment{{0, 1, true}, {3, 4, true}, {10, 2, false}}));
  EXPECT_EQ(parsed("1-1 2-1", 1), (Alignment{{0, 0, false}, {1, 0, false}}));
  EXPECT_EQ(parsed("1p1 1-1 1-1 1?1"), (Alignment{{1, 1, false}}));  // sure wins
  EXPECT_TRUE(parsed("").empty());
}

TEST(Alignment, FindsOutWhatAFileCountsFrom) {
  const AlignmentFile zero = parse_alignments(Lines{"1-1", "3-0"}, verbatim("x"), std::nullopt),
                      one = parse_alignments(Lines{"1-1", "", "3-2"}, verbatim("x"));
  EXPECT_EQ(zero.base, 0);
  EXPECT_TRUE(zero.base_detected);
  EXPECT_EQ(one.base, 1);
  EXPECT_EQ(one.lines[2], (Alignment{{2, 1, false}}));
  EXPECT_FALSE(parse_alignments(Lines{"1-1"}, verbatim("x"), 0).base_detected);
}

TEST(Alignment, NamesFileLineAndLinkOfAMistake) {
  for (const char* bad : {"1", "1-", "-2", "1--2", "1-2-3", "1x2", "a-1", "1-+2", "99999999999-1", "1 - 2"}) {
    const std::string word = std::string(bad) == "1 - 2" ? "1" : bad;
    EXPECT_EQ(error_of([&] {
                parse_alignments(Lines{"0-0", bad}, verbatim("hyp.align"));
              }),
              "hyp.align: line 2: expected a link like 1-2, 1p2 or 1?2, got \"" + word + "\"");
  }
  EXPECT_EQ(error_of([] { parse_alignments(Lines{"1-1 2-0"}, verbatim("g"), 1); }),
            "g: line 1: the link \"2-0\" has index 0 in a file that counts from 1");
  EXPECT_EQ(error_of([] { parse_alignments(Lines{"1-1"}, verbatim("g"), 2); }),
            "[alignment] base must be 0 or 1, got 2");
  const AlignmentFile file = parse_alignments(Lines{"1-1", "3p2"}, verbatim("g"), 1);
  const std::vector<int64_t> source = {1, 3}, target = {1, 2}, short_source = {1, 2};
  check_alignment_lengths(file, verbatim("g"), source, target);
  EXPECT_EQ(error_of([&] { check_alignment_lengths(file, verbatim("g"), short_source, target); }),
            "g: line 2: the link \"3?2\" (counted from 1) is outside of 2 source and 2 target words");
  EXPECT_EQ(error_of([&] { check_alignment_lengths(file, verbatim("g"), std::vector<int64_t>{1}, target); }),
            "g has 2 lines, the source 1 and the target 2");
  EXPECT_EQ(error_of([&] { score_alignments(file.lines, {}); }), "[alignment] numbers of lines differ: 2 and gold 0");
}

TEST(Alignment, ErrorRateCountsSureAndPossible) {
  // A = 5 links, S = 4, P = 6; A and S = 3, A and P = 4.
  const AlignmentScore score = score_alignment(parsed("0-0 1-1 2-2 3-3 4-4"), parsed("0-0 1-1 2-2 5-5 3p3 6?6"));
  EXPECT_EQ(score.links, 5);
  EXPECT_EQ(score.sure, 4);
  EXPECT_EQ(score.possible, 6);
  EXPECT_DOUBLE_EQ(*score.error_rate(), 1 - 7 / 9.0);
  EXPECT_DOUBLE_EQ(*score.precision(), 4 / 5.0);
  EXPECT_DOUBLE_EQ(*score.recall(), 3 / 4.0);
  EXPECT_DOUBLE_EQ(*score.f_score(), 2 * 0.8 * 0.75 / 1.55);
}

TEST(Alignment, PerfectAndWorstAndEmpty) {
  const Alignment gold = parsed("0-0 1-1"), other = parsed("0-1 1-0"), none;
  EXPECT_EQ(score_alignment(gold, gold).error_rate(), 0.0);
  EXPECT_EQ(score_alignment(other, gold).error_rate(), 1.0);
  EXPECT_EQ(score_alignment(other, gold).f_score(), 0.0);
  EXPECT_EQ(score_alignment(none, gold).error_rate(), 1.0);
  EXPECT_EQ(score_alignment(none, gold).precision(), std::nullopt);
  EXPECT_EQ(score_alignment(gold, parsed("0p0 1p1")).recall(), std::nullopt);
  EXPECT_EQ(score_alignment(gold, parsed("0p0 1p1")).error_rate(), 0.0);
  EXPECT_EQ(score_alignment(none, none).error_rate(), std::nullopt);
}

TEST(Alignment, CorpusSumsLinksNotRates) {
  const std::vector<Alignment> hypotheses = {parsed("0-0"), parsed("0-0 1-1 2-2")},
                               gold = {parsed("0-0"), parsed("0-1 1-1")};
  const AlignmentScore score = score_alignments(hypotheses, gold);
  EXPECT_DOUBLE_EQ(*score.error_rate(), 1 - 4 / 7.0);
  EXPECT_DOUBLE_EQ(*score.precision(), 0.5);
  EXPECT_DOUBLE_EQ(*score.recall(), 2 / 3.0);
}

}  // namespace
}  // namespace qkv
