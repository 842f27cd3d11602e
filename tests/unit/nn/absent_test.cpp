// Absent tensors and layers without sizes are refused by name, not read.
#include <gtest/gtest.h>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/models/transformer_decoder.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
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
