// chrF: F scores of character (and word) n-grams.
#include "qkv/eval/chrf.h"

#include <fmt/format.h>

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/eval/ngrams.h"
#include "qkv/eval/unicode.h"

namespace qkv {
namespace {

Symbols characters(std::string_view line, bool whitespace) {
  Symbols out;
  for (char32_t c : code_points(line))
    if (whitespace || !is_space(c)) out.push_back(static_cast<int32_t>(c));
  return out;
}

bool is_ascii_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

bool is_one_character(std::string_view word) {
  return std::count_if(word.begin(), word.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }) == 1;
}

// Words with one punctuation mark split off: the last character if it is one, else the first.
std::vector<std::string_view> chrf_words(std::string_view line) {
  std::vector<std::string_view> out;
  for (std::string_view word : split_whitespace(line)) {
    size_t cut = 0;
    if (!is_one_character(word))
      cut = is_ascii_punctuation(word.back()) ? word.size() - 1 : is_ascii_punctuation(word.front()) ? 1 : 0;
    if (cut > 0) out.push_back(word.substr(0, cut));
    out.push_back(word.substr(cut));
  }
  return out;
}

// Appends the three counts of every order, for each reference.
void append_counts(std::vector<Symbols> sequences, int order, std::vector<std::vector<double>>& rows) {
  NgramCounter grams(std::move(sequences));
  for (int n = 0; n < order; ++n) {
    grams.next_order();
    for (size_t r = 0; r < rows.size(); ++r) {
      int64_t matches = 0;
      for (size_t g = 0; g < grams.different(); ++g) matches += std::min(grams.count(g, 0), grams.count(g, r + 1));
      const int64_t in_reference = grams.total(r + 1);
      const int64_t in_hypothesis =
          in_reference > 0 ? grams.total(0) : 0;  // an order missing from the reference does not count
      for (int64_t number : {in_hypothesis, in_reference, matches}) rows[r].push_back(static_cast<double>(number));
    }
  }
}

}  // namespace

Chrf::Chrf(const ChrfOptions& options) : options_(options) {
  check(options.char_order >= 1 && options.word_order >= 0 && options.beta >= 1,
        "[chrF] expected char_order >= 1, word_order >= 0 and beta >= 1, got ", options.char_order, ", ",
        options.word_order, " and ", options.beta);
}

std::string Chrf::name() const {
  return fmt::format("chrF{}{}", options_.beta, std::string(static_cast<size_t>(options_.word_order), '+'));
}

std::string Chrf::settings() const {
  return fmt::format("case:{}|eff:{}|nc:{}|nw:{}|space:{}", options_.lowercase ? "lc" : "mixed",
                     options_.eps_smoothing ? "no" : "yes", options_.char_order, options_.word_order,
                     options_.whitespace ? "yes" : "no");
}

void Chrf::count(std::string_view hypothesis, std::span<const std::string_view> references,
                 std::span<double> row) const {
  std::vector<std::string> lines = {std::string(hypothesis)};
  lines.insert(lines.end(), references.begin(), references.end());
  if (options_.lowercase)
    for (std::string& line : lines) line = full_lower_case(line);

  std::vector<std::vector<double>> rows(references.size());
  std::vector<Symbols> symbols;
  symbols.reserve(lines.size());
  for (const std::string& line : lines) symbols.push_back(characters(line, options_.whitespace));
  append_counts(std::move(symbols), options_.char_order, rows);
  if (options_.word_order > 0) {
    std::vector<std::vector<std::string_view>> words;
    words.reserve(lines.size());
    for (const std::string& line : lines) words.push_back(chrf_words(line));
    append_counts(word_numbers(words), options_.word_order, rows);
  }

  size_t best = 0;
  for (size_t r = 1; r < rows.size(); ++r)
    if (score(rows[r]) > score(rows[best])) best = r;
  std::copy(rows[best].begin(), rows[best].end(), row.begin());
}

double Chrf::score(std::span<const double> sums) const {
  constexpr double kEps = 1e-16;
  const double factor = static_cast<double>(options_.beta) * options_.beta;
  double smoothed = 0, precisions = 0, recalls = 0;
  int effective = 0;
  for (size_t n = 0; n < orders(); ++n) {
    const double hyp = sums[3 * n], ref = sums[3 * n + 1], match = sums[3 * n + 2];
    const double precision = hyp > 0 ? match / hyp : kEps, recall = ref > 0 ? match / ref : kEps;
    const double denominator = factor * precision + recall;
    smoothed += denominator > 0 ? (1 + factor) * precision * recall / denominator : kEps;
    if (hyp > 0 && ref > 0) {
      precisions += precision;
      recalls += recall;
      ++effective;
    }
  }
  if (options_.eps_smoothing) return 100 * smoothed / static_cast<double>(orders());
  if (effective == 0) return 0;
  const double precision = precisions / effective, recall = recalls / effective;
  if (precision + recall == 0) return 0;
  const double f = (1 + factor) * precision * recall / (factor * precision + recall);
  return 100 * f;
}

}  // namespace qkv
