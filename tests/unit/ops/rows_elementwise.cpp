// Op-table rows: functions of one element, and arithmetic under broadcasting.
#include <cmath>
#include <numbers>

#include "qkv/ops/elementwise.h"
#include "qkv/ops/recompute.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

const std::vector<std::vector<Shape>> kOneInput = {{{3, 5}}, {{0}}, {{1}},        {{}},     {{7}},
                                                   {{8}},    {{9}}, {{2, 3, 11}}, {{33001}}};

OpCase unary(std::string op, Tensor (*call)(const Tensor&), double (*reference)(double),
             std::pair<float, float> range = {-2, 2}) {
  return {.op = op,
          .label = "plain",
          .shapes = kOneInput,
          .call = [=](const Tensors& x) { return call(x[0]); },
          .reference =
              [=](const Arrays& x) {
                Array y = x[0];
                for (double& v : y.v) v = reference(v);
                return y;
              },
          .ranges = {range}};
}

// Element i of the broadcast of x to shape.
double spread(const Array& x, const Shape& shape, int64_t i) {
  int64_t offset = 0, step = 1;
  for (int axis = 1; axis <= x.shape.rank(); ++axis) {
    int64_t at = i;
    for (int inner = 1; inner < axis; ++inner) at /= shape[-inner];
    offset += (x.shape[-axis] == 1 ? 0 : at % shape[-axis]) * step;
    step *= x.shape[-axis];
  }
  return x[offset];
}

OpCase binary(std::string op, Tensor (*call)(const Tensor&, const Tensor&), double (*reference)(double, double),
              std::pair<float, float> second = {-2, 2}) {
  return {.op = op,
          .label = "broadcast",
          .shapes = {{{3, 5}, {3, 5}},
                     {{3, 5}, {5}},
                     {{5}, {3, 5}},
                     {{3, 1}, {1, 9}},
                     {{}, {7}},
                     {{7}, {1}},
                     {{2, 3, 1, 8}, {2, 1, 4, 8}},
                     {{0, 3}, {1, 3}},
                     {{3, 0}, {3, 1}},
                     {{1}, {1}},
                     {{}, {}},
                     {{4, 1, 3}, {2, 1}},
                     {{2, 300}, {2, 1}},
                     {{33001}, {33001}},
                     {{130, 257}, {257}},
                     {{130, 257}, {130, 1}}},
          .call = [=](const Tensors& x) { return call(x[0], x[1]); },
          .reference =
              [=](const Arrays& x) {
                Array y(broadcast("reference", x[0].shape, x[1].shape));
                for (int64_t i = 0; i < y.numel(); ++i)
                  y[i] = reference(spread(x[0], y.shape, i), spread(x[1], y.shape, i));
                return y;
              },
          .ranges = {{-2, 2}, second}};
}

}  // namespace

double gelu_by_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

std::vector<OpCase> elementwise_rows() {
  std::vector<OpCase> rows = {
      unary("neg", neg, [](double x) { return -x; }),
      unary("abs", abs, [](double x) { return std::abs(x); }, {0.1f, 2}),
      unary("exp", exp, [](double x) { return std::exp(x); }),
      unary("log", log, [](double x) { return std::log(x); }, {0.5f, 4}),
      unary("sqrt", sqrt, [](double x) { return std::sqrt(x); }, {0.5f, 4}),
      unary("sin", sin, [](double x) { return std::sin(x); }),
      unary("cos", cos, [](double x) { return std::cos(x); }),
      unary("tanh", tanh, [](double x) { return std::tanh(x); }),
      unary("sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }),
      unary("relu", relu, [](double x) { return x < 0 ? 0 : x; }, {0.1f, 2}),
      unary("gelu", gelu, [](double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }),
      unary("gelu", gelu, [](double x) { return 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }, {-6, 6}),
      unary("gelu_tanh", gelu_tanh, gelu_by_tanh),
      unary("gelu_tanh", gelu_tanh, gelu_by_tanh, {-6, 6}),
      unary("silu", silu, [](double x) { return x / (1 + std::exp(-x)); }),
      unary("silu", silu, [](double x) { return x / (1 + std::exp(-x)); }, {-20, 20}),
      unary(
          "clamp", [](const Tensor& x) { return clamp(x, -1, 0.5f); },
          [](double x) { return x < -1    ? -1
                                : x > 0.5 ? 0.5
                                          : x; }),
      unary("abs", abs, [](double x) { return std::abs(x); }, {-2, -0.1f}),
      unary("relu", relu, [](double x) { return x < 0 ? 0 : x; }, {-2, -0.1f}),
      unary(
          "scale", [](const Tensor& x) { return scale(x, -1.5f); }, [](double x) { return -1.5 * x; }),
      unary(
          "shift", [](const Tensor& x) { return shift(x, 0.25f); }, [](double x) { return x + 0.25; }),
      unary(
          "pow", [](const Tensor& x) { return pow(x, 0.75f); }, [](double x) { return std::pow(x, 0.75); }, {0.5f, 3}),
      unary(
          "pow", [](const Tensor& x) { return pow(x, 2); }, [](double x) { return x * x; }),
      unary(
          "pow", [](const Tensor& x) { return pow(x, 0); }, [](double) { return 1.0; }),
      unary(
          "pow", [](const Tensor& x) { return pow(x, -1); }, [](double x) { return 1 / x; }, {0.5f, 3}),
  };
  // Wide ranges, many elements: slopes are compared relative to the largest one; tanh is flat nearly everywhere.
  for (OpCase row : {unary("exp", exp, [](double x) { return std::exp(x); }, {-80, 80}),
                     unary("log", log, [](double x) { return std::log(x); }, {0.05f, 50}),
                     unary("sin", sin, [](double x) { return std::sin(x); }, {-300, 300}),
                     unary("cos", cos, [](double x) { return std::cos(x); }, {-300, 300}),
                     unary("tanh", tanh, [](double x) { return std::tanh(x); }, {-20, 20}),
                     unary("sigmoid", sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, {-30, 30})}) {
    row.label = "wide";
    row.shapes = {{{211}}};
    rows.push_back(row);
  }
  return rows;
}

std::vector<OpCase> broadcast_rows() {
  return {binary("add", add, [](double a, double b) { return a + b; }),
          binary("sub", sub, [](double a, double b) { return a - b; }),
          binary("mul", mul, [](double a, double b) { return a * b; }),
          binary("div", div, [](double a, double b) { return a / b; }, {0.5f, 2}),
          binary(
              "recomputed",
              [](const Tensor& a, const Tensor& b) {
                return recomputed({a, b}, {}, [](std::span<const Tensor> x, Pass) { return mul(sin(x[0]), x[1]); });
              },
              [](double a, double b) { return std::sin(a) * b; })};
}

}  // namespace qkv::tests
