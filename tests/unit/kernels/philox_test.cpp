// The vector Philox against the scalar one and against Random123, on every target.
#include <gtest/gtest.h>

#include <Random123/philox.h>

#include "qkv/kernels/dropout.h"
#include "qkv/kernels/target.h"

namespace qkv {
namespace {

uint32_t random123_word(const Rng& rng, uint64_t i) {
  const r123::Philox4x32::ctr_type counter = {
      {rng.step(), rng.shard(), static_cast<uint32_t>(i / 4), static_cast<uint32_t>(i >> 34)}};
  const r123::Philox4x32::key_type key = {{rng.key()[0], rng.key()[1]}};
  return r123::Philox4x32()(counter, key)[i % 4];
}

class Philox : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { kernels::force_target(GetParam()); }
  void TearDown() override { kernels::force_target(""); }
};

TEST_P(Philox, WordsAreThoseOfRandom123AtEveryLengthAndAcrossTheCounterWords) {
  const Rng rng = Rng(42).at("encoder").at_step(0xFFFFFFF0u).at_shard(7);
  // Near 2^34, i / 4 overflows its first counter word.
  for (uint64_t first : {uint64_t{0}, uint64_t{4}, uint64_t{1000}, (uint64_t{1} << 34) - 40, uint64_t{1} << 40})
    for (int64_t n : {0, 1, 3, 4, 7, 8, 31, 32, 33, 100}) {
      std::vector<uint32_t> words(static_cast<size_t>(n) + 1, 77);
      kernels::random_words(rng, first, words.data(), n);
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(words[static_cast<size_t>(i)], random123_word(rng, first + static_cast<uint64_t>(i)))
            << first << " + " << i;
        ASSERT_EQ(words[static_cast<size_t>(i)], rng.word(first + static_cast<uint64_t>(i)));
      }
      EXPECT_EQ(words.back(), 77u) << "wrote beyond " << n;
    }
}

TEST_P(Philox, UniformIsTheStreamsUniform) {
  const Rng rng(5);
  std::vector<float> y(1001);
  kernels::random_uniform(rng, 0, -3, 4, y.data(), 1001);
  for (uint64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], -3 + (4.f - -3.f) * rng.uniform(i));
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, Philox, testing::ValuesIn(kernels::available_targets()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace qkv
