// Masks: what they show, how they compose, what they refuse; and masked softmax.
#include "qkv/attention/mask.h"

#include <gtest/gtest.h>

#include <cmath>

#include "qkv/attention/masked_softmax.h"
#include "qkv/tensor/tape.h"
#include "support/files.h"
#include "unit/attention/cases.h"

namespace qkv::tests {
namespace {

using qkv_test::error_of;

std::string error_of_plan(const Mask& mask, const MaskSizes& sizes) {
  return error_of([&] { mask.plan("attend", sizes); });
}

}  // namespace

TEST(Mask, EveryKindShowsWhatItsNameSays) {
  for (const MaskCase& c : mask_cases())
    for (const AttendSizes& s : {AttendSizes{}, AttendSizes{.batch = 3, .heads = 1, .queries = 9, .keys = 4}}) {
      const AttentionPlan plan = c.mask(s).plan("attend", {s.batch, s.heads, s.queries, s.keys});
      for (int64_t b = 0; b < s.batch; ++b)
        for (int64_t h = 0; h < s.heads; ++h)
          for (int64_t i = 0; i < s.queries; ++i) {
            const PlanRow row = plan.row(b, h, i, s.keys);
            for (int64_t j = 0; j < s.keys; ++j) {
              ASSERT_EQ(row.sees(j), c.sees(s, b, h, i, j)) << c.name << " " << b << h << i << j;
              if (c.bias && row.sees(j)) {
                ASSERT_FLOAT_EQ(row.added(j), static_cast<float>(c.bias(s, b, h, i, j))) << c.name;
              }
            }
          }
    }
}

TEST(Mask, AndShowsWhatBothShow) {
  const AttendSizes s{.batch = 2, .heads = 2, .queries = 6, .keys = 7};
  const MaskSizes sizes{2, 2, 6, 7};
  for (const MaskCase& a : mask_cases())
    for (const MaskCase& c : mask_cases()) {
      if (a.name == "all of them" || c.name == "all of them") continue;
      const AttentionPlan plan = (a.mask(s) & c.mask(s)).plan("attend", sizes);
      for (int64_t r = 0; r < 2 * 2 * 6; ++r)
        for (int64_t j = 0; j < 7; ++j)
          ASSERT_EQ(plan.row(r / 12, r / 6 % 2, r % 6, 7).sees(j),
                    a.sees(s, r / 12, r / 6 % 2, r % 6, j) && c.sees(s, r / 12, r / 6 % 2, r % 6, j))
              << a.name << " & " << c.name;
    }
}

TEST(Mask, NoneIsTheNeutralOne) {
  EXPECT_TRUE((Mask::none() & Mask::none()).is_none());
  EXPECT_FALSE((Mask::none() & Mask::causal()).is_none());
  const AttentionPlan plan = Mask::none().plan("attend", {2, 2, 3, 4});
  EXPECT_FALSE(plan.begin.defined() || plan.keep.bytes || plan.bias.defined() || plan.relative.defined());
  EXPECT_FALSE(Mask::relative(zeros({1, 1})).is_none());
}

TEST(Mask, ALengthBeyondTheKeysMeansAll) {
  const AttentionPlan plan = Mask::valid_lens(Ids({1}, {99})).plan("attend", {1, 1, 2, 4});
  EXPECT_EQ(plan.end.data()[0], 4);
}

TEST(Mask, HeadsAsBatchShowsTheSame) {
  const AttendSizes s{.batch = 2, .heads = 3, .queries = 4, .keys = 5};
  for (const MaskCase& c : mask_cases()) {
    const AttentionPlan plan = c.mask(s).plan("attend", {2, 3, 4, 5}), folded = plan.heads_as_batch(2, 3);
    for (int64_t r = 0; r < 2 * 3 * 4; ++r)
      for (int64_t j = 0; j < 5; ++j) {
        const PlanRow a = plan.row(r / 12, r / 4 % 3, r % 4, 5), f = folded.row(r / 4, 0, r % 4, 5);
        ASSERT_EQ(a.sees(j), f.sees(j)) << c.name;
        ASSERT_EQ(a.added(j), f.added(j)) << c.name;
      }
  }
}

TEST(Mask, RefusesWhatDoesNotFitAndNamesBothShapes) {
  const MaskSizes sizes{2, 4, 3, 5};
  EXPECT_EQ(error_of_plan(Mask::valid_lens(Ids({3}, {1, 2, 3})), sizes),
            "[attend] lengths do not fit the weights (B, H, Lq, Lk): (3,) and (2, 4, 3, 5)");
  EXPECT_EQ(error_of_plan(Mask::valid_lens(Ids({1, 3}, {1, 2, 3})), sizes),
            "[attend] lengths do not fit the weights (B, H, Lq, Lk): (1, 3) and (2, 4, 3, 5)");
  EXPECT_EQ(error_of_plan(Mask::prefix(Ids({1}, {1})), sizes),
            "[attend] lengths do not fit the weights (B, H, Lq, Lk): (1,) and (2, 4, 3, 5)");
  EXPECT_EQ(error_of_plan(Mask::keep(ones({5, 3})), sizes),
            "[attend] a keep mask does not fit the weights (B, H, Lq, Lk): (5, 3) and (2, 4, 3, 5)");
  EXPECT_EQ(error_of_plan(Mask::bias(ones({2, 2, 3, 5})), sizes),
            "[attend] a bias does not fit the weights (B, H, Lq, Lk): (2, 2, 3, 5) and (2, 4, 3, 5)");
  EXPECT_EQ(error_of_plan(Mask::bias(ones({2, 3, 5})), sizes),
            "[attend] a bias has three axes although there are heads: expected (B, 1 or H, Lq, Lk), got (2, 3, 5)");
  EXPECT_EQ(error_of_plan(Mask::bias(ones({2, 3, 5})), {2, 1, 3, 5, 3}), "no error");
  for (const Shape& s : {Shape{4, 8}, Shape{2, 7}}) {
    EXPECT_EQ(error_of_plan(Mask::relative(ones(s)), sizes),
              text("[attend] a relative bias (1 or H, Lq + Lk - 1) does not fit the weights (B, H, Lq, Lk): ", s,
                   " and (2, 4, 3, 5)"));
  }
  EXPECT_EQ(error_of([] { Mask::relative(ones({7})); }),
            "[mask] relative takes diagonals (1 or H, Lq + Lk - 1), got (7,)");
  EXPECT_EQ(error_of([] {
              Mask::relative(ones({1, 1})) & Mask::relative(ones({1, 7}));
            }),
            "[mask] relative biases of different lengths: (1, 1) & (1, 7)");
  EXPECT_EQ(error_of([] { Mask::valid_lens(Ids({2}, {1, -1})); }), "[mask] a valid length cannot be negative, got -1");
  EXPECT_EQ(error_of([] { Mask::valid_lens(Ids({}, {1})); }), "[mask] valid_lens takes lengths (B) or (B, Lq), got ()");
  EXPECT_EQ(error_of([] { Mask::prefix(Ids({1}, {-2})); }), "[mask] a prefix length cannot be negative, got -2");
  EXPECT_EQ(error_of([] { Mask::window(-1, 2); }), "[mask] window sizes must be 0 or more, got -1 and 2");
  EXPECT_EQ(error_of([] { Mask::keep(Tensor({1, 2}, {1, 0.5f})); }), "[mask] keep takes zeros and ones, got 0.5");
  EXPECT_EQ(error_of([] { Mask::drop(ones({3})); }),
            "[mask] drop takes (Lq, Lk), (B, Lq, Lk) or (B, H, Lq, Lk), got (3,)");
  EXPECT_EQ(error_of([] {
              Mask::bias(ones({2, 3, 5})) & Mask::bias(ones({2, 1, 3, 5}));
            }),
            "[mask] biases with and without a head axis: (2, 3, 5) & (2, 1, 3, 5)");
  EXPECT_EQ(error_of([] {
              Mask::valid_lens(Ids({1}, {1})) & Mask::valid_lens(Ids({2}, {1, 1}));
            }),
            "[mask] valid lengths of different shapes: (1,) & (2,)");
}

TEST(MaskedSoftmax, TheBooksDemos) {
  const Tensor x = uniform({2, 2, 4}, Rng(1));
  for (const Ids& lengths : {Ids({2}, {2, 3}), Ids({2, 2}, {1, 3, 2, 4})}) {
    const Tensor y = masked_softmax(x, lengths);
    for (int64_t r = 0; r < 4; ++r) {
      const int64_t n = lengths.data()[static_cast<size_t>(lengths.rank() == 1 ? r / 2 : r)];
      float sum = 0;
      for (int64_t j = 0; j < 4; ++j) {
        sum += y.ptr()[r * 4 + j];
        if (j >= n) {
          EXPECT_EQ(y.ptr()[r * 4 + j], 0);
        }
      }
      EXPECT_FLOAT_EQ(sum, 1);
      if (n == 1) {
        EXPECT_EQ(y.ptr()[r * 4], 1);
      }
    }
    expect_near(book_masked_softmax(x, lengths), Array(y), 1e-6, "the book's way agrees where lengths are positive");
  }
}

TEST(MaskedSoftmax, LengthZeroGivesZerosWhereTheBookGivesUniformWeights) {
  const Tensor x = uniform({2, 1, 4}, Rng(1));
  const Ids lengths({2}, {0, 4});
  expect_same(masked_softmax(x, lengths).part(0, {4}), zeros({4}), "zeros");
  expect_same(book_masked_softmax(x, lengths).part(0, {4}), full({4}, 0.25f), "uniform");
}

TEST(MaskedSoftmax, ScoresNearMinusAMillionAreNoTrouble) {
  const Tensor x({1, 1, 3}, {-1e6f, -1e6f - 1, 5});
  const Tensor y = masked_softmax(x, Ids({1}, {2}));
  EXPECT_NEAR(y.ptr()[0], 1 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_EQ(y.ptr()[2], 0);
  EXPECT_GT(book_masked_softmax(x, Ids({1}, {2})).ptr()[2],
            0.3f);  // in the book's version the masked entry gets weight
}

TEST(MaskedSoftmax, NanBeyondTheLengthStaysThereForwardAndBackward) {
  const Tensor x = parameter(Tensor({1, 1, 3}, {1, 2, std::nanf("")}));
  Tape tape;
  const Tensor y = masked_softmax(x, Ids({1}, {2}));
  tape.backward(y, Tensor({1, 1, 3}, {1, 0, std::nanf("")}));
  EXPECT_EQ(y.ptr()[2], 0);
  EXPECT_FLOAT_EQ(y.ptr()[0] + y.ptr()[1], 1);
  EXPECT_EQ(tape.grad(x).ptr()[2], 0);
  EXPECT_FLOAT_EQ(tape.grad(x).ptr()[0], y.ptr()[0] * y.ptr()[1]);
}

TEST(MaskedSoftmax, Errors) {
  EXPECT_EQ(error_of([] {
              masked_softmax(zeros({2, 3}), Ids({2}, {1, 1}));
            }),
            "[masked_softmax] expected scores (B, n, m), got (2, 3)");
  EXPECT_EQ(error_of([] {
              masked_softmax(zeros({2, 3, 4}), Ids({3}, {1, 1, 1}));
            }),
            "[masked_softmax] lengths do not fit the weights (B, H, Lq, Lk): (3,) and (2, 1, 3, 4)");
}

}  // namespace qkv::tests
