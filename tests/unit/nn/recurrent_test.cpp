// GRU and LSTM: PyTorch's values and gradients, lengths, directions, dropout, and rows that do not depend on the rest
// of the batch.
#include "qkv/nn/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "qkv/core/parallel.h"
#include "qkv/io/safetensors.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "support/near.h"
#include "support/threads.h"
#include "unit/attention/cases.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

// Within 1e-5 of the largest element.
void expect_near_largest(const Tensor& a, const Tensor& b, const std::string& what) {
  qkv_test::expect_near_largest(a, b, 1e-5, what);
}

// A case of tests/golden/recurrent.safetensors run by our layers.
void follow_pytorch(const std::string& name, const RecurrentOptions& options) {
  const SafetensorsFile file(QKV_SOURCE_DIR "/tests/golden/recurrent.safetensors");
  const auto golden = [&](const std::string& part) { return file.tensor(name + "." + part); };
  Recurrent model(5, 6, options, Rng(1));
  std::vector<std::pair<std::string, Tensor>> leaves;
  const auto leaf = [&](const std::string& part) {
    leaves.emplace_back(part, parameter(golden(part)));
    return leaves.back().second;
  };
  for (auto* direction : {&model.layers, &model.reverse})
    for (size_t l = 0; l < direction->size(); ++l) {
      const std::string end = "_l" + std::to_string(l) + (direction == &model.reverse ? "_reverse" : "");
      (*direction)[l] = {leaf("weight_ih" + end), leaf("weight_hh" + end), leaf("bias_ih" + end),
                         leaf("bias_hh" + end)};
    }
  const Tensor x = leaf("x"), h0 = leaf("h0"), c0 = options.cell == CellKind::lstm ? leaf("c0") : Tensor();
  const int64_t B = x.size(0), directions = options.bidirectional ? 2 : 1;

  Tape tape;
  const auto first = [&](int64_t direction) {
    Few<CellState> states;
    for (int64_t l = 0; l < options.layers && direction < directions; ++l) {
      const auto part = [&](const Tensor& t) {
        return t.defined() ? reshape(slice(t, 0, l * directions + direction, l * directions + direction + 1), {B, 6})
                           : Tensor();
      };
      states.push_back({part(h0), part(c0)});
    }
    return states;
  };
  const Recurrent::Output out = model(x, {}, file.array(name + ".lens").to_ids("lens"), first(0), first(1));
  std::vector<Tensor> h, c;
  for (size_t l = 0; l < out.state.size(); ++l)
    for (const auto* states : {&out.state, &out.reverse_state})
      if (!states->empty()) {
        h.push_back(reshape((*states)[l].h, {1, B, 6}));
        if (c0.defined()) c.push_back(reshape((*states)[l].c, {1, B, 6}));
      }
  expect_near_largest(out.y, golden("y"), name + ", y");
  expect_near_largest(concat(h, 0), golden("h"), name + ", h");
  Tensor loss = add(sum(mul(out.y, golden("dy"))), sum(mul(concat(h, 0), golden("dh"))));
  if (c0.defined()) {
    expect_near_largest(concat(c, 0), golden("c"), name + ", c");
    loss = add(loss, sum(mul(concat(c, 0), golden("dc"))));
  }
  tape.backward(loss);
  for (const auto& [part, t] : leaves)
    expect_near_largest(tape.grad(t), golden("grad." + part), name + ", gradient of " + part);
}

TEST(Recurrent, GruInBothDirectionsWithLengthsIsPyTorchs) {
  follow_pytorch("gru", {.layers = 2, .bidirectional = true});
}
TEST(Recurrent, LstmWithLengthsIsPyTorchs) { follow_pytorch("lstm", {.layers = 2, .cell = CellKind::lstm}); }

TEST(Recurrent, ParametersAreNamedAndCountedAsInPyTorch) {
  std::vector<std::string> names;
  for (const auto& p : parameters(Recurrent(3, 4, {.layers = 1, .bidirectional = true}, Rng(1))))
    names.push_back(p.name);
  EXPECT_EQ(names, (std::vector<std::string>{"layers.0.weight_ih", "layers.0.weight_hh", "layers.0.bias_ih",
                                             "layers.0.bias_hh", "reverse.0.weight_ih", "reverse.0.weight_hh",
                                             "reverse.0.bias_ih", "reverse.0.bias_hh"}));
  EXPECT_EQ(count_parameters(Recurrent(32, 32, {.layers = 2}, Rng(1))), 2 * 6336);
  EXPECT_EQ(count_parameters(Recurrent(32, 32, {.layers = 2, .cell = CellKind::lstm}, Rng(1))), 2 * 8448);
}

struct Kinds {
  const char* name;
  RecurrentOptions options;
};
const Kinds kAll[] = {{"gru", {.layers = 2}},
                      {"gru_before", {.layers = 1, .cell = CellKind::gru_before}},
                      {"lstm", {.layers = 2, .cell = CellKind::lstm}},
                      {"both ways", {.layers = 2, .bidirectional = true}}};

TEST(Recurrent, PaddingAndBatchMatesChangeNoBit) {
  const int64_t lens[] = {4, 9, 0, 6, 1};
  for (const auto& [name, options] : kAll) {
    const Recurrent model(7, 11, options, Rng(1));
    const Tensor x = normal({5, 9, 7}, Rng(2));
    const Recurrent::Output all = model(x, {}, Ids({5}, {4, 9, 0, 6, 1}));
    for (int64_t b = 0; b < 5; ++b) {
      const Tensor alone_x = slice(x, 0, b, b + 1);
      const Recurrent::Output alone = model(slice(alone_x, 1, 0, lens[b]), {});
      expect_same(slice(slice(all.y, 0, b, b + 1), 1, 0, lens[b]), alone.y, name);
      const Tensor beyond = slice(slice(all.y, 0, b, b + 1), 1, lens[b], 9);
      for (float v : beyond.data()) ASSERT_EQ(v, 0.f) << name;
      for (size_t l = 0; l < all.state.size(); ++l)
        expect_same(slice(all.state[l].h, 0, b, b + 1), alone.state[l].h, name);
    }
  }
}

TEST(Recurrent, ThreadsChangeNoBitOfValuesAndGradients) {
  for (const auto& [name, options] : kAll) {
    const Recurrent model(33, 40, options, Rng(1));
    const Tensor x = parameter(normal({37, 12, 33}, Rng(2)));
    Ids lens = Ids::empty({37});
    for (int64_t b = 0; b < 37; ++b) lens.mutable_ptr()[b] = static_cast<int32_t>(b * 5 % 13);
    const auto run = [&](int count) {
      set_threads(count);
      Tape tape;
      const Recurrent::Output out = model(x, {}, lens);
      tape.backward(sum(mul(out.y, out.y)));
      std::vector<Tensor> all{out.y, tape.grad(x)};
      for (const auto& p : parameters(model)) all.push_back(tape.grad(p.tensor));
      return all;
    };
    const qkv_test::ThreadsScope threads_scope;
    const auto one = run(1), three = run(3);
    for (size_t i = 0; i < one.size(); ++i) expect_same(one[i], three[i], name);
  }
}

TEST(Recurrent, StepsOneAtATimeHaveTheBitsOfTheSequence) {
  for (const CellKind kind : {CellKind::gru, CellKind::gru_before, CellKind::lstm}) {
    const Recurrent model(5, 19, {.cell = kind}, Rng(1));
    const Tensor x = normal({6, 4, 5}, Rng(2));
    const Tensor y = model(x, {}).y;
    CellState state;
    for (int64_t t = 0; t < 4; ++t) {
      state = recurrent_step(kind, reshape(slice(x, 1, t, t + 1), {6, 5}), model.layers[0].weights(), state);
      expect_same(reshape(slice(y, 1, t, t + 1), {6, 19}), state.h, "step");
    }
  }
}

TEST(Recurrent, DropoutBetweenLayersIsOnInTrainingOnly) {
  const Recurrent model(4, 8, {.layers = 2, .dropout = 0.5f}, Rng(1));
  const Recurrent plain = [&] {
    Recurrent copy = model;
    copy.options.dropout = 0;
    return copy;
  }();
  const Tensor x = normal({3, 5, 4}, Rng(2));
  const qkv::Run training{.training = true, .rng = Rng(3)};
  expect_same(model(x, {}).y, plain(x, {}).y, "inference");
  const Recurrent::Output dropped = model(x, training), again = model(x, training), whole = plain(x, training);
  expect_same(dropped.y, again.y, "the same run");
  expect_same(dropped.state[0].h, whole.state[0].h, "the first layer");
  EXPECT_GT(max(abs(sub(dropped.y, whole.y))).item(), 0.01f);
}

TEST(Recurrent, NotANumberStaysInItsRowAndAfterItsStep) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  for (const auto& [name, options] : kAll)
    for (const float bad : {nan, inf}) {
      RecurrentOptions one_way = options;
      one_way.bidirectional = false;
      const Recurrent model(3, 10, one_way, Rng(1));
      Tensor x = normal({3, 6, 3}, Rng(2));
      const Tensor clean = model(x, {}, Ids({3}, {6, 4, 6})).y;
      x.mutable_ptr()[(1 * 6 + 2) * 3] = bad;  // row 1, step 2
      x.mutable_ptr()[(1 * 6 + 5) * 3] = nan;  // and after its end
      const Tensor y = model(x, {}, Ids({3}, {6, 4, 6})).y;
      for (int64_t b : {0, 2}) expect_same(slice(y, 0, b, b + 1), slice(clean, 0, b, b + 1), name);
      expect_same(slice(slice(y, 0, 1, 2), 1, 0, 2), slice(slice(clean, 0, 1, 2), 1, 0, 2), name);
      const Tensor from = slice(slice(y, 0, 1, 2), 1, 2, 4);
      if (std::isnan(bad))
        for (float v : from.data()) EXPECT_TRUE(std::isnan(v)) << name;
      else
        for (float v : from.data()) EXPECT_LE(std::abs(v), 2.f) << name;  // gates are open or closed
    }
}

TEST(Recurrent, ErrorsNameTheShapes) {
  const Recurrent model(3, 4, {}, Rng(1));
  const CellWeights w = model.layers[0].weights();
  const Tensor x = zeros({2, 5, 3});
  expect_error(
      [&] {
        recurrent(CellKind::gru, zeros({5, 3}), w);
      },
      "[recurrent] expected x of shape (B, T, D), got (5, 3)");
  expect_error(
      [&] {
        recurrent(CellKind::gru, zeros({2, 5, 7}), w);
      },
      "[recurrent] input weights have shape (12, 3), expected (12, 7)");
  expect_error([&] { recurrent(CellKind::lstm, x, w); },
               "[recurrent] recurrent weights have shape (12, 4), expected (16, 4)");
  expect_error(
      [&] {
        recurrent(CellKind::gru, x, w, {zeros({2, 3}), {}});
      },
      "[recurrent] the first h has shape (2, 3), expected (2, 4)");
  expect_error(
      [&] {
        recurrent(CellKind::gru, x, w, {{}, zeros({2, 4})});
      },
      "[recurrent] a GRU has no c, got one of shape (2, 4)");
  expect_error(
      [&] {
        recurrent(CellKind::gru, x, w, {}, Ids({2}, {5, 6}));
      },
      "[recurrent] length 6 of row 1 is not in 0 to 5");
  expect_error([&] { recurrent(CellKind::gru, x, w, {}, Ids({1}, {5})); },
               "[recurrent] lengths have shape (1,), expected one for each of 2 rows");
}

}  // namespace
}  // namespace qkv::tests
