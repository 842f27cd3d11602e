// attention_of: the weights that a probe sees, by path.
#include "qkv/attention/attention_of.h"

#include <gtest/gtest.h>

#include <vector>

#include "qkv/attention/multi_head.h"
#include "qkv/models/transformer.h"
#include "unit/attention/cases.h"

namespace qkv::tests {
namespace {

std::vector<std::string> paths_of(const AttentionWeights& all) {
  std::vector<std::string> paths;
  for (const auto& [path, weights] : all) paths.push_back(path);
  return paths;
}

TEST(AttentionOf, GivesTheWeightsOfEveryAttentionOfATransformer) {
  const Transformer model({.hidden = 8, .ffn = 16, .heads = 2, .layers = 2}, {9, 9}, Rng(1));
  const Ids source({1, 3}, {4, 5, 6}), target({1, 2}, {1, 7});
  const AttentionWeights seen = attention_of(model, source, Ids{}, target);
  EXPECT_EQ(paths_of(seen), (std::vector<std::string>{"decoder.0.cross", "decoder.0.self", "decoder.1.cross",
                                                      "decoder.1.self", "encoder.0.self", "encoder.1.self"}));
  EXPECT_EQ(seen.at("decoder.1.cross").shape(), Shape({1, 2, 2, 3}));
  EXPECT_EQ(seen.at("decoder.0.self").head(0, 1).at({0, 1}), 0) << "causal";
}

TEST(AttentionOf, TakesAModuleThatIsCalledAndAFunctionOfTheRun) {
  const MultiHead heads({.width = 8, .heads = 2}, Rng(1));
  const Tensor x = uniform({1, 4, 8}, Rng(2));
  const AttentionWeights one = attention_of(heads, x, x, x, Mask::causal());
  EXPECT_EQ(paths_of(one), std::vector<std::string>{""});
  const AttentionWeights two = attention_of([&](const qkv::Run& run) {
    heads(x, x, x, Mask::causal(), run.at("first"));
    heads(x, x, x, Mask::none(), run.at("second"));
  });
  EXPECT_EQ(paths_of(two), (std::vector<std::string>{"first", "second"}));
  expect_same(one.at("").matrix(), two.at("first").matrix(), "the same attention");
  EXPECT_GT(two.at("second").head(0, 0).at({0, 3}), 0);
}

}  // namespace
}  // namespace qkv::tests
