// The book's BLEU.
#include "qkv/eval/d2l_bleu.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/check.h"
#include "qkv/eval/ngrams.h"
#include "qkv/eval/unicode.h"

namespace qkv {
namespace {

std::vector<std::string_view> between_spaces(std::string_view line) {
  std::vector<std::string_view> tokens;
  for (size_t begin = 0;;) {
    const size_t space = line.find(' ', begin);
    tokens.push_back(line.substr(begin, space - begin));
    if (space == std::string_view::npos) return tokens;
    begin = space + 1;
  }
}

}  // namespace

double d2l_bleu(std::string_view prediction, std::string_view label, int k) {
  check(k >= 1, "[d2l_bleu] k must be at least 1, got ", k);
  const std::vector<std::vector<std::string_view>> tokens = {between_spaces(prediction), between_spaces(label)};
  const size_t length = tokens[0].size();
  double score = std::exp(std::min(0.0, 1 - static_cast<double>(tokens[1].size()) / static_cast<double>(length)));
  NgramCounter grams(word_numbers(tokens));
  for (int n = 1; n <= k && static_cast<size_t>(n) <= length; ++n) {
    grams.next_order();
    int64_t matches = 0;
    for (size_t g = 0; g < grams.different(); ++g) matches += std::min(grams.count(g, 0), grams.count(g, 1));
    score *= std::pow(static_cast<double>(matches) / static_cast<double>(grams.total(0)), std::pow(0.5, n));
  }
  return score;
}

D2lBleu::D2lBleu(const D2lBleuOptions& options) : options_(options) {
  check(options.k >= 1, "[d2l-bleu] k must be at least 1, got ", options.k);
}

std::string D2lBleu::settings() const { return text("case:", options_.lowercase ? "lc" : "mixed", "|k:", options_.k); }

void D2lBleu::count(std::string_view hypothesis, std::span<const std::string_view> references,
                    std::span<double> row) const {
  check(references.size() == 1, "[d2l-bleu] is defined for one reference, got ", references.size());
  row[0] = options_.lowercase ? d2l_bleu(full_lower_case(hypothesis), full_lower_case(references[0]), options_.k)
                              : d2l_bleu(hypothesis, references[0], options_.k);
  row[1] = 1;
}

}  // namespace qkv
