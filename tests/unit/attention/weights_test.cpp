// Weights: rows, matrix, top-k, entropy and column mass against the definition.
#include "qkv/attention/weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "unit/attention/cases.h"

namespace qkv::tests {

TEST(Weights, RowsEntropyAndColumnMassAreThoseOfTheDefinition) {
  const AttendSizes s{.batch = 2, .heads = 4, .key_heads = 2, .queries = 11, .keys = 37, .value_width = 3};
  for (const ScorerCase& scorer : scorer_cases())
    for (const MaskCase& mask : mask_cases())
      for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
        const QueryKeyValue x = random_inputs(scorer, s);
        const Attended a = scorer.attend(scorer.parameters, x.q, x.k, x.v, mask.mask(s), {}, {.path = path});
        const PlainResult plain = plain_attention(scorer, mask, s, x.q, x.k, x.v);
        const std::string name = scorer.name + ", " + mask.name;
        Array entropy(Shape{2, 4, 11}), mass(Shape{2, 4, 37});
        for (int64_t r = 0; r < 2 * 4 * 11; ++r) {
          Array row(Shape{37});
          for (int64_t j = 0; j < 37; ++j) {
            const double w = row[j] = plain.weights[r * 37 + j];
            if (w > 0) entropy[r] -= w * std::log(w);
            mass[r / 11 * 37 + j] += w;
          }
          if (r % 17 == 0) expect_near(a.weights.row(r / 44, r / 11 % 4, r % 11), row, 2e-6, name);
        }
        expect_near(a.weights.entropy(), entropy, 1e-5, name + ", entropy");
        expect_near(a.weights.column_mass(), mass, 1e-5, name + ", column mass");
      }
}

TEST(Weights, AHeadIsItsPartOfTheMatrix) {
  const Tensor q = uniform({2, 3, 5, 4}, Rng(1), -2, 2), k = uniform({2, 3, 7, 4}, Rng(2), -2, 2);
  for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
    const auto [output, weights] = attend(ScaledDot{}, q, k, k, Mask::causal(), {}, {.path = path});
    EXPECT_EQ(weights.path(), path);
    const Tensor whole = weights.matrix();
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t h = 0; h < 3; ++h)
        expect_same(weights.head(b, h), whole.part((b * 3 + h) * 35, {5, 7}), "head " + std::to_string(b * 3 + h));
  }
}

TEST(Weights, TopKGivesTheLargestFirstAndEarlierKeysAmongEquals) {
  const Tensor keys({5, 1}, {1, 3, 3, 0, 2}), one = ones({1, 1});
  const Weights weights = attend(Dot{}, one, keys, keys).weights;
  std::vector<int64_t> order;
  for (const KeyWeight& w : weights.top_k(0, 0, 0, 4)) {
    order.push_back(w.key);
    EXPECT_EQ(w.weight, weights.row(0, 0, 0).at({w.key}));
  }
  EXPECT_EQ(order, (std::vector<int64_t>{1, 2, 4, 0}));
  EXPECT_EQ(weights.top_k(0, 0, 0, 99).size(), 5u);
  EXPECT_TRUE(weights.top_k(0, 0, 0, 0).empty());
}

TEST(Weights, RefuseAMatrixThatIsTooLargeAndRowsAndHeadsThatAreNotThere) {
  const Tensor x = zeros({10, 2});
  const Weights weights = attend(Dot{}, x, x, x).weights;
  const auto error_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of([&] { weights.matrix(399); }),
            "[weights] the whole matrix (1, 1, 10, 10) takes 400 bytes, the limit is 399; use row() instead");
  EXPECT_EQ(error_of([&] { weights.matrix(400); }), "no error");
  EXPECT_EQ(error_of([&] { weights.row(0, 1, 2); }), "[weights] no row (0, 1, 2) in weights (1, 1, 10, 10)");
  EXPECT_EQ(error_of([&] { weights.top_k(0, 0, 0, -1); }), "[weights] cannot list -1 keys");
}

TEST(Weights, OutliveTheTensorsAndTheTape) {
  Weights weights;
  {
    const Tensor q = normal({4, 3}, Rng(1)), k = normal({6, 3}, Rng(2));
    weights = attend(ScaledDot{}, q, k, k, Mask::causal(1)).weights;
  }
  float sum = 0;
  for (float w : weights.row(0, 0, 2).data()) sum += w;
  EXPECT_NEAR(sum, 1, 1e-6);
}

}  // namespace qkv::tests
