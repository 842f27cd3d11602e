// Rows of a Gaussian attention whose scores are all outside the range of a float: every key is so far away, in widths,
// that its score is -inf. In the limit the softmax shares its weight equally among the nearest keys, and that is what
// these rows get; regression does the same far from its data.
#pragma once

#include <cstdint>

#include "qkv/ops/attention.h"

namespace qkv {

/// out (B, H, Lq, Dv), laid out by the axis of the scores: rows whose lse is -inf become the mean value of their
/// nearest keys. Returns the number of such rows; rows that see no key stay as they are.
int64_t fill_nearest(const PairScores& scores, const Tensor& v, const AttentionPlan& plan, const Tensor& lse,
                     Tensor& out);

/// dv += the contribution of those rows.
void pull_nearest(const PairScores& scores, const AttentionPlan& plan, const Tensor& lse, const Tensor& dout,
                  Tensor& dv);

/// The weights of such a row; false, and nothing written, if it sees no key.
bool nearest_weights(const PairScores& scores, const AttentionPlan& plan, int64_t b, int64_t h, int64_t i,
                     float* weights);

}  // namespace qkv
