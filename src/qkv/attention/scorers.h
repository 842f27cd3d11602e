// Scoring functions a(q, k): each a small type with its parameters and its formula. Softmax over the keys turns scores
// into weights.
#pragma once

#include <cmath>
#include <optional>

#include "qkv/attention/scorer.h"
#include "qkv/core/api.h"

namespace QKV_API qkv {

/// a(q, k) = 0: average pooling. Ignores the contents of queries and keys.
struct Constant {
  static constexpr ScorerFacts facts{"constant", "0"};
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&&) {}
};

/// a(k) = w . k / temperature: salience, with no query. w = 0 is average pooling; as the temperature approaches 0, the
/// largest w . k takes all the weight.
struct Salience {
  static constexpr ScorerFacts facts{"salience", "w . k / temperature", false, "w (k)"};
  Tensor w;  // (D)
  float temperature = 1;
  /// Xavier-uniform; queries may have any width.
  static Salience random(int64_t query_width, int64_t key_width, const Rng& rng);
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) { f("w", w); }
};

// Kernels of the distance. The width w is the reciprocal of the bandwidth h; with one width per dimension,
// u = |w * (q - k)|.

/// a(q, k) = log K(u) = -u^2 / 2, u = w |q - k|. With a learned w: the book's parametric attention pooling.
struct Gaussian {
  static constexpr ScorerFacts facts{"gaussian", "-u^2 / 2, u = |w (q - k)|", true, "width"};
  Tensor width = scalar(1);  // () or (1), or (D)
  static Gaussian bandwidth(float h) { return {scalar(1 / h)}; }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) { f("width", width); }
};

/// K(u) = 1 where u <= 1, else 0. Its width has no gradient.
struct Boxcar {
  static constexpr ScorerFacts facts{"boxcar", "log 1 where u <= 1, u = |w (q - k)|, else log 0", true, "width"};
  Tensor width = scalar(1);
  static Boxcar bandwidth(float h) { return {scalar(1 / h)}; }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) { f("width", width); }
};

/// K(u) = max(0, 1 - u).
struct Triangular {
  static constexpr ScorerFacts facts{"triangular", "log max(0, 1 - u), u = |w (q - k)|", true, "width"};
  Tensor width = scalar(1);
  static Triangular bandwidth(float h) { return {scalar(1 / h)}; }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) { f("width", width); }
};

/// K(u) = max(0, 1 - u^2).
struct Epanechnikov {
  static constexpr ScorerFacts facts{"epanechnikov", "log max(0, 1 - u^2), u = |w (q - k)|", true, "width"};
  Tensor width = scalar(1);
  static Epanechnikov bandwidth(float h) { return {scalar(1 / h)}; }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) { f("width", width); }
};

/// a(q, k) = -|q - k|^2: the Gaussian without the half.
struct NegativeSquaredDistance {
  static constexpr ScorerFacts facts{"negative-squared-distance", "-|q - k|^2", true};
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&&) {}
};

/// a(q, k) = q . k.
struct Dot {
  static constexpr ScorerFacts facts{"dot", "Q K^T", true};
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const { return {q, k}; }
  static constexpr bool any_head_axis() { return true; }
  void visit(auto&&) {}
};

/// a(q, k) = q . k / sqrt(D), which has variance 1 if the elements of q and k do. Or q . k times a given scale.
struct ScaledDot {
  static constexpr ScorerFacts facts{"scaled-dot", "Q K^T", true};
  std::optional<float> scale = {};
  float scale_for(int64_t width) const { return scale ? *scale : 1 / std::sqrt(static_cast<float>(width)); }
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const { return {.q = q, .k = k, .scale = scale_for(q.size(-1))}; }
  static constexpr bool any_head_axis() { return true; }
  void visit(auto&&) {}
};

/// a(q, k) = q^T W k: queries and keys of different widths, matrix products only.
struct Bilinear {
  static constexpr ScorerFacts facts{"bilinear", "Q W K^T", false, "W (q, k)"};
  Tensor W;  // (query width, key width)
  /// Xavier-uniform.
  static Bilinear random(int64_t query_width, int64_t key_width, const Rng& rng);
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) { f("W", W); }
};

/// a(q, k) = cos(q, k) / temperature; the cosine with a zero vector is 0.
struct Cosine {
  static constexpr ScorerFacts facts{"cosine", "cos(q, k) / temperature", true, "temperature"};
  Tensor temperature = scalar(1);  // one element
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) { f("temperature", temperature); }
};

/// a(q, k) = w . (q + k), by default the sum of the elements of q + k (exercise 10.3.3). It is w . q + w . k; the first
/// term is the same for every key of a row, and softmax does not change when a constant is added: the weights do not
/// depend on the query at all. So it lowers to a key bias, and the gradient of the query is exactly 0.
struct VectorSum {
  static constexpr ScorerFacts facts{"vector-sum", "w . (q + k)", true, "w (k)"};
  std::optional<Tensor> w = {};  // (D)
  Tensor scores(const Tensor& q, const Tensor& k) const;
  PairScores lower(const Tensor& q, const Tensor& k) const;
  void visit(auto&& f) { f("w", w); }
};

/// a(q, pk) = w_v . tanh(W_q q + pk), with keys projected in advance: for a decoder that attends to the same keys many
/// times.
struct ProjectedAdditive {
  Tensor W_q, w_v;
  Tensor scores(const Tensor& q, const Tensor& projected) const;
  AdditiveScores lower(const Tensor& q, const Tensor& projected) const;
  void visit(auto&& f) {
    f("W_q", W_q);
    f("w_v", w_v);
  }
};

/// a(q, k) = w_v . tanh(W_q q + W_k k), without biases (Bahdanau et al., 2015).
struct Additive {
  static constexpr ScorerFacts facts{"additive", "w_v . tanh(W_q q + W_k k)", false, "W_q (h, q), W_k (h, k), w_v (h)"};
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
  void visit(auto&& f) {
    f("W_q", W_q);
    f("W_k", W_k);
    f("w_v", w_v);
  }
};

}  // namespace qkv
