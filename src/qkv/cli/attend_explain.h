// qkv attend --explain: every step of an attention, with shapes, and with numbers when they are few.
#pragma once

#include <string>

#include "qkv/attention/any_scorer.h"
#include "qkv/attention/attend.h"

namespace qkv::cli {

/// A tensor as lines of numbers, indented; (B, H, L, D) as one block a head.
std::string numbers_text(const Tensor& x, const std::string& indent);

struct ExplainInput {
  const AnyScorer& scorer;
  const Mask& mask;
  const Tensor &q, &k, &v;
};
std::string explanation(const ExplainInput& input, const Attended& attended);

}  // namespace qkv::cli
