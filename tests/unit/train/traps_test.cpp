// What used to train the wrong thing without a word is refused, with a text that says what to do.
#include <gtest/gtest.h>

#include "qkv/nn/layers.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/train/fit.h"
#include "support/files.h"

namespace qkv {
namespace {

using qkv_test::error_of;

struct Model {
  Linear a, b;
  bool names_b = true;

  explicit Model(const Rng& rng) : a(4, 8, rng.at("a")), b(8, 1, rng.at("b")) {}
  Tensor operator()(const Tensor& x) const { return b(a(x, Activation::tanh)); }
  void visit(auto&& f) {
    f("a", a);
    if (names_b) f("b", b);
  }
};

const Tensor& inputs() {
  static const Tensor x = normal({64, 4}, Rng(1).at("x"));
  return x;
}
const Tensor& targets() {
  static const Tensor y = normal({64, 1}, Rng(1).at("y"));
  return y;
}

// The mean squared error of a model that is kept by value.
struct CopyingTask {
  Model model;
  int64_t batches() const { return 2; }
  int batch(int64_t, int64_t) const { return 0; }
  int64_t rows(int) const { return 64; }
  Loss loss(int, int64_t begin, int64_t end, const qkv::Run&) const {
    const int64_t n = end - begin;
    return {squared_error(model(inputs().part(begin * 4, {n, 4})), targets().part(begin, {n, 1}), Reduction::sum),
            static_cast<double>(n)};
  }
};

std::string hint_of(const auto& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.hint().in(Language::en);
  }
  return "no error";
}

TEST(Traps, AModelCopiedBeforeFlattenIsNamed) {
  Model model{Rng(1)};
  const CopyingTask task{model};
  const Parameters all = flatten(model);
  const std::vector<float> before(all.flat().data().begin(), all.flat().data().end());
  Adam adam;
  const auto train = [&] { fit(all, adam, {}, task); };
  EXPECT_EQ(error_of(train),
            "[fit] the loss uses \"a.weight\" as it was before flatten(): the model was copied too early");
  EXPECT_EQ(hint_of(train),
            "copy the model after flatten(), or refer to it; fit(model, ...) flattens the model itself");
  EXPECT_EQ(std::vector<float>(all.flat().data().begin(), all.flat().data().end()), before);
  EXPECT_EQ(adam.updates(), 0);
  EXPECT_EQ(error_of([&] { fit(all, adam, {}, CopyingTask{model}); }), "no error") << "copied afterwards";
  EXPECT_EQ(adam.updates(), 2);
}

TEST(Traps, AFieldThatVisitForgetsIsRefusedUnlessItIsFrozen) {
  Model model{Rng(1)};
  model.names_b = false;
  Adam adam;
  const auto loss = [&](int64_t, const qkv::Run&) { return squared_error(model(inputs()), targets()); };
  const auto train = [&] { fit(model, adam, {.steps = 3}, loss); };
  EXPECT_EQ(error_of(train),
            "[fit] the loss depends on a parameter of shape (1, 8) that is not among the model's, and on 1 more");
  EXPECT_EQ(hint_of(train),
            "name it in visit(), so that it is trained and saved, or pass frozen(module) to keep it as it is");
  model.b = frozen(model.b);
  const Tensor before = model.b.weight.copied(), a_before = model.a.weight.copied();
  EXPECT_EQ(error_of(train), "no error");
  EXPECT_EQ(model.b.weight.at({0, 0}), before.at({0, 0}));
  EXPECT_NE(model.a.weight.at({0, 0}), a_before.at({0, 0}));
}

TEST(Traps, FrozenSharesTheWeights) {
  Linear layer(2, 2, Rng(1));
  const Linear constant = frozen(layer);
  EXPECT_EQ(constant.weight.ptr(), layer.weight.ptr());
  EXPECT_FALSE(constant.weight.is_parameter());
  EXPECT_TRUE(layer.weight.is_parameter());
}

TEST(Traps, AFirstGradientOfZeroIsRefused) {
  Model model{Rng(1)};
  Adam adam;
  EXPECT_EQ(
      error_of([&] { fit(model, adam, {}, [&](int64_t, const qkv::Run&) { return sum(scale(model(inputs()), 0)); }); }),
      "[fit] no parameter got a gradient: the first one is exactly zero");
  // Later ones may be: a relu can be off for a batch.
  EXPECT_EQ(error_of([&] {
              fit(model, adam, {.steps = 3},
                  [&](int64_t step, const qkv::Run&) { return sum(scale(model(inputs()), step == 0 ? 1.f : 0.f)); });
            }),
            "no error");
}

TEST(Traps, ALossThatIsNotOneNumberOrNotRecordedIsRefused) {
  Model model{Rng(1)};
  Adam adam;
  const auto error = [&](const Tensor& loss) {
    return error_of([&] { fit(model, adam, {}, [&](int64_t, const qkv::Run&) { return loss; }); });
  };
  EXPECT_EQ(error(ones({3})), "[fit] the loss must be one number, got shape (3,)");
  EXPECT_EQ(error({}), "[fit] the loss must be one number, got an absent tensor");
  EXPECT_EQ(error(squared_error(model(inputs()), targets())), "[fit] the loss depends on no parameter of the step");
}

double first_norm(const FitOptions& options, const auto& task_of) {
  Model model{Rng(1)};
  Adam adam;
  double norm = 0;
  FitOptions with = options;
  with.on_step = [&](const Progress& p) {
    if (p.step == 1) norm = p.gradient_norm;
  };
  fit(model, adam, with, task_of(model));
  return norm;
}

// The same mean, given as the sum over rows, as a mean over rows, and by a function that sees all rows.
TEST(Traps, AMeanIsTheSameMeanHoweverItIsCut) {
  struct Sums {
    const Model& model;
    int64_t cut = 1;  // batches that the rows are cut into
    bool by_mean = false;
    int64_t batches() const { return cut; }
    int64_t batch(int64_t, int64_t index) const { return index * 64 / cut; }
    int64_t rows(int64_t) const { return 64 / cut; }
    Loss loss(int64_t first, int64_t begin, int64_t end, const qkv::Run&) const {
      const int64_t n = end - begin;
      const Tensor y = model(inputs().part((first + begin) * 4, {n, 4})), want = targets().part(first + begin, {n, 1});
      if (by_mean) return from_mean(squared_error(y, want), static_cast<double>(n));
      return {squared_error(y, want, Reduction::sum), static_cast<double>(n)};
    }
  };
  const double whole = first_norm({.shards = ShardPolicy::number(1)}, [](const Model& m) { return Sums{m}; });
  EXPECT_GT(whole, 0.1);
  for (const int64_t shards : {2, 3, 8}) {
    const FitOptions options{.shards = ShardPolicy::number(shards)};
    EXPECT_NEAR(first_norm(options, [](const Model& m) { return Sums{m}; }), whole, 1e-5 * whole) << shards;
    EXPECT_NEAR(first_norm(options, [](const Model& m) { return Sums{m, 1, true}; }), whole, 1e-5 * whole) << shards;
  }
  EXPECT_NEAR(first_norm({.accumulate = 4, .shards = ShardPolicy::number(2)},
                         [](const Model& m) {
                           return Sums{m, 4};
                         }),
              whole, 1e-5 * whole);
  EXPECT_NEAR(first_norm({},
                         [](const Model& m) {
                           return [&m](int64_t, const qkv::Run&) { return squared_error(m(inputs()), targets()); };
                         }),
              whole, 1e-5 * whole);
}

TEST(Traps, AMeanThatIsCountedAsOneIsRefused) {
  struct Means : CopyingTask {
    Loss loss(int batch, int64_t begin, int64_t end, const qkv::Run& run) const {
      return {scale(CopyingTask::loss(batch, begin, end, run).sum, 1 / static_cast<float>(end - begin)), 1};
    }
  };
  struct Tokens : CopyingTask {
    double count(int) const { return 128; }
  };
  Model model{Rng(1)};
  const Parameters all = flatten(model);
  Adam adam;
  const FitOptions options{.shards = ShardPolicy::number(2)};
  EXPECT_EQ(error_of([&] { fit(all, adam, options, Means{{model}}); }),
            "[fit] the losses of a batch count 2, but its rows() is 64");
  EXPECT_EQ(error_of([&] { fit(all, adam, options, Tokens{{model}}); }),
            "[fit] the losses of a batch count 64, but its count() is 128");
  EXPECT_EQ(adam.updates(), 0);
}

TEST(Fit, EndsAfterStepsOrSecondsInTheMiddleOfAnEpoch) {
  Model model{Rng(1)};
  Adam adam;
  const auto loss = [&](int64_t, const qkv::Run&) { return squared_error(model(inputs()), targets()); };
  int64_t epochs = 0, steps = 0;
  FitOptions options{.epochs = 4,
                     .steps = 10,
                     .on_step = [&](const Progress&) { ++steps; },
                     .on_epoch =
                         [&](const Progress& p) {
                           ++epochs;
                           EXPECT_EQ(p.epochs, 4);
                           EXPECT_EQ(p.steps, 10);
                         }};
  Progress p = fit(model, adam, options, loss).progress;
  EXPECT_EQ(p.step, 10);
  EXPECT_EQ(p.epoch, 4);
  EXPECT_EQ(steps, 10);
  EXPECT_EQ(epochs, 4) << "of 3, 3, 2 and 2 updates";
  p = fit(model, adam, {.epochs = 5}, loss).progress;
  EXPECT_EQ(p.step, 5) << "epochs alone: one update each";
  p = fit(model, adam, {.seconds = 0.05}, loss).progress;
  EXPECT_GE(p.seconds, 0.05);
  EXPECT_GT(p.step, 1);
  EXPECT_EQ(p.steps, 0) << "nobody knows";
  EXPECT_EQ(fit(model, adam, {.steps = 0}, loss).progress.step, 0);
  EXPECT_EQ(fit(model, adam, {}, loss).progress.step, 1);
  const Parameters all = flatten(model);
  EXPECT_EQ(fit(all, adam, {.steps = 3}, CopyingTask{model}).progress.step, 3) << "into the second epoch";
  EXPECT_EQ(fit(all, adam, {.steps = 30, .seconds = 0}, CopyingTask{model}).progress.step, 0);
}

TEST(Fit, ARunByStepsResumesWhereItEnded) {
  qkv_test::TempFolder folder;
  const auto train = [](const std::string& file, std::vector<int64_t> ends) {
    Model model{Rng(1)};
    const Parameters all = flatten(model);
    Adam adam;
    for (const int64_t steps : ends) fit(all, adam, {.steps = steps, .checkpoint = file}, CopyingTask{model});
    return std::vector<float>(all.flat().data().begin(), all.flat().data().end());
  };
  const auto whole = train("", {7});
  EXPECT_EQ(train(folder / "a.safetensors", {3, 4, 7}), whole);
  EXPECT_NE(train("", {6}), whole);
}

}  // namespace
}  // namespace qkv
