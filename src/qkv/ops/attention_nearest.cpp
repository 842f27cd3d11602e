// The nearest keys of rows whose scores are outside the range of a float.
#include "qkv/ops/attention_nearest.h"

#include <cmath>
#include <limits>
#include <vector>

namespace qkv {
namespace {

/// Row (b, h, i) of x, wherever its head axis is.
float* row_of(const Tensor& x, HeadAxis axis, int64_t b, int64_t h, int64_t i) {
  const Shape s = heads_outer(x.shape(), axis);
  return detail::writable(x) + (axis == HeadAxis::outer ? (b * s[1] + h) * s[2] + i : (b * s[2] + i) * s[1] + h) * s[3];
}

/// visit(b, h, key head, i, weights) for every row with lse -inf that sees a key.
template <class Visit>
void for_nearest_rows(const PairScores& scores, const AttentionPlan& plan, const Tensor& lse, Visit&& visit) {
  const Shape q = heads_outer(scores.q.shape(), scores.axis), k = heads_outer(scores.k.shape(), scores.axis);
  std::vector<float> weights(static_cast<size_t>(k[2]));
  for (int64_t r = 0; r < lse.numel(); ++r) {
    const int64_t i = r % q[2], h = r / q[2] % q[1], b = r / q[2] / q[1];
    if (lse.ptr()[r] == -std::numeric_limits<float>::infinity() &&
        nearest_weights(scores, plan, b, h, i, weights.data()))
      visit(b, h, h / (q[1] / k[1]), i, weights);
  }
}

}  // namespace

bool nearest_weights(const PairScores& scores, const AttentionPlan& plan, int64_t b, int64_t h, int64_t i,
                     float* weights) {
  const Shape q = heads_outer(scores.q.shape(), scores.axis), k = heads_outer(scores.k.shape(), scores.axis);
  const PlanRow row = plan.row(b, h, i, k[2]);
  const float* query = row_of(scores.q, scores.axis, b, h, i);
  std::vector<double> distance(static_cast<size_t>(k[2]), std::numeric_limits<double>::infinity());
  double least = std::numeric_limits<double>::infinity();
  int64_t nearest = 0;  // how many nearest keys there are
  for (int64_t j = row.begin; j < row.end; ++j) {
    if (!row.sees(j)) continue;
    const float* key = row_of(scores.k, scores.axis, b, h / (q[1] / k[1]), j);
    double squares = 0;
    for (int64_t a = 0; a < q[3]; ++a) squares += (double{query[a]} - key[a]) * (double{query[a]} - key[a]);
    if (!(squares <= least) || std::isinf(squares)) continue;
    nearest = squares < least ? 1 : nearest + 1;
    distance[static_cast<size_t>(j)] = least = squares;
  }
  if (nearest == 0) return false;
  for (int64_t j = 0; j < k[2]; ++j)
    weights[j] = distance[static_cast<size_t>(j)] == least ? 1 / static_cast<float>(nearest) : 0;
  return true;
}

int64_t fill_nearest(const PairScores& scores, const Tensor& v, const AttentionPlan& plan, const Tensor& lse,
                     Tensor& out) {
  const int64_t width = v.size(3);
  int64_t filled = 0;
  for_nearest_rows(scores, plan, lse,
                   [&](int64_t b, int64_t h, int64_t key_head, int64_t i, const std::vector<float>& weights) {
                     float* to = row_of(out, scores.axis, b, h, i);
                     for (size_t j = 0; j < weights.size(); ++j)
                       for (int64_t a = 0; a < width && weights[j] > 0; ++a)
                         to[a] += weights[j] * row_of(v, scores.axis, b, key_head, static_cast<int64_t>(j))[a];
                     ++filled;
                   });
  return filled;
}

void pull_nearest(const PairScores& scores, const AttentionPlan& plan, const Tensor& lse, const Tensor& dout,
                  Tensor& dv) {
  const int64_t width = dv.size(3);
  for_nearest_rows(scores, plan, lse,
                   [&](int64_t b, int64_t h, int64_t key_head, int64_t i, const std::vector<float>& weights) {
                     const float* from = row_of(dout, scores.axis, b, h, i);
                     for (size_t j = 0; j < weights.size(); ++j)
                       for (int64_t a = 0; a < width && weights[j] > 0; ++a)
                         row_of(dv, scores.axis, b, key_head, static_cast<int64_t>(j))[a] += weights[j] * from[a];
                   });
}

}  // namespace qkv
