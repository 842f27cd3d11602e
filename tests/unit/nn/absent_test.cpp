// Absent tensors and layers without sizes are refused by name, not read.
#include <gtest/gtest.h>

#include <limits>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/models/transformer.h"
#include "qkv/models/transformer_decoder.h"
#include "qkv/nn/layers.h"
#include "qkv/nn/recurrent.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

TEST(Absent, LayersWithoutSizes) {
  EXPECT_EQ(error_of([] { Linear()(ones({3})); }), "[linear] the weight is absent: was the layer made without sizes?");
  EXPECT_EQ(error_of([] { LayerNorm()(ones({3})); }),
            "[layer_norm] gamma or beta is absent: was the layer made without sizes?");
  EXPECT_EQ(error_of([] { Embedding()(Ids({1}, {0})); }),
            "[embedding] the table is absent: was the layer made without sizes?");
}

TEST(Absent, ArgumentsByName) {
  const Tensor x = ones({2, 3});
  EXPECT_EQ(error_of([&] { matmul(x, Tensor()); }), "[matmul] the tensor \"b\" is absent: it has no values");
  EXPECT_EQ(error_of([&] { attend(ScaledDot(), x, Tensor(), x); }),
            "[attend] the tensor \"keys\" is absent: it has no values");
  EXPECT_EQ(error_of([&] { attend(Bilinear(), x, x, x); }), "[bilinear] the tensor \"W\" is absent: it has no values");
  EXPECT_EQ(error_of([] { Mask::valid_lens(Ids()); }), "[mask] the tensor \"valid_lens\" is absent: it has no values");
}

TEST(Absent, HasNoElements) {
  EXPECT_TRUE(Tensor().data().empty());
  EXPECT_TRUE(Ids().data().empty());
  EXPECT_EQ(scalar(2).data().size(), 1u);
}

TEST(Absent, WeightsSumsAndRecurrentLayers) {
  EXPECT_EQ(error_of([] { (void)Weights(Tensor()); }), "[weights] the tensor is absent: it has no values");
  EXPECT_EQ(error_of([] { (void)Weights(ones({2, 3})); }), "[weights] expected a matrix (B, H, Lq, Lk), got (2, 3)");
  EXPECT_EQ(error_of([] { sum_to(Tensor(), {}); }), "[sum_to] the tensor is absent: it has no values");
  EXPECT_EQ(error_of([] {
              Recurrent()(ones({1, 2, 3}), qkv::Run());
            }),
            "[recurrent] there are no layers: make it with its sizes");
  Tape tape;
  const Tensor y = parameter(scalar(2)) * 2;
  EXPECT_EQ(error_of([&] { tape.backward(y, Tensor()); }), "[backward] the tensor \"dy\" is absent: it has no values");
}

TEST(Absent, TokensOfAModel) {
  const TransformerDecoder decoder(TransformerConfig{.hidden = 8, .ffn = 8, .heads = 2}, 5, Cross::no, Rng(1));
  EXPECT_EQ(error_of([&] { decoder.logits(Ids(), {}, qkv::Run()); }),
            "[transformer] the tensor \"ids\" is absent: it has no values");
  DecoderState state = decoder.start(1);
  EXPECT_EQ(error_of([&] { decoder.step(state, Ids(), qkv::Run()); }),
            "[step] the tensor \"tokens\" is absent: it has no values");
  EXPECT_EQ(error_of([&] { decoder.prefill(state, Ids(), {}, qkv::Run()); }),
            "[prefill] the tensor \"ids\" is absent: it has no values");
  const Transformer both(TransformerConfig{.hidden = 8, .ffn = 8, .heads = 2}, {5, 5}, Rng(1));
  const Ids one({1, 1}, {0});
  EXPECT_EQ(error_of([&] { both.logits(Ids(), {}, one, qkv::Run()); }),
            "[transformer] the tensor \"source\" is absent: it has no values");
  EXPECT_EQ(error_of([&] { both.logits(one, {}, Ids(), qkv::Run()); }),
            "[transformer] the tensor \"target_in\" is absent: it has no values");
}

TEST(Stack, NamesItself) {
  EXPECT_EQ(error_of([] { stack({ones({2}), ones({2})}, 5); }), "[stack] axis 5 is outside a tensor of 2 axes");
  EXPECT_EQ(error_of([] { stack({Tensor(), Tensor()}, 0); }), "[stack] the tensor is absent: it has no values");
}

TEST(NotANumber, HasNoSign) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(text(Tensor({2}, {-nan, nan})), "(2,) [nan, nan]");
  EXPECT_EQ(text(-nan, " ", -double{nan}), "nan nan");
}

TEST(Absent, PartsAndViews) {
  EXPECT_EQ(error_of([] { Tensor().part(0, {1}); }), "[part] the tensor is absent: it has no values");
  EXPECT_EQ(error_of([] { Tensor().viewed({1}); }), "[view] the tensor is absent: it has no values");
  EXPECT_EQ(error_of([] { Ids().part(0, {1}); }), "[part] the tensor is absent: it has no values");
  EXPECT_EQ(error_of([] { Ids().viewed({1}); }), "[view] the tensor is absent: it has no values");
  EXPECT_EQ(error_of([] { sort(Tensor()); }), "[sort] the tensor is absent: it has no values");
}

TEST(Absent, ALossThatIsAbsentOrOfAnotherTape) {
  const Tensor w = parameter(ones({2}));
  EXPECT_EQ(error_of([] { Tape().backward(Tensor()); }), "[backward] the tensor is absent: it has no values");
  EXPECT_EQ(error_of([&] {
              Tape first;
              const Tensor loss = sum(w);
              Tape second;
              second.backward(loss);
            }),
            "[backward] the tensor was recorded on another tape");
}

TEST(Absent, AMemoryThatADecoderAttendsTo) {
  const TransformerDecoder decoder({.hidden = 8, .ffn = 8, .heads = 2}, 5, Cross::yes, Rng(1));
  EXPECT_EQ(error_of([&] {
              decoder.features(Ids({1, 2}, {1, 2}), {}, {});
            }),
            "[transformer] the decoder attends to an encoder: its outputs are missing, pass them as memory");
}

}  // namespace
}  // namespace qkv
