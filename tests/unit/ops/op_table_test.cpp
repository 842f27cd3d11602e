// Runs the op table: values, gradients, edges, special values, every kernel target; and no op without a row.
#include "unit/ops/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

#include "qkv/kernels/target.h"
#include "qkv/tensor/tape.h"

namespace qkv::tests {

std::vector<OpCase> op_table() {
  std::vector<OpCase> table;
  for (auto rows : {elementwise_rows(), broadcast_rows(), reduce_rows(), shape_rows(), conv_rows(), batch_norm_rows(), softmax_rows(), norm_rows(),
                    embedding_rows(), loss_rows(), matmul_rows(), attention_rows()})
    table.insert(table.end(), rows.begin(), rows.end());
  return table;
}

namespace {

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

// |a - b| <= tolerance (|b| + max|b|) everywhere; says where it is worst.
void expect_close(std::span<const float> a, const std::vector<double>& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  const double most = largest(b);
  for (size_t i = 0; i < b.size(); ++i)
    ASSERT_LE(std::abs(a[i] - b[i]), tolerance * (std::abs(b[i]) + most) + 1e-37) << what << ": element " << i << " is " << a[i] << ", reference " << b[i];
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

void check_gradient(const OpCase& row, const std::vector<Shape>& shapes) {
  Tensors inputs = random_inputs(row, shapes);
  const Arrays arrays = in_double(inputs);
  for (Tensor& t : inputs) t = parameter(t);
  Tape tape;
  const Tensor y = row.call(inputs);
  const Tensor dy = uniform(y.shape(), Rng(23).at(row.op), -1, 1);
  ASSERT_GE(tape.length(), 1) << name_of(row, shapes);
  tape.backward(y, dy);
  const Array weights(dy);
  for (size_t k = 0; k < inputs.size(); ++k) {
    std::vector<double> expected;
    for (int64_t i = 0; i < arrays[k].numel(); ++i) {
      Arrays moved = arrays;
      moved[k][i] += row.step;
      const double above = weighted_sum(row.reference(moved), weights);
      moved[k][i] -= 2 * row.step;
      expected.push_back((above - weighted_sum(row.reference(moved), weights)) / (2 * row.step));
    }
    const Tensor dx = tape.grad(inputs[k]);
    ASSERT_EQ(dx.shape(), inputs[k].shape()) << name_of(row, shapes);
    // Central differences in double are themselves good to about step^2; below that nothing is measured.
    expect_close(dx.data(), expected, row.gradient_tolerance, name_of(row, shapes) + ", gradient of input " + std::to_string(k));
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
          const std::string where = name_of(row, shapes) + ": " + std::to_string(special) + " in input " + std::to_string(k) +
                                    " gives " + std::to_string(got) + " at " + std::to_string(i) + ", expected " + std::to_string(e);
          if (std::isnan(e)) ASSERT_TRUE(std::isnan(got)) << where;
          else if (std::isinf(e)) ASSERT_EQ(got, e) << where;
          else if (expected[i] == usual[i])  // out of its reach: the ordinary rule
            ASSERT_LE(std::abs(double{got} - e), row.value_tolerance * (std::abs(e) + most) + 1e-37) << where;
          else ASSERT_LE(std::abs(double{got} - e), 1e-5 * std::abs(e) + 1e-5 * (std::abs(special) < 3 ? 1 : 0) + 1e-36) << where;
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
    for (const auto& shapes : row.shapes) check_special(row, shapes);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryTarget, OpTable, testing::ValuesIn(kernels::available_targets()),
                         [](const auto& info) { return info.param; });

TEST(OpTableRows, EveryRecordedOpHasARow) {
  std::set<std::string> rows, recorded;
  for (const OpCase& row : op_table()) rows.insert(row.op);
  const std::regex call("record\\(\"([^\"]+)\"");
  for (const auto& file : std::filesystem::recursive_directory_iterator(QKV_SOURCE_DIR "/src/qkv")) {
    if (file.path().extension() != ".cpp" && file.path().extension() != ".h") continue;
    std::stringstream source;
    source << std::ifstream(file.path()).rdbuf();
    const std::string text = source.str();
    for (std::sregex_iterator it(text.begin(), text.end(), call), end; it != end; ++it) recorded.insert((*it)[1]);
  }
  ASSERT_FALSE(recorded.empty());
  for (const std::string& op : recorded) EXPECT_TRUE(rows.count(op)) << "the op \"" << op << "\" has no row in the table";
  for (const std::string& op : rows) EXPECT_TRUE(recorded.count(op)) << "the row \"" << op << "\" is of no op";
}

TEST(OpTableRows, EveryExceptionHasAReason) {
  const OpCase plain;
  for (const OpCase& row : op_table()) {
    const bool looser = row.value_tolerance > plain.value_tolerance || row.gradient_tolerance > plain.gradient_tolerance;
    if (looser || row.special != plain.special) {
      EXPECT_FALSE(row.exception.empty()) << row.op << " (" << row.label << ")";
    }
  }
}

}  // namespace qkv::tests
