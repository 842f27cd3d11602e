// Gradients of attention against central differences of its definition, in double.
#include <gtest/gtest.h>

#include <cmath>

#include "qkv/attention/scorers.h"
#include "qkv/tensor/tape.h"
#include "unit/attention/cases.h"

namespace qkv::tests {
namespace {

double weighted(const Array& y, const Array& weights) {
  double sum = 0;
  for (int64_t i = 0; i < y.numel(); ++i) sum += y[i] * weights[i];
  return sum;
}

// d f / d x[n] for every element, by central differences.
std::vector<double> differences(Array& x, const std::function<double()>& f, double step = 1e-5) {
  std::vector<double> out;
  for (double& element : x.v) {
    const double before = element;
    element = before + step;
    const double above = f();
    element = before - step;
    out.push_back((above - f()) / (2 * step));
    element = before;
  }
  return out;
}

void expect_gradient(const Tensor& got, const std::vector<double>& expected, double largest, double tolerance,
                     const std::string& what) {
  ASSERT_EQ(got.numel(), static_cast<int64_t>(expected.size())) << what;
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_LE(std::abs(got.ptr()[i] - expected[i]), tolerance * (std::abs(expected[i]) + largest))
        << what << ": element " << i << " is " << got.ptr()[i] << ", expected " << expected[i];
}

void check_gradients(const ScorerCase& scorer, const MaskCase& mask, const AttendSizes& sizes, AttendPath path) {
  const QueryKeyValue x = random_inputs(scorer, sizes, 3);
  Tensors leaves;
  for (const Tensor& t : {x.q, x.k, x.v}) leaves.push_back(parameter(t));
  for (const Tensor& t : scorer.parameters) leaves.push_back(parameter(t));
  Arrays arrays;
  for (const Tensor& t : leaves) arrays.emplace_back(t);

  Tape tape;
  const Tensor y = scorer
                       .attend(Tensors(leaves.begin() + 3, leaves.end()), leaves[0], leaves[1], leaves[2],
                               mask.mask(sizes), {}, {.path = path})
                       .output;
  const Tensor dy = normal(y.shape(), Rng(8));
  tape.backward(y, dy);

  const auto value = [&] {
    std::function<double(int64_t, int64_t, int64_t, int64_t)> bias;
    if (mask.bias) bias = [&](int64_t b, int64_t h, int64_t i, int64_t j) { return mask.bias(sizes, b, h, i, j); };
    return weighted(plain_attention(
                        scorer.score, Arrays(arrays.begin() + 3, arrays.end()), arrays[0], arrays[1], arrays[2],
                        [&](int64_t b, int64_t h, int64_t i, int64_t j) { return mask.sees(sizes, b, h, i, j); }, bias)
                        .output,
                    Array(dy));
  };
  std::vector<std::vector<double>> expected;
  double largest = 0;
  for (Array& a : arrays) {
    expected.push_back(differences(a, value));
    for (double g : expected.back()) largest = std::max(largest, std::abs(g));
  }
  for (size_t n = 0; n < leaves.size(); ++n)
    expect_gradient(
        tape.grad(leaves[n]), expected[n], largest, scorer.gradient_tolerance,
        text(scorer.name, ", ", mask.name, path == AttendPath::fused ? ", fused" : ", composed", ", gradient ", n));
}

}  // namespace

TEST(AttentionGradients, OfInputsAndParametersAreThoseOfTheDefinition) {
  for (const ScorerCase& scorer : scorer_cases())
    for (const MaskCase& mask : mask_cases())
      for (AttendPath path : {AttendPath::fused, AttendPath::composed})
        check_gradients(scorer, mask,
                        {.batch = 2, .heads = 2, .key_heads = 1, .queries = 3, .keys = 4, .value_width = 2}, path);
}

TEST(AttentionGradients, OfALearnedBiasAreThoseOfTheDefinitionInEveryShape) {
  const AttendSizes s{.batch = 2, .heads = 2, .key_heads = 2, .queries = 3, .keys = 5, .value_width = 2};
  for (const ScorerCase& scorer : scorer_cases())
    for (const Shape& shape :
         {Shape{3, 5}, Shape{2, 1, 3, 5}, Shape{1, 2, 3, 5}, Shape{2, 2, 3, 5}, Shape{1, 2, 1, 5}, Shape{2, 1, 3, 1}})
      for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
        const QueryKeyValue x = random_inputs(scorer, s);
        const Tensor bias = parameter(normal(shape, Rng(4)));
        Tape tape;
        const Tensor y =
            scorer.attend(scorer.parameters, x.q, x.k, x.v, Mask::bias(bias) & Mask::causal(2), {}, {.path = path})
                .output;
        const Tensor dy = normal(y.shape(), Rng(8));
        tape.backward(y, dy);
        Array moved(bias);
        Arrays parameters;
        for (const Tensor& p : scorer.parameters) parameters.emplace_back(p);
        const Shape wide = shape.rank() == 2 ? Shape{1, 1, shape[0], shape[1]} : shape;
        const auto value = [&] {
          return weighted(plain_attention(
                              scorer.score, parameters, Array(x.q), Array(x.k), Array(x.v),
                              [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i + 2; },
                              [&](int64_t b, int64_t h, int64_t i, int64_t j) {
                                const int64_t at[4] = {b, h, i, j};
                                int64_t n = 0;
                                for (int axis = 0; axis < 4; ++axis)
                                  n = n * wide[axis] + (wide[axis] == 1 ? 0 : at[axis]);
                                return moved[n];
                              })
                              .output,
                          Array(dy));
        };
        const std::vector<double> expected = differences(moved, value);
        expect_gradient(tape.grad(bias), expected, 1, 1e-5, text(scorer.name, ", bias ", shape));
      }
}

TEST(AttentionGradients, OfALearnedRelativeBiasAreThoseOfTheDefinition) {
  for (const auto& [queries, keys] : {std::pair<int64_t, int64_t>{3, 5}, {5, 2}, {1, 4}, {1, 1}})
    for (const ScorerCase& scorer : scorer_cases())
      for (int64_t heads : {1, 2})
        for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
          const AttendSizes s{
              .batch = 2, .heads = 2, .key_heads = 1, .queries = queries, .keys = keys, .value_width = 2};
          const QueryKeyValue x = random_inputs(scorer, s);
          const int64_t count = queries + keys - 1;
          const Tensor diagonals = parameter(normal({heads, count}, Rng(4))), bias = normal({queries, keys}, Rng(5));
          Tape tape;
          const Tensor y =
              scorer
                  .attend(scorer.parameters, x.q, x.k, x.v,
                          Mask::relative(diagonals) & Mask::causal(2) & Mask::bias(bias) & Mask::relative(diagonals),
                          {}, {.path = path})
                  .output;
          const Tensor dy = normal(y.shape(), Rng(8));
          tape.backward(y, dy);
          Array moved(diagonals);
          Arrays parameters;
          for (const Tensor& p : scorer.parameters) parameters.emplace_back(p);
          const auto value = [&] {
            return weighted(plain_attention(
                                scorer.score, parameters, Array(x.q), Array(x.k), Array(x.v),
                                [](int64_t, int64_t, int64_t i, int64_t j) { return j <= i + 2; },
                                [&](int64_t, int64_t h, int64_t i, int64_t j) {
                                  const int64_t head = heads == 1 ? 0 : h;
                                  return 2 * moved[head * count + j - i + s.queries - 1] +
                                         double{bias.ptr()[i * s.keys + j]};
                                })
                                .output,
                            Array(dy));
          };
          expect_gradient(tape.grad(diagonals), differences(moved, value), 1, 1e-5,
                          text(scorer.name, ", ", queries, " x ", keys));
        }
}

TEST(AttentionGradients, OfAWidthAreExactFarFromTheOrigin) {
  // x in [1000, 1001]: through q w and k w the gradient would be a difference of numbers a million times larger.
  Tensor x = uniform({1, 1, 40, 1}, Rng(1), 1000, 1001);
  const Tensor y = normal({1, 1, 40, 1}, Rng(2)), width = parameter(Tensor({1}, {5}));
  Tape tape;
  tape.backward(attend(Gaussian{width}, x, x, y).output, ones({1, 1, 40, 1}));
  Arrays parameters{Array(width)};
  const auto value = [&] {
    const auto score = [](const Arrays& p, const double* q, const double* k) {
      return -std::pow(p[0][0] * (*q - *k), 2) / 2;
    };
    return weighted(plain_attention(
                        score, parameters, Array(x), Array(x), Array(y), [](auto...) { return true; }, nullptr)
                        .output,
                    Array(Shape{1, 1, 40, 1}, 1));
  };
  const double expected = differences(parameters[0], value)[0];
  EXPECT_NEAR(tape.grad(width).item(), expected, 1e-5 * std::abs(expected));
}

TEST(AttentionGradients, OfTheQueryOfAVectorSumAreExactlyZero) {
  const Tensor q = parameter(normal({3, 4}, Rng(1)));
  Tape tape;
  const Attended a = attend(VectorSum{}, q, normal({6, 4}, Rng(2)), parameter(normal({6, 2}, Rng(3))));
  tape.backward(a.output, ones({3, 2}));
  for (float g : tape.grad(q).data()) EXPECT_EQ(g, 0);
  expect_same(a.weights.row(0, 0, 0), a.weights.row(0, 0, 2), "two queries");
}

}  // namespace qkv::tests
