// A decoder that continues a prompt.
#include "qkv/decode/generate.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace qkv
