// The laws of attention, for every scorer and every mask, fused and composed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "qkv/core/parallel.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"
#include "unit/attention/cases.h"

namespace qkv::tests {
namespace {

const std::vector<AttendSizes> kSizes = {
    {.batch = 2, .heads = 2, .key_heads = 2, .queries = 5, .keys = 7, .value_width = 4},
    {.batch = 1, .heads = 4, .key_heads = 2, .queries = 3, .keys = 9, .value_width = 1},
    {.batch = 3, .heads = 3, .key_heads = 1, .queries = 1, .keys = 1, .value_width = 5},
    {.batch = 1, .heads = 1, .key_heads = 1, .queries = 19, .keys = 33, .value_width = 17},
};

std::string name_of(const ScorerCase& scorer, const MaskCase& mask, const AttendSizes& s, AttendPath path) {
  return text(scorer.name, ", ", mask.name, ", ", Shape{s.batch, s.heads, s.key_heads, s.queries, s.keys},
              path == AttendPath::fused ? ", fused" : ", composed");
}

// body(scorer, mask, sizes, options, name) for all of them.
template <class Body>
void for_all(Body&& body) {
  for (const ScorerCase& scorer : scorer_cases())
    for (const MaskCase& mask : mask_cases())
      for (const AttendSizes& sizes : kSizes)
        for (AttendPath path : {AttendPath::fused, AttendPath::composed})
          body(scorer, mask, sizes, AttendOptions{.path = path}, name_of(scorer, mask, sizes, path));
}

Attended run_case(const ScorerCase& scorer, const MaskCase& mask, const AttendSizes& sizes, const QueryKeyValue& x,
                  const AttendOptions& options) {
  return scorer.attend(scorer.parameters, x.q, x.k, x.v, mask.mask(sizes), Run{}, options);
}

// Rows (b, h, j) of x, reordered along the third axis.
Tensor permuted(const Tensor& x, const std::vector<int64_t>& order) {
  Tensor out = Tensor::empty(x.shape());
  const int64_t n = x.size(2), width = x.size(3);
  for (int64_t head = 0; head < x.size(0) * x.size(1); ++head)
    for (int64_t j = 0; j < n; ++j)
      std::memcpy(out.mutable_ptr() + (head * n + j) * width,
                  x.ptr() + (head * n + order[static_cast<size_t>(j)]) * width,
                  static_cast<size_t>(width) * sizeof(float));
  return out;
}

}  // namespace

TEST(AttentionLaws, OutputAndWeightsAreThoseOfTheDefinition) {
  for_all([](const ScorerCase& scorer, const MaskCase& mask, const AttendSizes& sizes, const AttendOptions& options,
             const std::string& name) {
    const QueryKeyValue x = random_inputs(scorer, sizes);
    const Attended got = run_case(scorer, mask, sizes, x, options);
    const PlainResult expected = plain_attention(scorer, mask, sizes, x.q, x.k, x.v);
    EXPECT_EQ(got.weights.path(), options.path) << name;
    EXPECT_EQ(got.weights.empty_rows(), expected.empty_rows) << name;
    expect_near(got.output, expected.output, 1e-5, name);
    expect_near(got.weights.matrix(), expected.weights, 1e-5, name);
  });
}

TEST(AttentionLaws, RowsSumToOneOrSeeNothingAndMaskedWeightsAreExactlyZero) {
  for_all([](const ScorerCase& scorer, const MaskCase& mask, const AttendSizes& s, const AttendOptions& options,
             const std::string& name) {
    const Attended got = run_case(scorer, mask, s, random_inputs(scorer, s), options);
    const Tensor weights = got.weights.matrix();
    int64_t empty = 0;
    for (int64_t r = 0; r < s.batch * s.heads * s.queries; ++r) {
      double sum = 0;
      for (int64_t j = 0; j < s.keys; ++j) {
        const float w = weights.ptr()[r * s.keys + j];
        ASSERT_GE(w, 0) << name;
        if (!mask.sees(s, r / s.queries / s.heads, r / s.queries % s.heads, r % s.queries, j)) {
          ASSERT_EQ(w, 0) << name;
        }
        sum += w;
      }
      if (sum == 0) {
        ++empty;
        for (int64_t c = 0; c < s.value_width; ++c) ASSERT_EQ(got.output.ptr()[r * s.value_width + c], 0) << name;
      } else {
        ASSERT_NEAR(sum, 1, 2e-6) << name;
      }
    }
    ASSERT_EQ(empty, got.weights.empty_rows()) << name;
  });
}

TEST(AttentionLaws, FusedEqualsComposedWithGradientsAndDropout) {
  for (const ScorerCase& scorer : scorer_cases())
    for (const MaskCase& mask : mask_cases())
      for (const AttendSizes& sizes : kSizes)
        for (float dropout : {0.f, 0.3f}) {
          const QueryKeyValue x = random_inputs(scorer, sizes);
          Tensors leaves;
          for (const Tensor& t : {x.q, x.k, x.v}) leaves.push_back(parameter(t));
          for (const Tensor& t : scorer.parameters) leaves.push_back(parameter(t));
          const Tensors parameters(leaves.begin() + 3, leaves.end());
          const qkv::Run run{.training = true, .rng = Rng(5).at("dropout")};
          std::vector<Tensor> gradients[2], outputs;
          for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
            Tape tape;
            const Attended got = scorer.attend(parameters, leaves[0], leaves[1], leaves[2], mask.mask(sizes), run,
                                               {.dropout = dropout, .path = path});
            outputs.push_back(got.output);
            tape.backward(got.output, normal(got.output.shape(), Rng(9)));
            for (const Tensor& leaf : leaves) gradients[path == AttendPath::composed].push_back(tape.grad(leaf));
          }
          const std::string name = name_of(scorer, mask, sizes, AttendPath::fused) + text(", dropout ", dropout);
          expect_near(outputs[0], Array(outputs[1]), 1e-5, name);
          // A difference of larger gradients is only as exact as those: all are compared relative to the largest.
          double most = 0;
          for (const Tensor& g : gradients[1])
            for (float v : g.data()) most = std::max(most, std::abs(double{v}));
          for (size_t n = 0; n < leaves.size(); ++n)
            for (int64_t i = 0; i < leaves[n].numel(); ++i)
              ASSERT_NEAR(gradients[0][n].ptr()[i], gradients[1][n].ptr()[i], scorer.gradient_tolerance * most)
                  << name << ", gradient " << n << " at " << i;
        }
}

TEST(AttentionLaws, PermutingKeysWithTheirValuesChangesNothing) {
  const MaskCase none = mask_cases().front();
  for (const ScorerCase& scorer : scorer_cases())
    for (const AttendSizes& sizes : kSizes) {
      const QueryKeyValue x = random_inputs(scorer, sizes);
      std::vector<int64_t> order(static_cast<size_t>(sizes.keys));
      std::iota(order.begin(), order.end(), int64_t{0});
      std::rotate(order.begin(), order.begin() + sizes.keys / 3, order.end());
      std::reverse(order.begin(), order.begin() + sizes.keys / 2);
      const Attended plain = run_case(scorer, none, sizes, x, {});
      const Attended moved = run_case(scorer, none, sizes, {x.q, permuted(x.k, order), permuted(x.v, order)}, {});
      expect_near(moved.output, Array(plain.output), 2e-6, scorer.name);
    }
}

TEST(AttentionLaws, ForADistanceScoreTheOrderOfWeightsIsTheOrderOfDistances) {
  const AttendSizes sizes = kSizes[3];
  for (const ScorerCase& scorer : scorer_cases()) {
    if (!scorer.by_distance) continue;
    const QueryKeyValue x = random_inputs(scorer, sizes);
    const Tensor weights = run_case(scorer, mask_cases().front(), sizes, x, {}).weights.matrix();
    const auto distance = [&](int64_t i, int64_t j) {
      double sum = 0;
      for (int64_t c = 0; c < scorer.query_width; ++c)
        sum += std::pow(double{x.q.ptr()[i * scorer.query_width + c]} - x.k.ptr()[j * scorer.key_width + c], 2);
      return sum;
    };
    for (int64_t i = 0; i < sizes.queries; ++i)
      for (int64_t j = 0; j < sizes.keys; ++j)
        for (int64_t l = 0; l < sizes.keys; ++l)
          if (distance(i, j) < distance(i, l) * (1 - 1e-5)) {
            ASSERT_GE(weights.at({0, 0, i, j}), weights.at({0, 0, i, l})) << scorer.name;
          }
  }
}

TEST(AttentionLaws, OneKeyReturnsItsValue) {
  const AttendSizes sizes{.batch = 2, .heads = 2, .key_heads = 2, .queries = 3, .keys = 1, .value_width = 6};
  for (const ScorerCase& scorer : scorer_cases()) {
    QueryKeyValue x = random_inputs(scorer, sizes);
    if (scorer.query_width == scorer.key_width) {  // near enough for kernels of bounded support
      for (float* p = x.q.mutable_ptr(); p != x.q.mutable_ptr() + x.q.numel(); ++p) *p *= 0.1f;
      for (float* p = x.k.mutable_ptr(); p != x.k.mutable_ptr() + x.k.numel(); ++p) *p *= 0.1f;
    }
    const Attended got = run_case(scorer, mask_cases().front(), sizes, x, {});
    for (int64_t r = 0; r < 12; ++r)
      for (int64_t c = 0; c < 6; ++c) ASSERT_EQ(got.output.ptr()[r * 6 + c], x.v.ptr()[r / 3 * 6 + c]) << scorer.name;
  }
}

TEST(AttentionLaws, ALaterTokenCannotChangeAnEarlierOutput) {
  const AttendSizes sizes{.batch = 1, .heads = 2, .key_heads = 2, .queries = 19, .keys = 19, .value_width = 5};
  for (const ScorerCase& scorer : scorer_cases())
    for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
      const QueryKeyValue x = random_inputs(scorer, sizes);
      const Mask causal = Mask::causal();
      const Tensor before = scorer.attend(scorer.parameters, x.q, x.k, x.v, causal, {}, {.path = path}).output;
      Tensor k = x.k.copied(), v = x.v.copied();
      for (int64_t h = 0; h < 2; ++h) {  // token 11 changes
        k.mutable_ptr()[(h * 19 + 11) * scorer.key_width] += 0.01f;
        detail::writable(v)[(h * 19 + 11) * 5] = 100;
      }
      const Tensor after = scorer.attend(scorer.parameters, x.q, k, v, causal, {}, {.path = path}).output;
      for (int64_t h = 0; h < 2; ++h)
        expect_same(after.part(h * 19 * 5, {11, 5}), before.part(h * 19 * 5, {11, 5}), scorer.name);
      const bool reached =
          scorer.attend(scorer.parameters, x.q, k, v, causal, {}, {.path = path}).weights.row(0, 0, 15).at({11}) > 1e-6;
      EXPECT_EQ(reached, 0 != std::memcmp(after.ptr() + 15 * 5, before.ptr() + 15 * 5, 5 * sizeof(float)))
          << scorer.name;
    }
}

TEST(AttentionLaws, BatchMatesChangeNothing) {
  const AttendSizes two{.batch = 2, .heads = 2, .key_heads = 1, .queries = 13, .keys = 21, .value_width = 6};
  for (const ScorerCase& scorer : scorer_cases()) {
    const QueryKeyValue x = random_inputs(scorer, two);
    const Tensor together = scorer.attend(scorer.parameters, x.q, x.k, x.v, Mask::none(), {}, {}).output;
    for (int64_t b = 0; b < 2; ++b) {
      const auto alone = [&](const Tensor& t) {
        return t.part(b * t.numel() / 2, {1, t.size(1), t.size(2), t.size(3)});
      };
      expect_same(scorer.attend(scorer.parameters, alone(x.q), alone(x.k), alone(x.v), Mask::none(), {}, {}).output,
                  alone(together), scorer.name);
    }
  }
}

TEST(AttentionLaws, PaddingChangesNothing) {
  const AttendSizes sizes{.batch = 1, .heads = 2, .key_heads = 2, .queries = 9, .keys = 40, .value_width = 6};
  for (const ScorerCase& scorer : scorer_cases()) {
    const QueryKeyValue x = random_inputs(scorer, sizes);
    const int64_t n = 23;
    const auto cut = [&](const Tensor& t) {
      Tensor out = Tensor::empty({1, 2, n, t.size(3)});
      for (int64_t h = 0; h < 2; ++h)
        std::memcpy(out.mutable_ptr() + h * n * t.size(3), t.ptr() + h * 40 * t.size(3),
                    static_cast<size_t>(n * t.size(3)) * sizeof(float));
      return out;
    };
    const Ids length({1}, {23});
    const Tensor padded = scorer.attend(scorer.parameters, x.q, x.k, x.v, Mask::valid_lens(length), {}, {}).output;
    const Tensor trimmed =
        scorer.attend(scorer.parameters, x.q, cut(x.k), cut(x.v), Mask::valid_lens(length), {}, {}).output;
    expect_same(padded, trimmed, scorer.name);
  }
}

TEST(AttentionLaws, TheNumberOfThreadsChangesNoBit) {
  const AttendSizes sizes{.batch = 3, .heads = 4, .key_heads = 2, .queries = 70, .keys = 90, .value_width = 20};
  const qkv_test::ThreadsScope threads_scope;
  for (const ScorerCase& scorer : scorer_cases())
    for (AttendPath path : {AttendPath::fused, AttendPath::composed}) {
      const QueryKeyValue x = random_inputs(scorer, sizes);
      std::vector<Tensors> results;
      for (int count : {1, 2, 8}) {
        set_threads(count);
        Tensors leaves, got;
        for (const Tensor& t : {x.q, x.k, x.v}) leaves.push_back(parameter(t));
        for (const Tensor& t : scorer.parameters) leaves.push_back(parameter(t));
        Tape tape;
        const Attended a = scorer.attend(Tensors(leaves.begin() + 3, leaves.end()), leaves[0], leaves[1], leaves[2],
                                         Mask::causal(20), qkv::Run{.training = true}, {.dropout = 0.1f, .path = path});
        tape.backward(a.output, normal(a.output.shape(), Rng(2)));
        got = {a.output, a.weights.entropy(), a.weights.column_mass()};
        for (const Tensor& leaf : leaves) got.push_back(tape.grad(leaf));
        results.push_back(got);
      }
      for (size_t n = 0; n < results[0].size(); ++n)
        for (size_t c : {1u, 2u}) expect_same(results[c][n], results[0][n], text(scorer.name, ", result ", n));
    }
}

}  // namespace qkv::tests
