// Rows of a Gaussian attention whose scores are all beyond a float: every key is so far, in widths, that its score is
// -inf. The limit of the softmax is the nearest keys in equal shares, and so is what these rows see; regression does
// the same far from its data.
#pragma once

#include <cstdint>

#include "qkv/ops/attention.h"

namespace qkv {

/// out (B, H, Lq, Dv), by the axis of the scores: the rows whose lse is -inf become the mean value of their nearest
/// keys. Returns how many of them there are; rows that see no key stay as they are.
int64_t fill_nearest(const PairScores& scores, const Tensor& v, const AttentionPlan& plan, const Tensor& lse,
                     Tensor& out);

/// dv += what those rows give.
void pull_nearest(const PairScores& scores, const AttentionPlan& plan, const Tensor& lse, const Tensor& dout,
                  Tensor& dv);

/// The weights of such a row; false, and nothing written, if it sees no key.
bool nearest_weights(const PairScores& scores, const AttentionPlan& plan, int64_t b, int64_t h, int64_t i,
                     float* weights);

}  // namespace qkv
