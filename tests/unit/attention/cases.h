// Every scorer and every mask with its definition in double; the attention tests loop over them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "qkv/attention/any_scorer.h"
#include "qkv/attention/attend.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {

/// a(q, k) for one query and one key, from the scorer's parameters.
using PlainScore = std::function<double(const Arrays& parameters, const double* q, const double* k)>;

/// attend with a scorer made from parameters, and the same scorer as one chosen at run time.
struct CaseScorer {
  std::function<Attended(const Tensors& parameters, const Tensor& q, const Tensor& k, const Tensor& v, const Mask&,
                         const Run&, const AttendOptions&)>
      attend;
  std::function<AnyScorer(const Tensors& parameters)> any;
  Attended operator()(const Tensors& parameters, const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask,
                      const Run& run, const AttendOptions& options) const {
    return attend(parameters, q, k, v, mask, run, options);
  }
};

struct ScorerCase {
  std::string name;
  int64_t query_width, key_width;
  Tensors parameters;
  CaseScorer attend;
  PlainScore score;
  bool by_distance = false;  // nearer keys weigh at least as much
  bool by_query = true;      // weights depend on the query
  double gradient_tolerance = 1e-5;
};
std::vector<ScorerCase> scorer_cases();

struct AttendSizes {
  int64_t batch = 2, heads = 2, key_heads = 2, queries = 5, keys = 7, value_width = 4;
};

struct MaskCase {
  std::string name;
  std::function<Mask(const AttendSizes&)> mask;
  std::function<bool(const AttendSizes&, int64_t b, int64_t h, int64_t i, int64_t j)> sees;
  std::function<double(const AttendSizes&, int64_t b, int64_t h, int64_t i, int64_t j)> bias = nullptr;
};
std::vector<MaskCase> mask_cases();

struct PlainResult {
  Array output;   // (B, H, Lq, Dv)
  Array weights;  // (B, H, Lq, Lk)
  int64_t empty_rows = 0;
};
/// Attention by its definition, with loops in double.
PlainResult plain_attention(const PlainScore& score, const Arrays& parameters, const Array& q, const Array& k,
                            const Array& v, const std::function<bool(int64_t, int64_t, int64_t, int64_t)>& sees,
                            const std::function<double(int64_t, int64_t, int64_t, int64_t)>& bias);
PlainResult plain_attention(const ScorerCase& scorer, const MaskCase& mask, const AttendSizes& sizes, const Tensor& q,
                            const Tensor& k, const Tensor& v);

/// Random queries, keys and values of a case.
struct QueryKeyValue {
  Tensor q, k, v;
};
QueryKeyValue random_inputs(const ScorerCase& scorer, const AttendSizes& sizes, uint64_t seed = 1);

/// |a - b| <= tolerance * (|b| + max|b|) for every element.
void expect_near(const Tensor& a, const Array& b, double tolerance, const std::string& what);
/// The same bits.
void expect_same(const Tensor& a, const Tensor& b, const std::string& what);

}  // namespace qkv::tests
