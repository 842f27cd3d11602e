// Attention on given tensors: numbers as text and JSON, the steps explained, weights as heat maps.
#pragma once

#include <string>

#include "qkv/attention/any_scorer.h"
#include "qkv/attention/attend.h"
#include "qkv/core/api.h"
#include "qkv/plot/figure.h"

namespace QKV_API qkv {
namespace report {

/// A tensor as lines of numbers, indented; (B, H, L, D) as one block per head.
std::string numbers_text(const Tensor& x, const std::string& indent);

struct ExplainInput {
  const AnyScorer& scorer;
  const Mask& mask;
  const Tensor &q, &k, &v;
};
/// Every step with its shape, and with its numbers if they are few.
std::string explanation(const ExplainInput& input, const Attended& attended, Language language);

/// {"shape": [2, 3], "output": [[...], [...]], "empty_rows": 0}
std::string to_json(const Attended& attended);

/// Batch rows as rows, heads as columns; without heads (`rank` is that of the queries) the batch is one row. At most 64
/// maps.
Figure weight_maps(const Weights& weights, int rank);

}  // namespace report
}  // namespace qkv
