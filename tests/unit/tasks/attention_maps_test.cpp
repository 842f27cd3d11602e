// The maps of a Transformer against its attention layers, and rollout against numbers computed by hand.
#include "qkv/tasks/attention_maps.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/core/check.h"
#include "qkv/tensor/probe.h"

namespace qkv {
namespace {

constexpr VocabularySizes kWords{11, 9};
TransformerConfig small(std::optional<int64_t> key_heads = {}, NormPlace norm = NormPlace::post) {
  return {.hidden = 12, .ffn = 16, .heads = 4, .key_heads = key_heads, .layers = 3, .decoder_layers = 2, .norm = norm};
}

const Ids kSource({1, 6}, {4, 7, 5, 3, 1, 1}), kLength({1}, {4}), kTarget({1, 5}, {2, 4, 8, 5, 6});

TEST(AttentionMaps, HaveTheShapesOfTheBookAndNeverLookAtPaddingOrAhead) {
  const Transformer model(small(), kWords, Rng(3));
  const auto [weights, valued] = transformer_attention(model, kSource, kLength, kTarget);
  for (const AttentionMaps* maps : {&weights, &valued}) {
    EXPECT_EQ(maps->encoder.shape(), (Shape{3, 4, 6, 6}));
    EXPECT_EQ(maps->decoder.shape(), (Shape{2, 4, 5, 5}));
    EXPECT_EQ(maps->cross.shape(), (Shape{2, 4, 5, 6}));
    for (const Tensor* x : {&maps->encoder, &maps->decoder, &maps->cross})
      for (int64_t row = 0; row < x->numel() / x->size(3); ++row) {
        double sum = 0;
        for (int64_t j = 0; j < x->size(3); ++j) sum += x->ptr()[row * x->size(3) + j];
        EXPECT_NEAR(sum, 1, 1e-5);
      }
    for (int64_t l = 0; l < 3; ++l)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t i = 0; i < 6; ++i)
          for (int64_t j = 4; j < 6; ++j) EXPECT_EQ(maps->encoder.at({l, h, i, j}), 0);
    for (int64_t l = 0; l < 2; ++l)
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t i = 0; i < 5; ++i) {
          for (int64_t j = i + 1; j < 5; ++j) EXPECT_EQ(maps->decoder.at({l, h, i, j}), 0);
          for (int64_t j = 4; j < 6; ++j) EXPECT_EQ(maps->cross.at({l, h, i, j}), 0);
        }
  }
}

TEST(AttentionMaps, TakeOnePairOnly) {
  const Transformer model(small(), kWords, Rng(3));
  try {
    transformer_attention(model, Ids({2, 1}, {4, 5}), {}, Ids({2, 1}, {2, 2}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "[attention_maps] expected one sentence pair, got source (2, 1) and target (2, 1)");
  }
}

// The inputs of the cross-attention of the first decoder layer, to run it again.
struct FirstCross : Probe {
  Tensor v;
  void attention(std::string_view, const Weights&) override {}
  void values(std::string_view path, const Tensor& seen) override {
    if (path == "decoder.0.cross") v = seen;
  }
};

TEST(AttentionMaps, ValueWeightsAreTheLengthsOfWhatEachKeyAddsToTheOutput) {
  for (const int64_t key_heads : {4, 2, 1})
    for (const NormPlace place : {NormPlace::post, NormPlace::pre}) {
      const Transformer model(small(key_heads, place), kWords, Rng(5));
      const auto maps = transformer_attention(model, kSource, kLength, kTarget);
      FirstCross seen;
      qkv::Run run;
      run.probe = &seen;
      model.features(kSource, kLength, kTarget, run);
      // Attention is linear in its values: with all but key j zeroed, and all but head h cut off from the output, the
      // output is the contribution of that key. The keys are made equal, so that every key of the 4 has the weight
      // 1/4.
      const MultiHead& cross = *model.decoder.stack.blocks[0].cross;
      const int64_t head = 3, group = 4 / key_heads, width = 12, kept = seen.v.size(2);
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t i = 0; i < 5; ++i) {
          std::vector<double> added;
          for (int64_t j = 0; j < 6; ++j) {
            MultiHead one = cross;
            one.to_out.weight = cross.to_out.weight.copied();
            for (int64_t o = 0; o < width; ++o)
              for (int64_t c = 0; c < width; ++c)
                if (c / head != h) one.to_out.weight.mutable_ptr()[o * width + c] = 0;
            Tensor v = zeros({1, 6, kept});
            std::copy_n(seen.v.ptr() + j * kept + h / group * head, head,
                        v.mutable_ptr() + j * kept + h / group * head);
            const Tensor y = one(zeros({1, 1, width}), {zeros({1, 6, kept}), v}, Mask::valid_lens(kLength), qkv::Run{});
            double squares = 0;
            for (const float x : y.data()) squares += static_cast<double>(x) * x;
            added.push_back(4 * std::sqrt(squares) * maps.weights.cross.at({0, h, i, j}));
          }
          double sum = 0;
          for (const double a : added) sum += a;
          for (int64_t j = 0; j < 6; ++j)
            EXPECT_NEAR(maps.value_weighted.cross.at({0, h, i, j}), added[static_cast<size_t>(j)] / sum, 1e-5);
        }
    }
}

TEST(Rollout, MultipliesHalvedMeansFromTheFirstLayerUpAndGoesThroughTheEncoder) {
  AttentionMaps a;
  // Two heads whose means are [[1, 0], [1, 0]] below and [[.5, .5], [0, 1]] above.
  a.encoder = Tensor({2, 2, 2, 2}, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0, 1});
  a.decoder = Tensor({1, 2, 2, 2}, {1, 0, 0, 1, 1, 0, 1, 0});
  a.cross = Tensor({1, 2, 2, 2}, {1, 0, 0, 1, 1, 0, 1, 0});
  const AttentionMaps r = rollout(a);
  EXPECT_EQ(r.encoder.shape(), (Shape{2, 1, 2, 2}));
  // (A + I) / 2: [[1, 0], [.5, .5]], then [[.75, .25], [0, 1]] times that.
  const float encoder[] = {1, 0, .5f, .5f, .875f, .125f, .5f, .5f};
  for (int64_t i = 0; i < 8; ++i) EXPECT_FLOAT_EQ(r.encoder.ptr()[i], encoder[i]) << i;
  const float decoder[] = {1, 0, .25f, .75f};  // the mean [[1, 0], [.5, .5]], and half of I
  for (int64_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(r.decoder.ptr()[i], decoder[i]) << i;
  const float cross[] = {.875f, .125f, .6875f, .3125f};  // [[1, 0], [.5, .5]] times the encoder's last
  for (int64_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(r.cross.ptr()[i], cross[i]) << i;
}

TEST(MeanOfHeads, IsTheMeanOfEveryLayer) {
  AttentionMaps a;
  a.encoder = a.decoder = a.cross = Tensor({2, 2, 1, 2}, {1, 0, 0, 1, .25f, .75f, .25f, .75f});
  const Tensor mean = mean_of_heads(a).cross;
  EXPECT_EQ(mean.shape(), (Shape{2, 1, 1, 2}));
  const float want[] = {.5f, .5f, .25f, .75f};
  for (int64_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(mean.ptr()[i], want[i]);
}

}  // namespace
}  // namespace qkv
