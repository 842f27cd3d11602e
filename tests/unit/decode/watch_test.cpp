// Progress reports while decoding, stopping it, and rows that begin with their own tokens.
#include <gtest/gtest.h>

#include <atomic>
#include <map>

#include "qkv/decode/sample.h"
#include "unit/decode/toy_steps.h"

namespace qkv {
namespace {

using namespace tests;

using Told = std::map<std::pair<size_t, size_t>, std::vector<WrittenToken>>;  // by sentence and sample

DecodeWatch collected(Told& told) {
  return {.on_token = [&told](const WrittenToken& t) { told[{t.sentence, t.sample}].push_back(t); }};
}

void expect_told(const std::vector<WrittenToken>& told, const Hypothesis& h) {
  std::vector<int32_t> wanted = h.tokens;
  if (h.ended) wanted.push_back(kEnd);
  ASSERT_EQ(told.size(), wanted.size());
  double log_probability = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(told[i].token, wanted[i]);
    log_probability += told[i].log_probability;
  }
  EXPECT_NEAR(log_probability, h.log_probability, 1e-5);
}

TEST(DecodeWatch, ReportsEveryTokenOfGreedySearchAndOfSamples) {
  const Ids many = sources({1, 2, 3});
  Told told;
  Toy toy(9);
  const auto greedy =
      search(toy, many, ones_like(many),
             {.max_length = 12, .begin = kBegin, .end = kEnd, .never = {kBegin}, .watch = collected(told)});
  for (size_t s = 0; s < 3; ++s) expect_told(told[{s, 0}], greedy[s][0]);
  told.clear();
  const std::vector<uint64_t> numbers{1, 2, 3};
  const auto drawn = sample(toy, many, ones_like(many), numbers,
                            {.samples = 2,
                             .seed = 5,
                             .max_length = 12,
                             .begin = kBegin,
                             .end = kEnd,
                             .never = {kBegin},
                             .watch = collected(told)});
  for (size_t s = 0; s < 3; ++s)
    for (size_t n = 0; n < 2; ++n) expect_told(told[{s, n}], drawn[s][n]);
}

TEST(DecodeWatch, AStopReturnsWhatIsWritten) {
  const Ids many = sources({1, 2, 3});
  for (const int64_t beam : {1, 3}) {
    Toy whole(9), cut(9);
    const SearchOptions options{.beam = beam, .max_length = 40, .begin = kBegin, .end = kEnd, .never = {kBegin}};
    const auto all = search(whole, many, ones_like(many), options);
    const std::atomic<bool> stop = true;
    SearchOptions stopped = options;
    stopped.watch.stop = &stop;
    const auto found = search(cut, many, ones_like(many), stopped);
    EXPECT_EQ(cut.rows_of_steps.size(), 1u);
    ASSERT_EQ(found.size(), all.size());
    for (const auto& sentence : found) EXPECT_LE(sentence[0].tokens.size(), 1u);
  }
  Toy toy(9);
  const std::atomic<bool> stop = true;
  const std::vector<uint64_t> numbers{1, 2, 3};
  const auto drawn = sample(toy, many, ones_like(many), numbers,
                            {.max_length = 40, .begin = kBegin, .end = kEnd, .watch = {.stop = &stop}});
  for (const auto& sentence : drawn) EXPECT_LE(sentence[0].tokens.size(), 1u);
}

// A started model may have read anything; each row is first fed its own token.
TEST(Search, RowsBeginWithTheirOwnTokens) {
  const Ids many = sources({1, 2});
  Toy toy(9);
  toy.start(many, ones_like(many));
  const std::vector<int32_t> first{4, 6};
  const SearchOptions options{.beam = 2, .max_length = 10, .end = kEnd, .never = {kBegin}};
  const auto found = search(toy, first, options);
  for (size_t s = 0; s < 2; ++s) {
    Toy alone(9);
    const Ids one = sources({static_cast<int32_t>(s) + 1});
    SearchOptions from = options;
    from.begin = first[s];
    EXPECT_EQ(search(alone, one, ones_like(one), from)[0][0].tokens, found[s][0].tokens);
  }
  EXPECT_NE(found[0][0].score, found[1][0].score);
}

}  // namespace
}  // namespace qkv
