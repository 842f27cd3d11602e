// Every kind of attention for long inputs against its definition in double, with gradients, edges, threads and padding.
#include "qkv/attention/long_attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"
#include "support/threads.h"
#include "unit/attention/cases.h"
#include "unit/ops/expect_error.h"

namespace qkv::tests {
namespace {

using Matrix = std::vector<std::vector<double>>;

struct Kind {
  std::string name;
  AttentionKindOptions options;
};

std::vector<Kind> kinds() {
  return {{"window", {.kind = AttentionKind::window, .window = 2}},
          {"window, global", {.kind = AttentionKind::window, .window = 2, .global_tokens = 2}},
          {"dilated", {.kind = AttentionKind::dilated, .window = 2, .dilation = 3}},
          {"dilated, global", {.kind = AttentionKind::dilated, .window = 1, .dilation = 2, .global_tokens = 1}},
          {"block-sparse", {.kind = AttentionKind::block_sparse, .global_tokens = 1, .block = 2, .random_blocks = 2}},
          {"linear", {.kind = AttentionKind::linear}},
          {"performer", {.kind = AttentionKind::performer, .features = 11, .seed = 5}},
          {"linformer", {.kind = AttentionKind::linformer, .rank = 3, .positions = 40}},
          {"nystrom", {.kind = AttentionKind::nystrom, .landmarks = 4}}};
}

Matrix matrix(int64_t rows, int64_t columns) {
  return Matrix(static_cast<size_t>(rows), std::vector<double>(static_cast<size_t>(columns)));
}
Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c = matrix(std::ssize(a), std::ssize(b[0]));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t k = 0; k < b.size(); ++k)
      for (size_t j = 0; j < b[0].size(); ++j) c[i][j] += a[i][k] * b[k][j];
  return c;
}
Matrix transposed(const Matrix& a) {
  Matrix c = matrix(std::ssize(a[0]), std::ssize(a));
  for (size_t i = 0; i < a.size(); ++i)
    for (size_t j = 0; j < a[0].size(); ++j) c[j][i] = a[i][j];
  return c;
}
Matrix softmax_rows(const Matrix& a, double scale) {
  Matrix c = a;
  for (auto& row : c) {
    double sum = 0;
    for (double& x : row) sum += x = std::exp(scale * x);
    for (double& x : row) x /= sum;
  }
  return c;
}

// One head of (B, L, H, D).
Matrix head_of(const Array& x, int64_t b, int64_t h, int64_t length) {
  const int64_t L = x.shape[1], H = x.shape[2], D = x.shape[3];
  Matrix out = matrix(length, D);
  for (int64_t i = 0; i < length; ++i)
    for (int64_t c = 0; c < D; ++c)
      out[static_cast<size_t>(i)][static_cast<size_t>(c)] = x[((b * L + i) * H + h) * D + c];
  return out;
}

// Which keys a sparse kind shows, in its own words.
bool sees(const AttentionKindOptions& o, int64_t i, int64_t j, int64_t length, bool causal) {
  if (j >= length || (causal && j > i)) return false;
  if (i < o.global_tokens || j < o.global_tokens) return true;
  const int64_t distance = std::abs(i - j);
  if (o.kind == AttentionKind::window) return distance <= o.window;
  if (o.kind == AttentionKind::dilated) return distance % o.dilation == 0 && distance / o.dilation <= o.window;
  if (std::abs(i / o.block - j / o.block) <= 1) return true;
  const int64_t own = i / o.block, others = causal ? own - 1 : (length + o.block - 1) / o.block;
  for (int64_t r = 0; r < o.random_blocks && others > 0; ++r)
    if (static_cast<int64_t>(Rng(o.seed)
                                 .at("blocks")
                                 .at(static_cast<uint64_t>(own))
                                 .below(static_cast<uint64_t>(others), static_cast<uint64_t>(r))) == j / o.block)
      return true;
  return false;
}

// The weights of one head by the definition of its kind: (queries, keys of that text).
Matrix plain_weights(const LongAttention& attention, const Tensors& parameters, const Matrix& q, const Matrix& k,
                     bool causal) {
  const AttentionKindOptions& o = attention.options();
  const int64_t n = std::ssize(q), m = std::ssize(k), D = std::ssize(q[0]);
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  Matrix w = matrix(n, m);
  if (o.kind == AttentionKind::nystrom) {
    const auto means = [&](const Matrix& x) {
      Matrix out = matrix(o.landmarks, D);
      for (int64_t s = 0; s < o.landmarks; ++s) {
        const int64_t begin = s * m / o.landmarks, end = std::max((s + 1) * m / o.landmarks, begin + 1);
        for (int64_t j = begin; j < end; ++j)
          for (size_t c = 0; c < x[0].size(); ++c)
            out[static_cast<size_t>(s)][c] += x[static_cast<size_t>(j)][c] / static_cast<double>(end - begin);
      }
      return out;
    };
    const Matrix ql = means(q), kl = means(k), a = softmax_rows(product(ql, transposed(kl)), scale);
    double columns = 0;
    for (size_t j = 0; j < a.size(); ++j) {
      double sum = 0;
      for (size_t i = 0; i < a.size(); ++i) sum += a[i][j];
      columns = std::max(columns, sum);
    }
    Matrix z = transposed(a);
    for (auto& row : z)
      for (double& x : row) x /= columns;
    const auto less = [&](double diagonal, Matrix x) {
      for (size_t i = 0; i < x.size(); ++i)
        for (size_t j = 0; j < x.size(); ++j) x[i][j] = (i == j ? diagonal : 0) - x[i][j];
      return x;
    };
    for (int step = 0; step < 6; ++step) {
      const Matrix az = product(a, z);
      z = product(z, less(13, product(az, less(15, product(az, less(7, az))))));
      for (auto& row : z)
        for (double& x : row) x /= 4;
    }
    return product(product(softmax_rows(product(q, transposed(kl)), scale), z),
                   softmax_rows(product(ql, transposed(k)), scale));
  }
  if (o.kind == AttentionKind::linformer) {
    Matrix e = matrix(o.rank, m), f = e;
    for (int64_t r = 0; r < o.rank; ++r)
      for (int64_t j = 0; j < m; ++j) {
        e[static_cast<size_t>(r)][static_cast<size_t>(j)] = parameters[0].at({r, j});
        f[static_cast<size_t>(r)][static_cast<size_t>(j)] = parameters[1].at({r, j});
      }
    return product(softmax_rows(product(q, transposed(product(e, k))), scale), f);
  }
  RandomFeatures random;
  if (o.kind == AttentionKind::performer) random = RandomFeatures(o.features, D, o.seed);
  const auto kernel = [&](const std::vector<double>& x, const std::vector<double>& y) {
    double sum = 0;
    if (o.kind == AttentionKind::linear) {
      const auto elu1 = [](double v) { return v > 0 ? v + 1 : std::exp(v); };
      for (size_t c = 0; c < x.size(); ++c) sum += elu1(x[c]) * elu1(y[c]);
      return sum;
    }
    if (is_sparse(o.kind)) {
      for (size_t c = 0; c < x.size(); ++c) sum += x[c] * y[c];
      return std::exp(scale * sum);
    }
    for (int64_t f = 0; f < o.features; ++f) {
      double exponent = 0;
      for (int64_t c = 0; c < D; ++c) {
        const double a = x[static_cast<size_t>(c)], b = y[static_cast<size_t>(c)];
        exponent += random.directions.at({f, c}) * (a + b) * std::sqrt(scale) - (a * a + b * b) * scale / 2;
      }
      sum += std::exp(exponent);
    }
    return sum;
  };
  for (size_t i = 0; i < w.size(); ++i) {
    double sum = 0;
    for (size_t j = 0; j < k.size(); ++j) {
      const auto at = static_cast<int64_t>(i), key = static_cast<int64_t>(j);
      const bool seen = is_sparse(o.kind) ? sees(o, at, key, m, causal) : !causal || j <= i;
      w[i][j] = seen ? kernel(q[i], k[j]) : 0;
      sum += w[i][j];
    }
    for (double& x : w[i]) x = sum > 0 ? x / sum : 0;
  }
  return w;
}

Array plain(const LongAttention& attention, const Tensors& parameters, const Arrays& x,
            const std::vector<int64_t>& lens, bool causal) {
  Array y(x[0].shape);
  const int64_t B = y.shape[0], n = y.shape[1], H = y.shape[2], D = y.shape[3];
  for (int64_t b = 0; b < B; ++b)
    for (int64_t h = 0; h < H; ++h) {
      const int64_t length = lens[static_cast<size_t>(b)];
      if (length == 0) continue;
      const Matrix out = product(
          plain_weights(attention, parameters, head_of(x[0], b, h, length), head_of(x[1], b, h, length), causal),
          head_of(x[2], b, h, length));
      for (int64_t i = 0; i < length; ++i)
        for (int64_t c = 0; c < D; ++c)
          y[((b * n + i) * H + h) * D + c] = out[static_cast<size_t>(i)][static_cast<size_t>(c)];
    }
  return y;
}

struct Example {
  LongAttention attention;
  Tensors parameters;  // of linformer
  Tensors x;           // queries, keys, values
};

Example example(const AttentionKindOptions& options, const Shape& shape, uint64_t seed = 1) {
  Example e{LongAttention(options, shape[3], Rng(3)), {}, {}};
  e.attention.visit([&](const char*, Tensor& t) { e.parameters.push_back(t); });
  for (uint64_t i = 0; i < 3; ++i) e.x.push_back(normal(shape, Rng(seed).at(i)));
  return e;
}

// Rows beyond a text's length are queries that nothing reads.
Tensor without_padding(const Tensor& y, const std::vector<int64_t>& lens) {
  Tensor out = y.copied();
  const int64_t row = y.size(2) * y.size(3);
  for (int64_t b = 0; b < y.size(0); ++b)
    std::fill(out.mutable_ptr() + (b * y.size(1) + lens[static_cast<size_t>(b)]) * row,
              out.mutable_ptr() + (b + 1) * y.size(1) * row, 0.f);
  return out;
}

const std::vector<int64_t> kLens = {13, 5, 9};
Mask lengths_mask() { return Mask::valid_lens(Ids({3}, {13, 5, 9})); }

TEST(LongAttention, EveryKindIsItsDefinition) {
  for (const Kind& kind : kinds()) {
    const Example e = example(kind.options, {3, 13, 2, 6});
    const Arrays x{Array(e.x[0]), Array(e.x[1]), Array(e.x[2])};
    const Tensor all = e.attention(e.x[0], e.x[1], e.x[2], Mask::none(), {});
    // The pseudo-inverse multiplies rounding errors; all others are exact to float precision.
    const double tolerance = kind.options.kind == AttentionKind::nystrom ? 2e-4 : 1e-5;
    expect_near(all, plain(e.attention, e.parameters, x, {13, 13, 13}, false), tolerance, kind.name);
    expect_near(without_padding(e.attention(e.x[0], e.x[1], e.x[2], lengths_mask(), {}), kLens),
                plain(e.attention, e.parameters, x, kLens, false), tolerance, kind.name + ", lengths");
    if (!can_be_causal(kind.options.kind)) continue;
    expect_near(e.attention(e.x[0], e.x[1], e.x[2], Mask::causal(), {}),
                plain(e.attention, e.parameters, x, {13, 13, 13}, true), tolerance, kind.name + ", causal");
  }
}

TEST(LongAttention, LinearAttentionEqualsItsQuadraticDefinitionOnLongTexts) {
  const Example e = example({.kind = AttentionKind::linear}, {1, 700, 2, 16});
  const Arrays x{Array(e.x[0]), Array(e.x[1]), Array(e.x[2])};
  for (const bool causal : {false, true})
    expect_near(e.attention(e.x[0], e.x[1], e.x[2], causal ? Mask::causal() : Mask::none(), {}),
                plain(e.attention, {}, x, {700}, causal), 1e-5, causal ? "causal" : "all keys");
}

TEST(LongAttention, GradientsAreThoseOfTheDefinition) {
  for (const Kind& kind : kinds())
    for (const bool causal : {false, true}) {
      if (causal && !can_be_causal(kind.options.kind)) continue;
      Example e = example(kind.options, {2, 7, 2, 4});
      Tensors leaves;
      for (const Tensor& t : e.x) leaves.push_back(parameter(t));
      Arrays x{Array(e.x[0]), Array(e.x[1]), Array(e.x[2])};
      const Tensor dy = normal({2, 7, 2, 4}, Rng(9));
      Tape tape;
      tape.backward(e.attention(leaves[0], leaves[1], leaves[2], causal ? Mask::causal() : Mask::none(), {}), dy);
      const auto value = [&] {
        const Array y = plain(e.attention, e.parameters, x, {7, 7}, causal);
        double sum = 0;
        for (int64_t i = 0; i < y.numel(); ++i) sum += y[i] * dy.ptr()[i];
        return sum;
      };
      for (size_t k = 0; k < 3; ++k) {
        Array slopes(x[k].shape);
        for (int64_t i = 0; i < slopes.numel(); ++i) {
          const double before = x[k][i];
          x[k][i] = before + 1e-5;
          const double above = value();
          x[k][i] = before - 1e-5;
          slopes[i] = (above - value()) / 2e-5;
          x[k][i] = before;
        }
        expect_near(tape.grad(leaves[k]), slopes, kind.options.kind == AttentionKind::nystrom ? 5e-4 : 2e-5,
                    kind.name + (causal ? ", causal, input " : ", input ") + std::to_string(k));
      }
    }
}

// The gradients of linformer's own matrices, by differences of the function itself.
TEST(LongAttention, TheProjectionsOfLinformerAreLearned) {
  const Example e = example({.kind = AttentionKind::linformer, .rank = 3, .positions = 9}, {2, 7, 1, 4});
  const Tensor dy = normal({2, 7, 1, 4}, Rng(9));
  const auto loss = [&] { return sum(mul(e.attention(e.x[0], e.x[1], e.x[2], Mask::none(), {}), dy)); };
  Tape tape;
  tape.backward(loss());
  const TapePause pause;
  for (const Tensor& p : e.parameters)
    for (const int64_t i : {int64_t{0}, int64_t{12}, int64_t{26}}) {
      float& w = detail::writable(p)[i];
      const float before = w;
      w = before + 1e-2f;
      const double above = loss().item();
      w = before - 1e-2f;
      const double slope = (above - loss().item()) / 2e-2;
      w = before;
      EXPECT_NEAR(tape.grad(p).ptr()[i], slope, 5e-3) << i;
    }
}

TEST(LongAttention, PaddingBatchMatesAndThreadsChangeNoBit) {
  for (const Kind& kind : kinds()) {
    const Example e = example(kind.options, {3, 13, 2, 8});
    Tensor first;
    for (const int count : {1, 2, 3}) {
      const qkv_test::ThreadsScope threads(count);
      const Tensor y = e.attention(e.x[0], e.x[1], e.x[2], lengths_mask(), {});
      if (!first.defined()) first = y;
      expect_same(y, first, kind.name + ", threads");
    }
    for (int64_t b = 0; b < 3; ++b) {
      const int64_t length = kLens[static_cast<size_t>(b)];
      const auto own = [&](const Tensor& x) { return slice(slice(x, 0, b, b + 1), 1, 0, length); };
      expect_same(own(first), e.attention(own(e.x[0]), own(e.x[1]), own(e.x[2]), Mask::none(), {}),
                  kind.name + ", alone");
    }
    if (!can_be_causal(kind.options.kind)) continue;
    const Tensor whole = e.attention(e.x[0], e.x[1], e.x[2], Mask::causal(), {});
    const auto prefix = [](const Tensor& x) { return slice(x, 1, 0, 7); };
    expect_same(prefix(whole), e.attention(prefix(e.x[0]), prefix(e.x[1]), prefix(e.x[2]), Mask::causal(), {}),
                kind.name + ", prefix");
  }
}

TEST(LongAttention, NothingOfHiddenTokensIsLeftEvenIfTheyAreNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Kind& kind : kinds()) {
    Example e = example(kind.options, {3, 13, 2, 8});
    const Tensor before = without_padding(e.attention(e.x[0], e.x[1], e.x[2], lengths_mask(), {}), kLens);
    for (const size_t input : {1, 2})
      for (int64_t b = 0; b < 3; ++b)
        std::fill(e.x[input].mutable_ptr() + (b * 13 + kLens[static_cast<size_t>(b)]) * 16,
                  e.x[input].mutable_ptr() + (b + 1) * 13 * 16, nan);
    expect_same(without_padding(e.attention(e.x[0], e.x[1], e.x[2], lengths_mask(), {}), kLens), before, kind.name);
    if (!can_be_causal(kind.options.kind)) continue;
    Example later = example(kind.options, {1, 9, 2, 8});
    const Tensor causal = later.attention(later.x[0], later.x[1], later.x[2], Mask::causal(), {});
    for (Tensor& x : later.x) std::fill(x.mutable_ptr() + 5 * 16, x.mutable_ptr() + 9 * 16, nan);
    const Tensor with_nan = later.attention(later.x[0], later.x[1], later.x[2], Mask::causal(), {});
    expect_same(slice(with_nan, 1, 0, 5), slice(causal, 1, 0, 5), kind.name + ", later tokens");
    EXPECT_TRUE(std::isnan(with_nan.at({0, 6, 0, 0}))) << kind.name;
  }
}

TEST(LongAttention, EmptyTextsOneTokenAndRowsThatSeeNothing) {
  for (const Kind& kind : kinds()) {
    const Example none = example(kind.options, {2, 0, 2, 4});
    EXPECT_EQ(none.attention(none.x[0], none.x[1], none.x[2], Mask::none(), {}).shape(), Shape({2, 0, 2, 4}));
    const Example one = example(kind.options, {1, 1, 2, 4});
    const Tensor alone = one.attention(one.x[0], one.x[1], one.x[2], Mask::none(), {});
    if (kind.options.kind != AttentionKind::linformer)
      expect_near(alone, Array(one.x[2]), kind.options.kind == AttentionKind::nystrom ? 1e-3 : 1e-6, kind.name);
    const Example masked = example(kind.options, {2, 5, 2, 4});
    const Tensor y = masked.attention(masked.x[0], masked.x[1], masked.x[2], Mask::valid_lens(Ids({2}, {0, 5})), {});
    EXPECT_EQ(max(abs(slice(y, 0, 0, 1))).item(), 0.f) << kind.name;
    EXPECT_GT(max(abs(slice(y, 0, 1, 2))).item(), 0.f) << kind.name;
  }
}

// A window that reaches everything, and as many landmarks as tokens, are exact attention.
TEST(LongAttention, TheWidestOfEachKindIsExact) {
  const AttentionKindOptions widest[] = {
      {.kind = AttentionKind::window, .window = 100},
      {.kind = AttentionKind::dilated, .window = 100, .dilation = 1},
      {.kind = AttentionKind::window, .window = 0, .global_tokens = 100},
      {.kind = AttentionKind::block_sparse, .block = 100},
      {.kind = AttentionKind::nystrom, .landmarks = 13},
  };
  for (const AttentionKindOptions& options : widest) {
    const Example e = example(options, {1, 13, 2, 6});
    const Tensor exact =
        attend(ScaledDot{}, e.x[0], e.x[1], e.x[2], Mask::none(), {}, {.axis = HeadAxis::inner}).output;
    const double tolerance = options.kind == AttentionKind::nystrom ? 0.02 : 1e-6;  // six steps of its iteration
    expect_near(e.attention(e.x[0], e.x[1], e.x[2], Mask::none(), {}), Array(exact), tolerance,
                std::string(name_of(options.kind)));
  }
}

// fq . fk estimates e^(q . k / sqrt(D)) without bias: the error falls as 1 / sqrt(features).
TEST(LongAttention, MoreRandomFeaturesApproachExactAttention) {
  const auto error = [](int64_t features) {
    double sum = 0;
    for (uint64_t seed = 0; seed < 20; ++seed) {
      Example e = example({.kind = AttentionKind::performer, .features = features, .seed = seed}, {1, 9, 1, 8}, seed);
      for (const size_t input : {0, 1}) e.x[input] = scale(e.x[input], 0.5f);  // longer vectors need far more features
      const Tensor exact =
          attend(ScaledDot{}, e.x[0], e.x[1], e.x[2], Mask::none(), {}, {.axis = HeadAxis::inner}).output;
      sum += mean(abs(sub(e.attention(e.x[0], e.x[1], e.x[2], Mask::none(), {}), exact))).item();
    }
    return sum / 20;
  };
  const double few = error(16), many = error(1024);
  EXPECT_LT(many, 0.03);
  EXPECT_NEAR(few / many, 8, 4);
}

TEST(LongAttention, ErrorsSayWhatDoesNotFit) {
  const Example e = example({.kind = AttentionKind::linformer, .rank = 2, .positions = 3}, {1, 5, 1, 4});
  expect_error([&] { e.attention(e.x[0], e.x[1], e.x[2], Mask::none(), {}); },
               "[linformer] a text of 5 tokens is longer than the 3 positions that were learned");
  const Example n = example({.kind = AttentionKind::nystrom}, {1, 5, 1, 4});
  expect_error([&] { n.attention(n.x[0], n.x[1], n.x[2], Mask::causal(), {}); },
               "[nystrom] mixes all positions: it has no causal form");
  const Example w = example({.kind = AttentionKind::linear}, {1, 5, 1, 4});
  expect_error([&] { w.attention(w.x[0], w.x[1], w.x[2], Mask::window(1, 1), {}); },
               "[attention] linear takes a causal mask and lengths, but nothing else is hidden or added");
  expect_error([&] { KeyPattern({.kind = AttentionKind::linear}); }, "[key_pattern] linear has no list of keys");
}

}  // namespace
}  // namespace qkv::tests
