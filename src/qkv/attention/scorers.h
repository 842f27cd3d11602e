// Scoring functions a(q, k): each a small type with its parameters and its formula. Softmax over the keys turns scores into weights.
#pragma once

#include <cmath>
#include <optional>

#include "qkv/attention/scorer.h"

namespace qkv {

/// a(q, k) = 0: average pooling. Looks at neither query nor key, only at their number.
struct Constant {
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&&) const {}
};

/// a(k) = w . k / temperature: salience, with no query. w = 0 is average pooling; a temperature towards 0 takes the largest.
struct Salience {
  Tensor w;               // (D)
  float temperature = 1;
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) const { f("w", w); }
};

// Kernels of the distance. The width w is the reciprocal of the bandwidth h; with one for each dimension u = |w * (q - k)|.

/// a(q, k) = log K(u) = -u^2 / 2, u = w |q - k|. With a learned w: the book's parametric attention pooling.
struct Gaussian {
  Tensor width = scalar(1);  // () or (1), or (D)
  static Gaussian bandwidth(float h) { return {scalar(1 / h)}; }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) const { f("width", width); }
};

/// K(u) = 1 where u <= 1, else 0. Its width has no gradient.
struct Boxcar {
  Tensor width = scalar(1);
  static Boxcar bandwidth(float h) { return {scalar(1 / h)}; }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) const { f("width", width); }
};

/// K(u) = max(0, 1 - u).
struct Triangular {
  Tensor width = scalar(1);
  static Triangular bandwidth(float h) { return {scalar(1 / h)}; }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) const { f("width", width); }
};

/// K(u) = max(0, 1 - u^2).
struct Epanechnikov {
  Tensor width = scalar(1);
  static Epanechnikov bandwidth(float h) { return {scalar(1 / h)}; }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) const { f("width", width); }
};

/// a(q, k) = -|q - k|^2: the Gaussian without the half.
struct NegativeSquaredDistance {
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&&) const {}
};

/// a(q, k) = q . k.
struct Dot {
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const { return {q, k}; }
  static constexpr bool any_head_axis() { return true; }
  void visit(auto&&) const {}
};

/// a(q, k) = q . k / sqrt(D): of variance 1 when the elements of q and k have it. Or q . k times a given scale.
struct ScaledDot {
  std::optional<float> scale = {};
  float scale_for(int64_t width) const { return scale ? *scale : 1 / std::sqrt(static_cast<float>(width)); }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const { return {.q = q, .k = k, .scale = scale_for(q.size(-1))}; }
  static constexpr bool any_head_axis() { return true; }
  void visit(auto&&) const {}
};

/// a(q, k) = q^T W k: queries and keys of different widths, matrix products only.
struct Bilinear {
  Tensor W;  // (query width, key width)
  /// Xavier-uniform.
  static Bilinear random(int64_t query_width, int64_t key_width, const Rng& rng);
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) const { f("W", W); }
};

/// a(q, k) = cos(q, k) / temperature; the cosine with a zero vector is 0.
struct Cosine {
  Tensor temperature = scalar(1);  // one element
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) const { f("temperature", temperature); }
};

/// a(q, k) = w . (q + k), by default the sum of the elements of q + k (exercise 10.3.3). It is w . q + w . k, the first term is the same
/// for every key of a row, and softmax does not change when a constant is added: the weights do not depend on the query at all. So it
/// lowers to a bias of the keys, and the gradient by the query is exactly 0.
struct VectorSum {
  std::optional<Tensor> w = {};  // (D)
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) const { f("w", w); }
};

/// a(q, pk) = w_v . tanh(W_q q + pk), with keys that were projected before: for a decoder that asks the same keys many times.
struct ProjectedAdditive {
  Tensor W_q, w_v;
  Tensor scores(const Tensor& q, const Tensor& projected) const;
  AdditiveScores lower(const Tensor& q, const Tensor& projected) const;
  void visit(auto&& f) const { f("W_q", W_q); f("w_v", w_v); }
};

/// a(q, k) = w_v . tanh(W_q q + W_k k), without biases (Bahdanau et al., 2015).
struct Additive {
  Tensor W_q;  // (h, query width)
  Tensor W_k;  // (h, key width)
  Tensor w_v;  // (h)
  /// Xavier-uniform.
  static Additive random(int64_t query_width, int64_t key_width, int64_t hidden, const Rng& rng);
  /// W_k k, (..., Lk, key width) -> (..., Lk, h), and the scorer that takes it in place of the keys.
  Tensor project(const Tensor& k) const;
  ProjectedAdditive on_projected() const { return {W_q, w_v}; }
  Tensor scores(const Tensor& q, const Tensor& k) const { return on_projected().scores(q, project(k)); }
  AdditiveScores lower(const Tensor& q, const Tensor& k) const { return on_projected().lower(q, project(k)); }
  void visit(auto&& f) const { f("W_q", W_q); f("W_k", W_k); f("w_v", w_v); }
};

}  // namespace qkv
