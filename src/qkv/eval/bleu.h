// BLEU (Papineni et al., 2002) as sacreBLEU 2 computes and prints it (Post, 2018).
#pragma once

#include <array>
#include <optional>

#include "qkv/core/api.h"
#include "qkv/eval/bleu_tokenizers.h"
#include "qkv/eval/metric.h"

namespace QKV_API qkv {

/// What replaces a precision of 0 (Chen and Cherry, 2014). exp: a value halved with each zero. floor: a small count.
/// add_k: k is added to all orders above the first. none: 0.
enum class Smoothing { exp, floor, add_k, none };
constexpr std::array<std::string_view, 4> names(Smoothing) { return {"exp", "floor", "add-k", "none"}; }

struct BleuOptions {
  BleuTokenizer tokenizer = BleuTokenizer::v13a;
  Smoothing smoothing = Smoothing::exp;
  std::optional<double> smooth_value = std::nullopt;  // for floor (default 0.1) and add-k (default 1)
  bool lowercase = false;
  bool effective_order = false;  // leave out orders that the hypothesis is too short for; for scoring single sentences
};

inline constexpr size_t kBleuOrder = 4;

struct BleuScore {
  double score = 0;                             // 0 to 100
  std::array<double, kBleuOrder> precisions{};  // 0 to 100, smoothed
  double brevity_penalty = 1;
  int64_t hypothesis_length = 0;
  int64_t reference_length = 0;  // of the closest reference, the shorter of two equally close ones
  /// Hypothesis length / reference length; 0 without a reference.
  double ratio() const;
};

class Bleu : public Metric {
 public:
  explicit Bleu(const BleuOptions& options = {}) : options_(options) {}
  std::string name() const override { return "BLEU"; }
  std::string settings() const override;
  /// Lengths of hypothesis and reference, matches of order 1 to 4, n-grams of order 1 to 4.
  size_t width() const override { return 2 + 2 * kBleuOrder; }
  void count(std::string_view hypothesis, std::span<const std::string_view> references,
             std::span<double> row) const override;
  double score(std::span<const double> sums) const override { return full_score(sums).score; }
  /// "60.0/33.3/20.0/10.0 (BP = 1.000 ratio = 1.000 hyp_len = 5 ref_len = 5)".
  std::string detail(std::span<const double> sums) const override;
  bool tokenizes() const override { return options_.tokenizer != BleuTokenizer::none; }

  BleuScore full_score(std::span<const double> sums) const;

 private:
  BleuOptions options_;
};

}  // namespace qkv
