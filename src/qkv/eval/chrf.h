// chrF and chrF++ (Popović, 2015 and 2017) as sacreBLEU 2 computes and prints them.
#pragma once

#include "qkv/core/api.h"
#include "qkv/eval/metric.h"

namespace QKV_API qkv {

struct ChrfOptions {
  int char_order = 6;
  int word_order = 0;  // 2 is chrF++
  int beta = 2;        // recall counts beta times as much as precision
  bool lowercase = false;
  bool whitespace = false;  // white space is part of character n-grams
  /// Average the F scores of all orders; else F of the averages over the orders that occur in both.
  bool eps_smoothing = false;
};

class Chrf : public Metric {
 public:
  explicit Chrf(const ChrfOptions& options = {});
  std::string name() const override;
  std::string settings() const override;
  /// For every order, characters before words: n-grams of the hypothesis, of its best reference, and in both.
  size_t width() const override { return 3 * orders(); }
  void count(std::string_view hypothesis, std::span<const std::string_view> references,
             std::span<double> row) const override;
  double score(std::span<const double> sums) const override;

 private:
  size_t orders() const { return static_cast<size_t>(options_.char_order) + static_cast<size_t>(options_.word_order); }
  ChrfOptions options_;
};

}  // namespace qkv
