// Learning from examples in a few lines.
#include "qkv/train/supervised.h"

#include <gtest/gtest.h>

#include <set>

#include "qkv/nn/layers.h"
#include "qkv/ops/dropout.h"
#include "qkv/train/fit.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

struct Net {
  Linear first, second;
  explicit Net(int64_t out) : first(2, 16, Rng(1).at("first")), second(16, out, Rng(1).at("second")) {}
  Tensor operator()(const Tensor& x) const { return second(first(x, Activation::tanh)); }
  void visit(auto&& f) {
    f("first", first);
    f("second", second);
  }
};
// The same, and a drawing of the run.
struct DroppingNet : Net {
  using Net::Net;
  Tensor operator()(const Tensor& x, const qkv::Run& run) const {
    return second(dropout(first(x, Activation::tanh), 0.1f, run.at("dropout")));
  }
};

// Points in four quadrants: y is the product of the signs, class the quadrant.
struct Points {
  Tensor x = uniform({100, 2}, Rng(5), -1, 1), y = Tensor::empty({100, 1});
  Ids quadrant = Ids::empty({100});
  Points() {
    for (int64_t i = 0; i < 100; ++i) {
      const bool right = x.at({i, 0}) > 0, up = x.at({i, 1}) > 0;
      y.mutable_ptr()[i] = right == up ? 1.f : -1.f;
      quadrant.mutable_ptr()[i] = 2 * right + up;
    }
  }
};

double trained(auto model, const auto& y, const auto& loss) {
  const Points points;
  Adam adam;
  return fit(model, adam, {.epochs = 150, .rate = constant_rate(0.02f)}, supervised(model, points.x, y, loss))
      .progress.epoch_loss;
}

TEST(Supervised, TrainsWithALossOfTheLibraryOrAFunction) {
  const Points points;
  EXPECT_LT(trained(Net(1), points.y, squared_error), 0.2);
  EXPECT_LT(trained(Net(4), points.quadrant, cross_entropy), 0.2);
  EXPECT_LT(trained(DroppingNet(4), points.quadrant, cross_entropy), 0.4);
  const auto mean = [](const Tensor& out, const Tensor& y) { return squared_error(out, y); };
  EXPECT_NEAR(trained(Net(1), points.y, mean), trained(Net(1), points.y, squared_error), 1e-3);
}

TEST(Supervised, AnEpochHasEveryRowOnceInAnotherOrder) {
  const Tensor x({7, 1}, {0, 1, 2, 3, 4, 5, 6});
  const Ids y({7}, {0, 1, 2, 3, 4, 5, 6});
  const Net model(1);
  const auto order = [&](const auto& task, int64_t epoch) {
    std::vector<int32_t> rows;
    for (int64_t b = 0; b < task.batches(); ++b) {
      const auto batch = task.batch(epoch, b);
      for (int64_t i = 0; i < task.rows(batch); ++i) {
        EXPECT_EQ(batch.x.ptr()[i], static_cast<float>(batch.y.ptr()[i]));
        rows.push_back(batch.y.ptr()[i]);
      }
    }
    return rows;
  };
  const auto task = supervised(model, x, y, cross_entropy, {.batch_rows = 3});
  EXPECT_EQ(task.batches(), 3);
  const auto first = order(task, 0), second = order(task, 1);
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 7u);
  EXPECT_EQ(std::set(second.begin(), second.end()).size(), 7u);
  EXPECT_NE(first, second);
  EXPECT_EQ(order(task, 0), first);
  EXPECT_NE(order(supervised(model, x, y, cross_entropy, {.batch_rows = 3, .seed = 1}), 0), first);
  EXPECT_EQ(order(supervised(model, x, y, cross_entropy, {.shuffle = false}), 4),
            (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Supervised, RefusesRowsThatDoNotMatch) {
  const Net model(1);
  EXPECT_EQ(error_of([&] {
              supervised(model, zeros({3, 2}), zeros({4, 1}), squared_error);
            }),
            "[supervised] x (3, 2) and y (4, 1) must have as many rows");
  EXPECT_EQ(error_of([&] {
              supervised(model, Tensor(), zeros({4, 1}), squared_error);
            }),
            "[supervised] the tensor \"x\" is absent: it has no values");
  EXPECT_EQ(error_of([&] {
              supervised(model, zeros({4, 2}), zeros({4, 1}), squared_error, {.batch_rows = 0});
            }),
            "[supervised] a batch must have 1 or more rows, got 0");
}

}  // namespace
}  // namespace qkv
