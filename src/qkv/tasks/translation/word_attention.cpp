// Projection of token weights to words.
#include "qkv/tasks/translation/word_attention.h"

#include <algorithm>
#include <numeric>

#include "qkv/core/check.h"

namespace qkv {
namespace {

int32_t word_count(const std::vector<int32_t>& word_of_token) {
  return word_of_token.empty() ? 0 : *std::max_element(word_of_token.begin(), word_of_token.end()) + 1;
}

std::vector<int32_t> unit_of_token(AlignmentUnit unit, const Tokenizer& tokenizer, const std::string& text) {
  if (unit == AlignmentUnit::words) return tokenizer.word_of_token(text);
  std::vector<int32_t> each(tokenizer.encode(text).size());
  std::iota(each.begin(), each.end(), 0);
  return each;
}

}  // namespace

std::string in_units(AlignmentUnit unit, const Tokenizer& tokenizer, const std::string& text) {
  if (unit == AlignmentUnit::words) return text;
  std::string out;
  for (const std::string& token : tokenizer.tokens(tokenizer.encode(text))) out += (out.empty() ? "" : " ") + token;
  return out;
}

Tensor word_attention(const Tensor& attention, const Tokenizer& source_tokenizer, const std::string& source,
                      const Tokenizer& target_tokenizer, const std::string& target, AlignmentUnit unit) {
  const auto columns = unit_of_token(unit, source_tokenizer, source),
             rows = unit_of_token(unit, target_tokenizer, target);
  const int64_t maps = attention.size(1), keys = attention.size(2), words_in = word_count(columns),
                words_out = word_count(rows);
  check(static_cast<int64_t>(columns.size()) <= keys && static_cast<int64_t>(rows.size()) <= attention.size(0),
        "[word_attention] ", rows.size(), " and ", columns.size(), " tokens for weights ", attention.shape());
  std::vector<float> tokens(static_cast<size_t>(words_out), 0);
  for (const int32_t r : rows) ++tokens[static_cast<size_t>(r)];
  Tensor out = zeros({maps, words_out, words_in});
  for (int64_t m = 0; m < maps; ++m)
    for (size_t t = 0; t < rows.size(); ++t) {
      const float* from = attention.ptr() + (static_cast<int64_t>(t) * maps + m) * keys;
      float* to = out.mutable_ptr() + (m * words_out + rows[t]) * words_in;
      for (size_t s = 0; s < columns.size(); ++s) to[columns[s]] += from[s] / tokens[static_cast<size_t>(rows[t])];
    }
  return out;
}

Alignment align_words(const Tensor& weights, LinkRule rule, double share) {
  const int64_t words_out = weights.size(0), words_in = weights.size(1);
  if (words_in == 0) return {};
  const auto weight = [&](int64_t t, int64_t s) { return weights.ptr()[t * words_in + s]; };
  std::vector<int32_t> largest(static_cast<size_t>(words_out)), link;
  for (int64_t t = 0; t < words_out; ++t) {
    const float* row = weights.ptr() + t * words_in;
    largest[static_cast<size_t>(t)] = static_cast<int32_t>(std::max_element(row, row + words_in) - row);
  }
  link = largest;
  if (rule == LinkRule::competing) {
    std::vector<std::pair<int64_t, int64_t>> pairs;  // (target, source), by decreasing weight
    for (int64_t t = 0; t < words_out; ++t)
      for (int64_t s = 0; s < words_in; ++s)
        if (weight(t, s) >= share * static_cast<double>(weight(t, largest[static_cast<size_t>(t)])))
          pairs.emplace_back(t, s);
    std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
      return weight(a.first, a.second) > weight(b.first, b.second);
    });
    std::vector<bool> linked(static_cast<size_t>(words_out)), taken(static_cast<size_t>(words_in));
    for (const auto& [t, s] : pairs) {
      if (linked[static_cast<size_t>(t)] || taken[static_cast<size_t>(s)]) continue;
      link[static_cast<size_t>(t)] = static_cast<int32_t>(s);
      linked[static_cast<size_t>(t)] = taken[static_cast<size_t>(s)] = true;
    }
  }
  Alignment out;
  for (int64_t t = 0; t < words_out; ++t) out.push_back({link[static_cast<size_t>(t)], static_cast<int32_t>(t)});
  std::sort(out.begin(), out.end(), [](const AlignmentLink& a, const AlignmentLink& b) {
    return std::pair(a.source, a.target) < std::pair(b.source, b.target);
  });
  return out;
}

std::string pharaoh(const Alignment& alignment, int64_t base) {
  std::string out;
  for (const AlignmentLink& link : alignment)
    out += text(out.empty() ? "" : " ", link.source + base, link.possible ? "p" : "-", link.target + base);
  return out;
}

}  // namespace qkv
