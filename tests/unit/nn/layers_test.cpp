// Layers and modules: names, sharing and cloning, initial values, and rows that do not depend on the rest of the batch.
#include "qkv/nn/layers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "programs/toy_task.h"
#include "qkv/core/parallel.h"
#include "qkv/nn/init.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/norm.h"
#include "qkv/ops/softmax.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

const Run kInference{};

struct Tied {
  Embedding words;
  std::vector<FeedForward> blocks;
  Linear out;

  explicit Tied(const Rng& rng) : words(7, 4, rng.at("words")), out(4, 7, rng.at("out"), Linear::Bias::no) {
    for (uint64_t i = 0; i < 2; ++i) blocks.emplace_back(4, 8, 4, rng.at("blocks").at(i));
    out.weight = words.weight;
  }
  void visit(auto&& f) {
    f("words", words);
    f("blocks", blocks);
    f("out", out);
  }
};

std::vector<std::string> names_of(const std::vector<NamedTensor>& list) {
  std::vector<std::string> names;
  for (const auto& p : list) names.push_back(p.name);
  return names;
}

float largest(const Tensor& t) {
  float most = 0;
  for (float x : t.data()) most = std::max(most, std::abs(x));
  return most;
}

TEST(Module, NamesAreDottedAndATiedParameterStandsOnce) {
  const Tied model(Rng(1));
  EXPECT_EQ(names_of(parameters(model)),
            (std::vector<std::string>{"words.weight", "blocks.0.first.weight", "blocks.0.first.bias",
                                      "blocks.0.second.weight", "blocks.0.second.bias", "blocks.1.first.weight",
                                      "blocks.1.first.bias", "blocks.1.second.weight", "blocks.1.second.bias"}));
  EXPECT_EQ(count_parameters(model), 7 * 4 + 2 * (8 * 4 + 8 + 4 * 8 + 4));
}

TEST(Module, ACopySharesItsWeightsACloneDoesNotAndBothKeepTies) {
  Tied model(Rng(1)), copy = model, other = clone(model);
  model.out.weight.mutable_ptr()[0] = 42;
  EXPECT_EQ(copy.words.weight.data()[0], 42);
  EXPECT_NE(other.words.weight.data()[0], 42);
  other.words.weight.mutable_ptr()[1] = 43;
  EXPECT_EQ(other.out.weight.data()[1], 43);
  EXPECT_EQ(count_parameters(other), count_parameters(model));
}

TEST(Module, FlatParametersAreTheModelsOwnAndTiesStay) {
  Tied model(Rng(1));
  const std::vector<float> before(model.blocks[1].second.weight.data().begin(),
                                  model.blocks[1].second.weight.data().end());
  const Parameters all = flatten(model);
  EXPECT_EQ(all.count(), count_parameters(model));
  EXPECT_EQ(
      std::vector<float>(model.blocks[1].second.weight.data().begin(), model.blocks[1].second.weight.data().end()),
      before);
  detail::writable(all.flat())[all.entries()[0].offset] = 5;
  EXPECT_EQ(model.words.weight.data()[0], 5);
  EXPECT_EQ(model.out.weight.data()[0], 5);
  for (const auto& entry : all.entries()) EXPECT_EQ(entry.offset % 16, 0) << entry.name;
}

TEST(Module, GradientsOfATiedParameterAddUpInItsArena) {
  Tied model(Rng(1));
  const Parameters all = flatten(model);
  const Ids ids({3}, {1, 2, 1});
  GradArena arena = all.grad_arena();
  {
    Tape tape(arena);
    tape.backward(model.out(model.words(ids)), ones({3, 7}));
  }
  // The same without the tie.
  const Tensor table = parameter(model.words.weight.copied()), weight = parameter(model.out.weight.copied());
  Tape tape;
  tape.backward(linear(embedding(table, ids), weight), ones({3, 7}));
  const Tensor sum = add(tape.grad(table), tape.grad(weight)), tied = all.in(arena.flat(), 0);
  for (int64_t i = 0; i < 28; ++i)
    EXPECT_NEAR(tied.data()[static_cast<size_t>(i)], sum.data()[static_cast<size_t>(i)], 1e-5) << i;
}

TEST(Layers, StartAsSpecified) {
  const Linear layer(100, 300, Rng(1));
  EXPECT_EQ(layer.weight.shape(), Shape({300, 100}));
  EXPECT_LE(largest(layer.weight), 0.1f);
  EXPECT_GT(largest(layer.weight), 0.0999f);
  EXPECT_LE(largest(layer.bias), 0.1f);
  EXPECT_GT(largest(layer.bias), 0.09f);
  const Embedding words(200, 100, Rng(1));
  double square = 0;
  for (float x : words.weight.data()) square += double{x} * x / 20000;
  EXPECT_NEAR(square, 1, 0.05);
  const LayerNorm norm(3);
  EXPECT_EQ(norm.gamma.data()[2], 1);
  EXPECT_EQ(norm.beta.data()[2], 0);
  const RmsNorm rms(2);
  EXPECT_EQ(names_of(parameters(rms)), std::vector<std::string>{"gamma"});
  EXPECT_NEAR(rms(Tensor({2}, {3, 4})).data()[1], 4 / std::sqrt(12.5f), 1e-6);
  const float a = std::sqrt(6.f / (100 + 300));
  const Tensor xavier = xavier_uniform({300, 100}, Rng(2));
  EXPECT_LE(largest(xavier), a);
  EXPECT_GT(largest(xavier), 0.999f * a);
  expect_error([] { xavier_uniform({3}, Rng(1)); }, "[xavier_uniform] expected at least two axes, got (3,)");
}

TEST(Layers, OrthogonalMatricesAreOrthogonal) {
  for (auto [rows, columns] : {std::pair<int64_t, int64_t>{20, 20}, {7, 30}, {30, 7}}) {
    const Tensor w = orthogonal(rows, columns, Rng(3));
    const bool wide = rows <= columns;
    const Tensor product = matmul(w, w, wide ? Transpose::no : Transpose::yes, wide ? Transpose::yes : Transpose::no);
    const int64_t n = std::min(rows, columns);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) EXPECT_NEAR(product.at({i, j}), i == j ? 1 : 0, 1e-5);
  }
}

// Each row alone, and groups of rows from several places, give the same bits as in the whole batch.
void expect_no_mates(const std::string& name, int64_t width, const std::function<Tensor(const Tensor&)>& f) {
  const int64_t rows = 203;
  const Tensor x = uniform({rows, width}, Rng(9).at(name), -2, 2);
  const Tensor all = f(x);
  const int64_t out = all.numel() / rows;
  for (int64_t count : {1, 2, 7, 32, 100})
    for (int64_t first = 0; first + count <= rows; first += count == 1 ? 1 : 37) {
      const Tensor part = f(x.part(first * width, {count, width}).copied());
      ASSERT_TRUE(std::equal(part.data().begin(), part.data().end(), all.ptr() + first * out))
          << name << ": " << count << " rows from " << first;
    }
}

TEST(BatchMates, ChangeNoBitsOfARowInAnyLayerOrModel) {
  for (auto [in, out] :
       {std::pair<int64_t, int64_t>{12, 24}, {32, 64}, {64, 32}, {32, 201}, {256, 1024}, {1, 1}, {33, 7}})
    for (Activation f : {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::tanh,
                         Activation::sigmoid, Activation::silu}) {
      const Linear layer(in, out, Rng(1));
      expect_no_mates("linear " + std::to_string(in) + " to " + std::to_string(out), in,
                      [&](const Tensor& x) { return layer(x, f); });
    }
  for (int64_t width : {1, 24, 33, 256}) {
    const LayerNorm norm(width);
    expect_no_mates("layer norm", width, norm);
    expect_no_mates("RMS norm", width, RmsNorm(width));
    expect_no_mates("residual", width, [&](const Tensor& x) { return norm(x, x, 0.5f, kInference); });
    expect_no_mates("softmax", width, softmax);
    expect_no_mates("log softmax", width, log_softmax);
    for (auto op : {gelu, gelu_tanh, silu, exp, tanh, sigmoid, sin}) expect_no_mates("element-wise", width, op);
    const Tensor row = uniform({width}, Rng(4));
    expect_no_mates("mul", width, [&](const Tensor& x) { return mul(x, row); });
  }
  const FeedForward block(32, 128, 32, Rng(2), Activation::gelu);
  expect_no_mates("feed forward", 32, block);
  const ToyModel model(Rng(1));
  expect_no_mates("toy model", 12, [&](const Tensor& x) { return model(x, kInference); });
  const Embedding words(50, 24, Rng(3));
  expect_no_mates("embedding", 1, [&](const Tensor& x) {
    Ids ids = Ids::empty({x.size(0)});
    for (int64_t i = 0; i < x.size(0); ++i) ids.mutable_ptr()[i] = static_cast<int32_t>(std::abs(x.ptr()[i]) * 24);
    return words(ids);
  });
}

TEST(BatchMates, NaNInARowStaysInItsRow) {
  const ToyModel model(Rng(1));
  const Tensor x = uniform({40, 12}, Rng(5), -1, 1), clean = model(x, kInference);
  Tensor hurt = x.copied();
  hurt.mutable_ptr()[17 * 12 + 3] = std::nanf("");
  const Tensor y = model(hurt, kInference);
  for (int64_t i = 0; i < y.numel(); ++i) {
    if (i / 7 == 17)
      EXPECT_TRUE(std::isnan(y.ptr()[i])) << i;
    else
      EXPECT_EQ(y.ptr()[i], clean.ptr()[i]) << i;
  }
}

}  // namespace
}  // namespace qkv::tests
