// Runs the op table: values, gradients, edges, special values, every kernel target; and no op without a row.
#include "unit/ops/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <regex>
#include <set>
#include <sstream>

#include "qkv/kernels/target.h"
#include "qkv/ops/elementwise.h"
#include "qkv/tensor/tape.h"

namespace qkv::tests {

std::vector<OpCase> op_table() {
  std::vector<OpCase> table;
  for (auto rows : {elementwise_rows(), broadcast_rows(), reduce_rows(), shape_rows(), conv_rows(), batch_norm_rows(),
                    softmax_rows(), norm_rows(), embedding_rows(), loss_rows(), matmul_rows(), attention_rows(),
                    recurrent_rows(), position_rows(), long_rows()})
    table.insert(table.end(), rows.begin(), rows.end());
  return table;
}

namespace {

constexpr int64_t kLarge = 2000;  // elements: above this, evaluating the reference at every element costs too much

bool is_large(const std::vector<Shape>& shapes) {
  return std::any_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.numel() > kLarge; });
}

Tensors random_inputs(const OpCase& row, const std::vector<Shape>& shapes) {
  Tensors inputs;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const auto [low, high] = i < row.ranges.size() ? row.ranges[i] : std::pair{-2.f, 2.f};
    inputs.push_back(uniform(shapes[i], Rng(17).at(row.op + row.label).at(i), low, high));
  }
  return inputs;
}

Arrays in_double(const Tensors& inputs) {
  Arrays arrays;
  for (const Tensor& t : inputs) arrays.emplace_back(t);
  return arrays;
}

std::string name_of(const OpCase& row, const std::vector<Shape>& shapes) {
  std::string name = row.op + " (" + row.label + ") on " + kernels::running_target() + " with";
  for (const Shape& s : shapes) name += " " + s.str();
  return name;
}

double largest(const std::vector<double>& v) {
  double most = 0;
  for (double x : v) most = std::max(most, std::abs(x));
  return most;
}

// |a - b| <= tolerance (|b| + max|b|) everywhere; reports the element that fails.
void expect_close(std::span<const float> a, const std::vector<double>& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  const double most = largest(b);
  for (size_t i = 0; i < b.size(); ++i)
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * (std::abs(b[i]) + most) + 1e-37)
        << what << ": element " << i << " is " << a[i] << ", reference " << b[i];
}

void check_value(const OpCase& row, const std::vector<Shape>& shapes) {
  const Tensors inputs = random_inputs(row, shapes);
  const Tensor y = row.call(inputs);
  const Array expected = row.reference(in_double(inputs));
  ASSERT_EQ(y.shape(), expected.shape) << name_of(row, shapes);
  expect_close(y.data(), expected.v, row.value_tolerance, name_of(row, shapes));
}

double weighted_sum(const Array& y, const Array& weights) {
  double sum = 0;
  for (int64_t i = 0; i < y.numel(); ++i) sum += y[i] * weights[i];
  return sum;
}

Tensors as_parameters(Tensors inputs) {
  for (Tensor& t : inputs) t = parameter(t);
  return inputs;
}

// Central differences of sum(weights * reference) at the given elements.
std::vector<double> differences(const OpCase& row, const Arrays& arrays, size_t k, const std::vector<int64_t>& places,
                                const Array& weights) {
  std::vector<double> slopes;
  Arrays moved = arrays;
  for (int64_t i : places) {
    moved[k][i] = arrays[k][i] + row.step;
    const double above = weighted_sum(row.reference(moved), weights);
    moved[k][i] = arrays[k][i] - row.step;
    slopes.push_back((above - weighted_sum(row.reference(moved), weights)) / (2 * row.step));
    moved[k][i] = arrays[k][i];
  }
  return slopes;
}

// All elements of small inputs; for large inputs both ends and three elements between.
std::vector<int64_t> places_of(int64_t n) {
  std::vector<int64_t> places;
  for (int64_t i = 0; i < n; i += n <= kLarge ? 1 : n / 4) places.push_back(i);
  if (n > kLarge) places.push_back(n - 1);
  return places;
}

std::vector<float> at_places(const Tensor& t, const std::vector<int64_t>& places) {
  std::vector<float> values;
  for (int64_t i : places) values.push_back(t.ptr()[i]);
  return values;
}

void check_gradient(const OpCase& row, const std::vector<Shape>& shapes) {
  const Tensors plain = random_inputs(row, shapes), inputs = as_parameters(plain);
  const Arrays arrays = in_double(plain);
  Tape tape;
  const Tensor y = row.call(inputs);
  const Tensor dy = uniform(y.shape(), Rng(23).at(row.op), -1, 1);
  ASSERT_GE(tape.length(), 1) << name_of(row, shapes);
  tape.backward(y, dy);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::string what = name_of(row, shapes) + ", gradient of input " + std::to_string(k);
    const std::vector<int64_t> places = places_of(arrays[k].numel());
    const std::vector<double> expected = differences(row, arrays, k, places, Array(dy));
    const Tensor dx = tape.grad(inputs[k]);
    ASSERT_EQ(dx.shape(), inputs[k].shape()) << what;
    expect_close(at_places(dx, places), expected, row.gradient_tolerance, what);

    // As the only input that wants a gradient: the same bits, though less is saved.
    Tensors one = plain;
    one[k] = parameter(plain[k]);
    Tape alone;
    alone.backward(row.call(one), dy);
    const Tensor dx_alone = alone.grad(one[k]);
    ASSERT_TRUE(std::equal(dx.data().begin(), dx.data().end(), dx_alone.data().begin()))
        << what << " when the others are constants";
  }
}

// In a build that checks draws: an op that draws random numbers, here the same ones twice, is refused.
bool second_draw_is_refused(const OpCase& row, const Tensors& inputs) {
  if (!Tape::checks_draws()) return false;
  const Tape tape;
  row.call(inputs);
  try {
    row.call(inputs);
  } catch (const Error& e) {
    return std::string(e.what()).ends_with("they share a random path");
  }
  return false;
}

// A second use adds to the existing gradients, with and without an arena.
void check_two_uses(const OpCase& row, const std::vector<Shape>& shapes) {
  const Tensors inputs = as_parameters(random_inputs(row, shapes));
  if (second_draw_is_refused(row, inputs)) return;
  const auto gradients = [&](int uses, GradArena* arena) {
    std::optional<Tape> tape;
    if (arena)
      tape.emplace(*arena);
    else
      tape.emplace();
    Tensor y = row.call(inputs);
    for (int i = 1; i < uses; ++i) y = add(y, row.call(inputs));
    tape->backward(y, uniform(y.shape(), Rng(23).at(row.op), -1, 1));
    Arrays out;
    for (const Tensor& x : inputs) out.emplace_back(tape->grad(x));
    return out;
  };
  std::vector<int64_t> offsets = {0};
  for (const Tensor& x : inputs) offsets.push_back(offsets.back() + x.numel());
  GradArena arena(inputs[0].leaf_id(), offsets);
  const Arrays once = gradients(1, nullptr), twice = gradients(2, nullptr), in_arena = gradients(2, &arena);
  for (size_t k = 0; k < inputs.size(); ++k)
    for (const Array* sum : {&twice[k], &in_arena[k]}) {
      std::vector<double> expected = once[k].v;
      for (double& v : expected) v *= 2;
      expect_close(std::vector<float>(sum->v.begin(), sum->v.end()), expected, 1e-6,
                   name_of(row, shapes) + ", two uses of input " + std::to_string(k));
    }
}

void check_special(const OpCase& row, const std::vector<Shape>& shapes) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Array usual = row.reference(in_double(random_inputs(row, shapes)));
  const double most = largest(usual.v);
  for (float special : {nan, inf, -inf, 0.f, -0.f, 1e-40f, -1e-40f, 3e38f, -3e38f})
    for (size_t k = 0; k < shapes.size(); ++k) {
      Tensors inputs = random_inputs(row, shapes);
      if (inputs[k].numel() == 0) continue;
      for (int64_t place : {int64_t{0}, inputs[k].numel() - 1}) {
        Tensors with = inputs;
        with[k] = inputs[k].copied();
        with[k].mutable_ptr()[place] = special;
        const Tensor y = row.call(with);
        const Array expected = row.reference(in_double(with));
        for (int64_t i = 0; i < y.numel(); ++i) {
          const float e = static_cast<float>(expected[i]), got = y.ptr()[i];
          const double away = std::abs(double{got} - e);
          bool right;
          if (std::isnan(e))
            right = std::isnan(got);
          else if (std::isinf(e))
            right = got == e;
          else if (expected[i] == usual[i])
            right = away <= row.value_tolerance * (std::abs(e) + most) + 1e-37;  // not affected by it
          else
            right = away <= 1e-5 * std::abs(e) + 1e-5 * (std::abs(special) < 3 ? 1 : 0) + 1e-36;
          ASSERT_TRUE(right) << name_of(row, shapes) << ": " << special << " in input " << k << " gives " << got
                             << " at " << i << ", expected " << e;
        }
      }
    }
}

}  // namespace

class OpTable : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { kernels::force_target(GetParam()); }
  void TearDown() override { kernels::force_target(""); }
};

TEST_P(OpTable, ValuesAgreeWithTheDoubleReference) {
  for (const OpCase& row : op_table())
    for (const auto& shapes : row.shapes) check_value(row, shapes);
}

TEST_P(OpTable, GradientsAgreeWithDifferencesOfTheReference) {
  for (const OpCase& row : op_table())
    for (const auto& shapes : row.shapes) check_gradient(row, shapes);
}

TEST_P(OpTable, SpecialValuesGoWhereTheReferenceSendsThem) {
  for (const OpCase& row : op_table()) {
    if (row.special == Special::none) continue;
    for (const auto& shapes : row.shapes)
      if (!is_large(shapes)) check_special(row, shapes);
  }
}

TEST_P(OpTable, ASecondUseAddsToTheGradients) {
  for (const OpCase& row : op_table())
    for (const auto& shapes : row.shapes) check_two_uses(row, shapes);
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, OpTable, testing::ValuesIn(kernels::available_targets()),
                         [](const auto& info) { return info.param; });

TEST(OpTableRows, EveryRecordedOpHasARow) {
  std::set<std::string> rows, recorded;
  for (const OpCase& row : op_table()) rows.insert(row.op);
  const std::regex call("record\\(\\s*\"([^\"]+)\"");
  for (const auto& file : std::filesystem::recursive_directory_iterator(QKV_SOURCE_DIR "/src/qkv")) {
    if (file.path().extension() != ".cpp" && file.path().extension() != ".h") continue;
    std::stringstream source;
    source << std::ifstream(file.path()).rdbuf();
    const std::string text = source.str();
    for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) recorded.insert((*it)[1]);
  }
  ASSERT_FALSE(recorded.empty());
  for (const std::string& op : recorded)
    EXPECT_TRUE(rows.count(op)) << "the op \"" << op << "\" has no row in the table";
  for (const std::string& op : rows) EXPECT_TRUE(recorded.count(op)) << "the row \"" << op << "\" belongs to no op";
}

TEST(OpTableRows, EveryOpOfTheEngineIsThere) {
  std::set<std::string> rows;
  for (const OpCase& row : op_table()) rows.insert(row.op);
  for (const char* op : {"add",           "sub",
                         "mul",           "div",
                         "scale",         "neg",
                         "abs",           "pow",
                         "exp",           "log",
                         "sqrt",          "sin",
                         "cos",           "tanh",
                         "sigmoid",       "relu",
                         "gelu",          "gelu_tanh",
                         "silu",          "dropout",
                         "clamp",         "rotate",
                         "sum",           "mean",
                         "max",           "min",
                         "matmul",        "linear",
                         "feed_forward",  "reshape",
                         "permute",       "slice",
                         "concat",        "repeat_interleave",
                         "tile",          "select",
                         "conv1d",        "batch_norm",
                         "softmax",       "log_softmax",
                         "layer_norm",    "residual_layer_norm",
                         "rms_norm",      "embedding",
                         "cross_entropy", "squared_error"})
    EXPECT_TRUE(rows.count(op)) << op;
}

TEST(OpTableRows, EveryOpIsTriedWithNothingWithOneAndWithTails) {
  std::set<std::string> all, nothing, one, tail;
  for (const OpCase& row : op_table())
    for (const auto& shapes : row.shapes) {
      all.insert(row.op);
      const Shape& x = shapes[0];
      if (std::any_of(shapes.begin(), shapes.end(), [](const Shape& s) { return s.numel() == 0; }))
        nothing.insert(row.op);
      if (x.numel() == 1) one.insert(row.op);
      if (x.numel() > 8 && x[-1] % 8 != 0) tail.insert(row.op);
    }
  for (const std::string& op : all) {
    EXPECT_TRUE(nothing.count(op)) << op << " has no row without elements";
    EXPECT_TRUE(one.count(op)) << op << " has no row with one element";
    EXPECT_TRUE(tail.count(op)) << op << " has no row with a tail";
  }
}

// An absent tensor has the shape of a scalar, so an op must check.
TEST(OpTableRows, AnAbsentInputIsRefusedOrMeantToBeLeftOut) {
  // Optional inputs: biases, first states, positions, dropout factors, what makes queries and additive scores.
  const std::set<std::string> optional = {"attention 3",
                                          "attention 4",
                                          "attention_decoder 2",
                                          "attention_decoder 3",
                                          "attention_decoder 7",
                                          "attention_decoder 8",
                                          "attention_decoder 9",
                                          "attention_decoder 10",
                                          "attention_decoder 14",
                                          "attention_decoder 15",
                                          "attention_decoder 16",
                                          "conv1d 2",
                                          "embedding_scaled_position 1",
                                          "feed_forward 2",
                                          "feed_forward 4",
                                          "linear 2",
                                          "linear_cross_entropy 2",
                                          "recurrent 5",
                                          "recurrent 6"};
  std::set<std::string> done_without;
  for (const OpCase& row : op_table())
    for (const auto& shapes : row.shapes)
      for (size_t k = 0; k < shapes.size() && !is_large(shapes); ++k) {
        Tensors inputs = random_inputs(row, shapes);
        inputs[k] = Tensor();
        const std::string what = row.op + " " + std::to_string(k);
        try {
          const Tensor y = row.call(inputs);
          EXPECT_TRUE(y.defined()) << what;
          done_without.insert(what);
        } catch (const Error& error) {
          const std::string said = error.what();
          EXPECT_EQ(said.find('\n'), std::string::npos) << said;
          const bool by_row = said.starts_with("[row] ");  // by the row's own mask, before the op
          EXPECT_TRUE(by_row || said.find(" is absent") != std::string::npos) << what << ": " << said;
        }
      }
  EXPECT_EQ(done_without, optional);
}

TEST(OpTableRows, EveryExceptionHasAReason) {
  const OpCase plain;
  for (const OpCase& row : op_table()) {
    const bool looser =
        row.value_tolerance > plain.value_tolerance || row.gradient_tolerance > plain.gradient_tolerance;
    if (looser || row.special != plain.special) {
      EXPECT_FALSE(row.exception.empty()) << row.op << " (" << row.label << ")";
    }
  }
}

}  // namespace qkv::tests
