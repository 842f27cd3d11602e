// The book's own sentence BLEU, which differs from BLEU: weights 1/2^n instead of 1/4 each, no smoothing, one
// reference.
#pragma once

#include "qkv/core/api.h"
#include "qkv/eval/metric.h"

namespace QKV_API qkv {

/// exp(min(0, 1 - len(label) / len(prediction))) * prod over n = 1 .. k of p_n^(1/2^n), 0 to 1; tokens are separated by
/// single spaces. A prediction shorter than k limits n to its length, as in the book's English edition; the Chinese
/// edition divides by zero there. An empty prediction is one empty token, as Python's split makes it in both.
double d2l_bleu(std::string_view prediction, std::string_view label, int k = 2);

struct D2lBleuOptions {
  int k = 2;
  bool lowercase = false;
};

/// The mean of d2l_bleu over the lines.
class D2lBleu : public Metric {
 public:
  explicit D2lBleu(const D2lBleuOptions& options = {});
  std::string name() const override { return "d2l-bleu"; }
  std::string settings() const override;
  /// The line's score, and 1.
  size_t width() const override { return 2; }
  void count(std::string_view hypothesis, std::span<const std::string_view> references,
             std::span<double> row) const override;
  double score(std::span<const double> sums) const override { return sums[0] / sums[1]; }
  double best() const override { return 1; }
  size_t most_references() const override { return 1; }

 private:
  D2lBleuOptions options_;
};

}  // namespace qkv
