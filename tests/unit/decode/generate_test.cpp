// A decoder that continues a prompt.
#include "qkv/decode/generate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "qkv/models/transformer_decoder.h"
#include "qkv/ops/reduce.h"
#include "support/files.h"

namespace qkv {
namespace {

const TransformerDecoder& decoder() {
  static const TransformerDecoder model({.hidden = 16, .ffn = 32, .heads = 2, .layers = 2}, 11, Cross::no, Rng(4));
  return model;
}

TEST(Generate, WithoutTemperatureItWritesTheLikeliestTokenOfTheWholeText) {
  for (const std::vector<int32_t>& prompt : {std::vector<int32_t>{3}, {3, 1, 4, 1, 5}}) {
    const auto written = generate(decoder(), prompt, {.temperature = 0, .max_length = 7, .end = kNoEnd});
    ASSERT_EQ(written.size(), 1u);
    ASSERT_EQ(written[0].size(), 7u);
    std::vector<int32_t> text = prompt;
    for (const int32_t token : written[0]) {
      const Ids likeliest = argmax(decoder().logits(Ids({1, std::ssize(text)}, text), {}, {}));
      EXPECT_EQ(token, likeliest.ptr()[text.size() - 1]);
      text.push_back(token);
    }
  }
}

TEST(Generate, DrawsAsManyTextsAsAsked) {
  const std::vector<int32_t> prompt{3, 1};
  const SampleOptions options{.samples = 3, .seed = 5, .max_length = 20, .end = kNoEnd};
  const auto drawn = generate(decoder(), prompt, options);
  ASSERT_EQ(drawn.size(), 3u);
  EXPECT_NE(drawn[0], drawn[1]);
  EXPECT_EQ(generate(decoder(), prompt, options), drawn);
  EXPECT_EQ(qkv_test::error_of([&] { generate(decoder(), {}, options); }),
            "[generate] the prompt is empty: it needs at least one token");
}

// Prompts of different lengths, some longer than the window, each also alone.
TEST(Generate, APromptIsContinuedAloneAsAmongOthers) {
  const std::vector<std::vector<int32_t>> prompts{
      {3}, {3, 1, 4, 1, 5}, {2, 7}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1}, {9}};
  const auto written = [&](std::span<const std::vector<int32_t>> some, double temperature) {
    PromptedSteps steps(decoder(), some, 8);
    std::vector<int32_t> first;
    for (const auto& prompt : some) first.push_back(prompt.back());
    const SampleOptions options{.samples = 2, .temperature = temperature, .seed = 3, .max_length = 30, .end = 6};
    return sample(steps, first, std::vector<uint64_t>(some.size(), 0), options);
  };
  for (const double temperature : {0.0, 1.0}) {
    const auto together = written(prompts, temperature);
    for (size_t i = 0; i < prompts.size(); ++i) {
      const auto alone = written(std::span(prompts).subspan(i, 1), temperature);
      for (size_t s = 0; s < 2; ++s) {
        EXPECT_EQ(together[i][s].tokens, alone[0][s].tokens) << i;
        EXPECT_EQ(together[i][s].log_probability, alone[0][s].log_probability) << i;
      }
    }
  }
}

// With a window of 6, the tokens that count are the last 6, or the last 3 and those after them.
TEST(Generate, AFullWindowIsReadAgainFromItsLastHalf) {
  const std::vector<int32_t> prompt{3, 1, 4, 1, 5, 9, 2, 6};
  PromptedSteps steps(decoder(), std::span(&prompt, 1), 6);
  const std::vector<int32_t> more{6, 7, 8, 1, 2, 3};
  std::vector<int32_t> read(prompt.end() - 6, prompt.end() - 1);
  for (const int32_t token : more) {
    if (read.size() == 6) read.erase(read.begin(), read.begin() + 3);
    read.push_back(token);
    const Tensor scores = steps.step(Ids({1}, {token}));
    const Tensor whole = decoder().logits(Ids({1, std::ssize(read)}, read), {}, {});
    for (int64_t v = 0; v < 11; ++v) EXPECT_NEAR(scores.ptr()[v], whole.ptr()[(std::ssize(read) - 1) * 11 + v], 1e-5);
  }
}

TEST(Generate, APenaltyMakesRepetitionRarer) {
  const std::vector<int32_t> prompt{3, 1, 4};
  const auto distinct = [&](double penalty) {
    const SampleOptions options{
        .temperature = 0, .repetition_penalty = penalty, .read = {prompt}, .max_length = 8, .end = kNoEnd};
    std::vector<int32_t> tokens = generate(decoder(), prompt, options).front();
    tokens.insert(tokens.end(), prompt.begin(), prompt.end());
    std::ranges::sort(tokens);
    return std::ranges::unique(tokens).begin() - tokens.begin();
  };
  EXPECT_GT(distinct(2), distinct(1));
}

TEST(Generate, ATextEndsWhereTheCallerSaysSo) {
  const std::vector<int32_t> prompt{3};
  SampleOptions options{.temperature = 0, .max_length = 9, .end = kNoEnd};
  const std::vector<int32_t> whole = generate(decoder(), prompt, options).front();
  int64_t seen = 0;
  options.ends = [&](size_t, size_t, int32_t token) {
    EXPECT_EQ(token, whole[static_cast<size_t>(seen)]);
    return ++seen == 4;
  };
  EXPECT_EQ(generate(decoder(), prompt, options).front(), std::vector<int32_t>(whole.begin(), whole.begin() + 4));
}

}  // namespace
}  // namespace qkv
