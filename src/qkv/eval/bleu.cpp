// BLEU: clipped n-gram matches, smoothing, brevity penalty. Every step is in sacreBLEU's order, so that no printed
// digit differs.
#include "qkv/eval/bleu.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qkv/core/names.h"
#include "qkv/eval/ngrams.h"
#include "qkv/eval/unicode.h"

namespace qkv {
namespace {

double smooth_value(const BleuOptions& options) {
  return options.smooth_value.value_or(options.smoothing == Smoothing::floor ? 0.1 : 1.0);
}

int64_t closest_length(int64_t hypothesis, std::span<const int64_t> references) {
  return *std::min_element(references.begin(), references.end(), [hypothesis](int64_t a, int64_t b) {
    const int64_t from_a = std::abs(hypothesis - a), from_b = std::abs(hypothesis - b);
    return from_a != from_b ? from_a < from_b : a < b;
  });
}

}  // namespace

double BleuScore::ratio() const {
  return reference_length == 0 ? 0.0 : static_cast<double>(hypothesis_length) / static_cast<double>(reference_length);
}

std::string Bleu::settings() const {
  std::string smooth(name_of(options_.smoothing));
  if (options_.smoothing == Smoothing::floor || options_.smoothing == Smoothing::add_k)
    smooth += fmt::format("[{:.2f}]", smooth_value(options_));
  return fmt::format("case:{}|eff:{}|tok:{}|smooth:{}", options_.lowercase ? "lc" : "mixed",
                     options_.effective_order ? "yes" : "no", name_of(options_.tokenizer), smooth);
}

void Bleu::count(std::string_view hypothesis, std::span<const std::string_view> references,
                 std::span<double> row) const {
  std::vector<std::string> lines;
  lines.reserve(1 + references.size());  // the words are views into the lines
  std::vector<std::vector<std::string_view>> words;
  const auto prepare = [&](std::string_view line) {
    const std::string lowered = options_.lowercase ? full_lower_case(line) : std::string(line);
    words.push_back(split_whitespace(lines.emplace_back(tokenized(right_stripped(lowered), options_.tokenizer))));
  };
  prepare(hypothesis);
  for (std::string_view reference : references) prepare(reference);

  const auto length = static_cast<int64_t>(words[0].size());
  std::vector<int64_t> reference_lengths;
  for (size_t r = 1; r < words.size(); ++r) reference_lengths.push_back(static_cast<int64_t>(words[r].size()));
  row[0] = static_cast<double>(length);
  row[1] = static_cast<double>(closest_length(length, reference_lengths));

  NgramCounter grams(word_numbers(words));
  for (size_t n = 0; n < kBleuOrder; ++n) {
    grams.next_order();
    int64_t matches = 0;
    for (size_t g = 0; g < grams.different(); ++g) {
      int32_t allowed = 0;  // the largest count in any reference
      for (size_t r = 1; r < words.size(); ++r) allowed = std::max(allowed, grams.count(g, r));
      matches += std::min(grams.count(g, 0), allowed);
    }
    row[2 + n] = static_cast<double>(matches);
    row[2 + kBleuOrder + n] = static_cast<double>(grams.total(0));
  }
}

BleuScore Bleu::full_score(std::span<const double> sums) const {
  BleuScore out;
  out.hypothesis_length = static_cast<int64_t>(sums[0]);
  out.reference_length = static_cast<int64_t>(sums[1]);
  if (sums[0] < sums[1]) out.brevity_penalty = sums[0] > 0 ? std::exp(1 - sums[1] / sums[0]) : 0.0;

  const auto matches = sums.subspan(2, kBleuOrder), totals = sums.subspan(2 + kBleuOrder, kBleuOrder);
  if (std::all_of(matches.begin(), matches.end(), [](double m) { return m == 0; })) return out;  // nothing to smooth

  double halving = 1;
  size_t orders = kBleuOrder;
  for (size_t n = 0; n < kBleuOrder; ++n) {
    const double added = options_.smoothing == Smoothing::add_k && n > 0 ? smooth_value(options_) : 0;
    const double match = matches[n] + added, total = totals[n] + added;
    if (total == 0) break;
    if (options_.effective_order) orders = n + 1;
    if (match != 0) {
      out.precisions[n] = 100 * match / total;
    } else if (options_.smoothing == Smoothing::exp) {
      halving *= 2;
      out.precisions[n] = 100 / (halving * total);
    } else if (options_.smoothing == Smoothing::floor) {
      out.precisions[n] = 100 * smooth_value(options_) / total;
    }
  }
  double logs = 0;
  constexpr double kLogOfZero = -9999999999;
  for (size_t n = 0; n < orders; ++n) logs += out.precisions[n] == 0 ? kLogOfZero : std::log(out.precisions[n]);
  out.score = out.brevity_penalty * std::exp(logs / static_cast<double>(orders));
  return out;
}

std::string Bleu::detail(std::span<const double> sums) const {
  const BleuScore s = full_score(sums);
  std::string precisions;
  for (double p : s.precisions) precisions += fmt::format("{}{:.1f}", precisions.empty() ? "" : "/", p);
  return fmt::format("{} (BP = {:.3f} ratio = {:.3f} hyp_len = {} ref_len = {})", precisions, s.brevity_penalty,
                     s.ratio(), s.hypothesis_length, s.reference_length);
}

}  // namespace qkv
