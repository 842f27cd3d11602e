// The cases, and attention computed by its definition.
#include "unit/attention/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace qkv::tests {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// u^2, with one width or one per dimension.
double distance2(const Array& width, const double* q, const double* k, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::pow(width[width.numel() == 1 ? 0 : i] * (q[i] - k[i]), 2);
  return sum;
}

template <class Make>
CaseScorer attend_with(Make make) {
  return {[make](const Tensors& p, const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask, const Run& run,
                 const AttendOptions& options) { return attend(make(p), q, k, v, mask, run, options); },
          [make](const Tensors& p) { return AnyScorer{make(p)}; }};
}

template <class S>
ScorerCase distance_case(const std::string& name, const Tensor& width, int64_t n, double (*log_kernel)(double u2),
                         double gradient_tolerance = 1e-5) {
  return {name,
          n,
          n,
          {width},
          attend_with([](const Tensors& p) { return S{p[0]}; }),
          [=](const Arrays& p, const double* q, const double* k) { return log_kernel(distance2(p[0], q, k, n)); },
          width.numel() == 1,
          true,
          gradient_tolerance};
}

double gaussian(double u2) { return -u2 / 2; }
double boxcar(double u2) { return std::isnan(u2) ? u2 : u2 <= 1 ? 0 : -kInfinity; }
double triangular(double u2) { return std::isnan(u2) ? u2 : u2 < 1 ? std::log(1 - std::sqrt(u2)) : -kInfinity; }
double epanechnikov(double u2) { return std::isnan(u2) ? u2 : u2 < 1 ? std::log(1 - u2) : -kInfinity; }

Tensor random(const Shape& shape, uint64_t seed) { return normal(shape, Rng(seed).at("parameters")); }

void add_distances(std::vector<ScorerCase>& cases) {
  cases.push_back(distance_case<Gaussian>("gaussian", Tensor({1}, {0.8f}), 3, gaussian));
  cases.push_back(
      distance_case<Gaussian>("gaussian, one dimension, negative width", Tensor({1}, {-1.5f}), 1, gaussian));
  cases.push_back(
      distance_case<Gaussian>("gaussian, a width per dimension", Tensor({3}, {0.8f, 0.3f, -1.2f}), 3, gaussian));
  cases.push_back(distance_case<Gaussian>("gaussian, wide", scalar(0.2f), 33, gaussian));
  cases.push_back(distance_case<Boxcar>("boxcar", scalar(0.4f), 3, boxcar));
  // Near the edge of its support a derivative has the factor 1 / (1 - u), and 1 - u has few digits left.
  constexpr double kEdge = 1e-4;
  cases.push_back(distance_case<Triangular>("triangular", scalar(0.35f), 3, triangular, kEdge));
  cases.push_back(distance_case<Triangular>("triangular, negative width", scalar(-0.5f), 1, triangular, kEdge));
  cases.push_back(distance_case<Epanechnikov>("epanechnikov", scalar(0.35f), 3, epanechnikov, kEdge));
  cases.push_back(distance_case<Epanechnikov>("epanechnikov, a width per dimension", Tensor({2}, {0.3f, 0.6f}), 2,
                                              epanechnikov, kEdge));
  cases.push_back(
      {"negative squared distance",
       3,
       3,
       {},
       attend_with([](const Tensors&) { return NegativeSquaredDistance{}; }),
       [](const Arrays&, const double* q, const double* k) { return -distance2(Array(Shape{1}, 1), q, k, 3); },
       true});
}

void add_dots(std::vector<ScorerCase>& cases) {
  cases.push_back({"dot",
                   3,
                   3,
                   {},
                   attend_with([](const Tensors&) { return Dot{}; }),
                   [](const Arrays&, const double* q, const double* k) { return dot(q, k, 3); }});
  cases.push_back({"scaled dot",
                   17,
                   17,
                   {},
                   attend_with([](const Tensors&) { return ScaledDot{}; }),
                   [](const Arrays&, const double* q, const double* k) { return dot(q, k, 17) / std::sqrt(17.0); }});
  cases.push_back({"dot with a given scale",
                   4,
                   4,
                   {},
                   attend_with([](const Tensors&) { return ScaledDot{.scale = 0.7f}; }),
                   [](const Arrays&, const double* q, const double* k) { return dot(q, k, 4) * double{0.7f}; }});
  cases.push_back({"bilinear",
                   3,
                   5,
                   {random({3, 5}, 3)},
                   attend_with([](const Tensors& p) { return Bilinear{p[0]}; }),
                   [](const Arrays& p, const double* q, const double* k) {
                     double sum = 0;
                     for (int64_t a = 0; a < 3; ++a) sum += q[a] * dot(&p[0].v[static_cast<size_t>(a * 5)], k, 5);
                     return sum;
                   }});
  cases.push_back({"cosine",
                   4,
                   4,
                   {scalar(0.3f)},
                   attend_with([](const Tensors& p) { return Cosine{p[0]}; }),
                   [](const Arrays& p, const double* q, const double* k) {
                     return dot(q, k, 4) / std::sqrt(dot(q, q, 4) * dot(k, k, 4)) / p[0][0];
                   }});
}

}  // namespace

std::vector<ScorerCase> scorer_cases() {
  std::vector<ScorerCase> cases;
  cases.push_back({"constant",
                   3,
                   2,
                   {},
                   attend_with([](const Tensors&) { return Constant{}; }),
                   [](const Arrays&, const double*, const double*) { return 0.0; },
                   false,
                   false});
  cases.push_back({"salience",
                   2,
                   3,
                   {random({3}, 1)},
                   attend_with([](const Tensors& p) {
                     return Salience{p[0], 0.5f};
                   }),
                   [](const Arrays& p, const double*, const double* k) { return dot(p[0].v.data(), k, 3) / 0.5; },
                   false,
                   false});
  add_distances(cases);
  add_dots(cases);
  cases.push_back(
      {"vector sum",
       3,
       3,
       {},
       attend_with([](const Tensors&) { return VectorSum{}; }),
       [](const Arrays&, const double* q, const double* k) { return q[0] + q[1] + q[2] + k[0] + k[1] + k[2]; },
       false,
       false});
  cases.push_back({"vector sum, weighted",
                   3,
                   3,
                   {random({3}, 2)},
                   attend_with([](const Tensors& p) { return VectorSum{p[0]}; }),
                   [](const Arrays& p, const double* q, const double* k) {
                     return dot(p[0].v.data(), q, 3) + dot(p[0].v.data(), k, 3);
                   },
                   false,
                   false});
  cases.push_back({"additive",
                   5,
                   3,
                   {random({6, 5}, 4), random({6, 3}, 5), random({6}, 6)},
                   attend_with([](const Tensors& p) {
                     return Additive{p[0], p[1], p[2]};
                   }),
                   [](const Arrays& p, const double* q, const double* k) {
                     double sum = 0;
                     for (size_t h = 0; h < 6; ++h)
                       sum += p[2].v[h] * std::tanh(dot(&p[0].v[h * 5], q, 5) + dot(&p[1].v[h * 3], k, 3));
                     return sum;
                   }});
  return cases;
}

namespace {

// Deterministic zeros and ones, lengths and biases that depend on every index.
int pattern(int64_t b, int64_t h, int64_t i, int64_t j) {
  return static_cast<int>((b * 5 + h * 3 + i * 7 + j * 11 + i * j) % 3);
}
double bias_at(int64_t b, int64_t h, int64_t i, int64_t j) {
  return 0.5 * pattern(b, h, i, j + 1) - 0.25 * static_cast<double>(j % 2);
}
int32_t length_of(int64_t b, int64_t i, int64_t keys) { return static_cast<int32_t>((b * 3 + i * 2) % (keys + 2)); }

double diagonal_at(int64_t h, int64_t distance) {
  return 0.125 * static_cast<double>((distance + 70) * (h + 2) % 9) - 0.5;
}
bool hides(int64_t h, int64_t distance) { return (distance + 70 + h) % 6 == 1; }

template <class At>
Tensor filled(const Shape& s, At at) {
  Tensor out = Tensor::empty(s);
  for (int64_t n = 0; n < out.numel(); ++n) {
    const int64_t j = n % s[3], i = n / s[3] % s[2], h = n / s[3] / s[2] % s[1], b = n / s[3] / s[2] / s[1];
    out.mutable_ptr()[n] = static_cast<float>(at(b, h, i, j));
  }
  return out;
}

Tensor diagonals(const AttendSizes& s, int64_t heads) {
  return filled({1, 1, heads, s.queries + s.keys - 1},
                [&](int64_t, int64_t, int64_t h, int64_t t) { return diagonal_at(h, t - (s.queries - 1)); })
      .viewed({heads, s.queries + s.keys - 1});
}

Ids lengths(const AttendSizes& s) {
  Ids out = Ids::empty({s.batch});
  for (int64_t b = 0; b < s.batch; ++b) out.mutable_ptr()[b] = length_of(b, 1, s.keys);
  return out;
}

Ids row_lengths(const AttendSizes& s) {
  Ids out = Ids::empty({s.batch, s.queries});
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t i = 0; i < s.queries; ++i) out.mutable_ptr()[b * s.queries + i] = length_of(b, i, s.keys);
  return out;
}

const auto kAll = [](const AttendSizes&, int64_t, int64_t, int64_t, int64_t) { return true; };

}  // namespace

std::vector<MaskCase> mask_cases() {
  using S = const AttendSizes&;
  return {
      {"none", [](S) { return Mask::none(); }, kAll},
      {"valid_lens (B)", [](S s) { return Mask::valid_lens(lengths(s)); },
       [](S s, int64_t b, int64_t, int64_t, int64_t j) { return j < length_of(b, 1, s.keys); }},
      {"valid_lens (B, Lq)", [](S s) { return Mask::valid_lens(row_lengths(s)); },
       [](S s, int64_t b, int64_t, int64_t i, int64_t j) { return j < length_of(b, i, s.keys); }},
      {"causal", [](S) { return Mask::causal(); }, [](S, int64_t, int64_t, int64_t i, int64_t j) { return j <= i; }},
      {"causal(2)", [](S) { return Mask::causal(2); },
       [](S, int64_t, int64_t, int64_t i, int64_t j) { return j <= i + 2; }},
      {"causal(-1)", [](S) { return Mask::causal(-1); },
       [](S, int64_t, int64_t, int64_t i, int64_t j) { return j <= i - 1; }},
      {"window(1, 2)", [](S) { return Mask::window(1, 2); },
       [](S, int64_t, int64_t, int64_t i, int64_t j) { return j >= i - 1 && j <= i + 2; }},
      {"prefix", [](S s) { return Mask::prefix(lengths(s)); },
       [](S s, int64_t b, int64_t, int64_t i, int64_t j) { return j <= i || j < length_of(b, 1, s.keys); }},
      {"keep (Lq, Lk)",
       [](S s) {
         return Mask::keep(filled({1, 1, s.queries, s.keys}, [](auto... at) {
                             return pattern(at...) > 0;
                           }).viewed({s.queries, s.keys}));
       },
       [](S, int64_t, int64_t, int64_t i, int64_t j) { return pattern(0, 0, i, j) > 0; }},
      {"drop (B, H, Lq, Lk)",
       [](S s) {
         return Mask::drop(
             filled({s.batch, s.heads, s.queries, s.keys}, [](auto... at) { return pattern(at...) == 0; }));
       },
       [](S, int64_t b, int64_t h, int64_t i, int64_t j) { return pattern(b, h, i, j) != 0; }},
      {"keep (B, 1, 1, Lk)",
       [](S s) {
         return Mask::keep(filled({s.batch, 1, 1, s.keys}, [](auto... at) { return pattern(at...) > 0; }));
       },
       [](S, int64_t b, int64_t, int64_t, int64_t j) { return pattern(b, 0, 0, j) > 0; }},
      {"bias (1, H, Lq, Lk)",
       [](S s) {
         return Mask::bias(filled({1, s.heads, s.queries, s.keys}, bias_at));
       },
       kAll, [](S, int64_t, int64_t h, int64_t i, int64_t j) { return bias_at(0, h, i, j); }},
      {"bias with -inf",
       [](S s) {
         return Mask::bias(filled({s.batch, 1, s.queries, s.keys}, [](int64_t b, int64_t h, int64_t i, int64_t j) {
           return pattern(b, h, i, j) ? bias_at(b, h, i, j) : -kInfinity;
         }));
       },
       [](S, int64_t b, int64_t, int64_t i, int64_t j) { return pattern(b, 0, i, j) != 0; },
       [](S, int64_t b, int64_t, int64_t i, int64_t j) { return bias_at(b, 0, i, j); }},
      {"relative (H, Lq + Lk - 1)", [](S s) { return Mask::relative(diagonals(s, s.heads)); }, kAll,
       [](S, int64_t, int64_t h, int64_t i, int64_t j) { return diagonal_at(h, j - i); }},
      {"two relatives and a bias",
       [](S s) {
         return Mask::relative(diagonals(s, 1)) & Mask::bias(filled({1, s.heads, s.queries, s.keys}, bias_at)) &
                Mask::relative(diagonals(s, s.heads));
       },
       kAll,
       [](S, int64_t, int64_t h, int64_t i, int64_t j) {
         return diagonal_at(0, j - i) + diagonal_at(h, j - i) + bias_at(0, h, i, j);
       }},
      {"relative with -inf, lengths",
       [](S s) {
         Tensor x = diagonals(s, s.heads);
         for (int64_t h = 0; h < s.heads; ++h)
           for (int64_t d = 1 - s.queries; d < s.keys; ++d)
             if (hides(h, d)) x.mutable_ptr()[h * x.size(1) + d + s.queries - 1] = static_cast<float>(-kInfinity);
         return Mask::valid_lens(lengths(s)) & Mask::relative(x);
       },
       [](S s, int64_t b, int64_t h, int64_t i, int64_t j) { return j < length_of(b, 1, s.keys) && !hides(h, j - i); },
       [](S, int64_t, int64_t h, int64_t i, int64_t j) { return diagonal_at(h, j - i); }},
      {"all of them",
       [](S s) {
         return Mask::valid_lens(lengths(s)) & Mask::causal(3) & Mask::window(2, 9) &
                Mask::keep(
                    filled({s.batch, s.heads, s.queries, s.keys}, [](auto... at) { return pattern(at...) > 0; })) &
                Mask::bias(filled({s.batch, s.heads, s.queries, s.keys}, bias_at)) &
                Mask::relative(diagonals(s, s.heads));
       },
       [](S s, int64_t b, int64_t h, int64_t i, int64_t j) {
         return j < length_of(b, 1, s.keys) && j <= i + 3 && j >= i - 2 && pattern(b, h, i, j) > 0;
       },
       [](S, int64_t b, int64_t h, int64_t i, int64_t j) { return bias_at(b, h, i, j) + diagonal_at(h, j - i); }},
  };
}

PlainResult plain_attention(const PlainScore& score, const Arrays& parameters, const Array& q, const Array& k,
                            const Array& v, const std::function<bool(int64_t, int64_t, int64_t, int64_t)>& sees,
                            const std::function<double(int64_t, int64_t, int64_t, int64_t)>& bias) {
  const int64_t B = q.shape[0], H = q.shape[1], Lq = q.shape[2], D = q.shape[3], Hk = k.shape[1], Lk = k.shape[2],
                Dk = k.shape[3], Dv = v.shape[3];
  PlainResult out{Array(Shape{B, H, Lq, Dv}), Array(Shape{B, H, Lq, Lk})};
  for (int64_t r = 0; r < B * H * Lq; ++r) {
    const int64_t i = r % Lq, h = r / Lq % H, b = r / Lq / H, head = b * Hk + h / (H / Hk);
    std::vector<double> s(static_cast<size_t>(Lk), -kInfinity);
    double most = -kInfinity, total = 0;
    for (int64_t j = 0; j < Lk; ++j) {
      if (!sees(b, h, i, j)) continue;
      double& a = s[static_cast<size_t>(j)];
      a = score(parameters, q.v.data() + r * D, k.v.data() + (head * Lk + j) * Dk) + (bias ? bias(b, h, i, j) : 0);
      if (std::isnan(a) || a > most) most = a;
    }
    if (most == -kInfinity) {
      ++out.empty_rows;
      continue;
    }
    for (double a : s)
      if (a != -kInfinity) total += std::exp(a - most);
    for (int64_t j = 0; j < Lk; ++j) {
      if (!sees(b, h, i, j)) continue;
      const double w = std::exp(s[static_cast<size_t>(j)] - most) / total;
      out.weights[r * Lk + j] = w;
      for (int64_t c = 0; c < Dv; ++c) out.output[r * Dv + c] += w * v[(head * Lk + j) * Dv + c];
    }
  }
  return out;
}

PlainResult plain_attention(const ScorerCase& scorer, const MaskCase& mask, const AttendSizes& sizes, const Tensor& q,
                            const Tensor& k, const Tensor& v) {
  Arrays parameters;
  for (const Tensor& p : scorer.parameters) parameters.emplace_back(p);
  std::function<double(int64_t, int64_t, int64_t, int64_t)> bias;
  if (mask.bias) bias = [&](int64_t b, int64_t h, int64_t i, int64_t j) { return mask.bias(sizes, b, h, i, j); };
  return plain_attention(
      scorer.score, parameters, Array(q), Array(k), Array(v),
      [&](int64_t b, int64_t h, int64_t i, int64_t j) { return mask.sees(sizes, b, h, i, j); }, bias);
}

QueryKeyValue random_inputs(const ScorerCase& scorer, const AttendSizes& s, uint64_t seed) {
  const Rng rng = Rng(seed).at(scorer.name);
  return {normal({s.batch, s.heads, s.queries, scorer.query_width}, rng.at("q")),
          normal({s.batch, s.key_heads, s.keys, scorer.key_width}, rng.at("k")),
          normal({s.batch, s.key_heads, s.keys, s.value_width}, rng.at("v"))};
}

void expect_near(const Tensor& a, const Array& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape) << what;
  double most = 0;
  for (double x : b.v) most = std::max(most, std::abs(x));
  for (int64_t i = 0; i < b.numel(); ++i)
    ASSERT_LE(std::abs(a.ptr()[i] - b[i]), tolerance * (std::abs(b[i]) + most))
        << what << ": element " << i << " is " << a.ptr()[i] << ", expected " << b[i];
}

void expect_same(const Tensor& a, const Tensor& b, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  for (int64_t i = 0; i < a.numel(); ++i)
    ASSERT_EQ(0, std::memcmp(a.ptr() + i, b.ptr() + i, sizeof(float)))
        << what << ": element " << i << ": " << a.ptr()[i] << " and " << b.ptr()[i];
}

}  // namespace qkv::tests
