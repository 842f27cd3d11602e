// Sums over keys and means over queries.
#include "qkv/report/attention_words.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/data/text.h"

namespace qkv::report {

TokenWords token_words(const std::string& text, const EncodedText& encoded, const std::vector<std::string>& tokens) {
  TokenWords out;
  const EncodedToken* before = nullptr;
  for (const EncodedToken& token : encoded.tokens) {
    const bool goes_on = before && token.word >= 0 && token.word == before->word && token.text == before->text;
    if (!goes_on) out.words.emplace_back(token.word < 0 ? tokens[out.word.size()] : "");
    out.word.push_back(static_cast<int32_t>(out.words.size()) - 1);
    if (token.word >= 0 && token.end <= text.size()) {
      const size_t begin = goes_on ? std::max(before->end, token.begin) : token.begin;
      if (begin < token.end) out.words.back() += text.substr(begin, token.end - begin);
    }
    before = &token;
  }
  return out;
}

TokenWords token_words(const std::string& text, const std::vector<int32_t>& parts,
                       const std::vector<std::string>& tokens, size_t before) {
  const std::vector<std::string_view> words = split_blanks(text);
  TokenWords out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool inside = i >= before && i - before < parts.size();
    const bool goes_on = inside && i > before && parts[i - before] == parts[i - before - 1];
    if (!goes_on) {
      const size_t part = inside ? static_cast<size_t>(parts[i - before]) : words.size();
      out.words.push_back(part < words.size() ? std::string(words[part]) : tokens[i]);
    }
    out.word.push_back(static_cast<int32_t>(out.words.size()) - 1);
  }
  return out;
}

TokenWords token_words(const std::vector<std::string>& tokens) {
  static const std::string kBegins = "▁";
  const auto is_gap = [](const std::string& token) {  // or a special token: "</s>"
    return token == "␣" || token == "⏎" || (token.size() > 2 && token.front() == '<' && token.back() == '>');
  };
  const bool marked =
      std::ranges::any_of(tokens, [&](const std::string& t) { return t == "␣" || t == "⏎" || t.starts_with(kBegins); });
  TokenWords out;
  bool ended = true;
  for (const std::string& token : tokens) {
    const bool begins = token.starts_with(kBegins), gap = is_gap(token);
    const std::string shown = begins && token != kBegins ? token.substr(kBegins.size()) : token;
    if (!marked || begins || gap || ended)
      out.words.push_back(shown);
    else
      out.words.back() += shown;
    ended = gap;
    out.word.push_back(static_cast<int32_t>(out.words.size()) - 1);
  }
  return out;
}

Tensor between_words(const Tensor& maps, const TokenWords& queries, const TokenWords& keys) {
  if (!maps.defined()) return {};
  const int64_t n = maps.size(2), m = maps.size(3), count = maps.size(0) * maps.size(1),
                rows = std::ssize(queries.words), cols = std::ssize(keys.words);
  check(std::ssize(queries.word) == n && std::ssize(keys.word) == m, "[between_words] maps ", maps.shape(), ", but ",
        queries.word.size(), " and ", keys.word.size(), " tokens");
  std::vector<double> share(static_cast<size_t>(rows));  // of one token in its word
  for (const int32_t w : queries.word) share[static_cast<size_t>(w)] += 1;
  for (double& s : share) s = 1 / s;
  Tensor out = Tensor::empty({maps.size(0), maps.size(1), rows, cols});
  std::vector<double> sums;
  for (int64_t i = 0; i < count; ++i) {
    sums.assign(static_cast<size_t>(rows * cols), 0);
    for (int64_t q = 0; q < n; ++q) {
      const auto row = static_cast<size_t>(queries.word[static_cast<size_t>(q)]);
      for (int64_t k = 0; k < m; ++k)
        sums[row * static_cast<size_t>(cols) + static_cast<size_t>(keys.word[static_cast<size_t>(k)])] +=
            share[row] * maps.ptr()[(i * n + q) * m + k];
    }
    for (int64_t c = 0; c < rows * cols; ++c)
      out.mutable_ptr()[i * rows * cols + c] = static_cast<float>(sums[static_cast<size_t>(c)]);
  }
  return out;
}

SeenPair by_words(const SeenPair& seen, const TokenWords& source, const TokenWords& input, const TokenWords& output) {
  const bool pair = seen.attention.weights.cross.defined();
  const TokenWords& own = pair || !input.words.empty() ? input : source;
  const auto all = [&](const AttentionMaps& maps) {
    return AttentionMaps{between_words(maps.encoder, source, source), between_words(maps.decoder, own, own),
                         between_words(maps.cross, output, source)};
  };
  return {{all(seen.attention.weights), all(seen.attention.value_weighted)},
          source.words,
          pair ? input.words : source.words,
          pair ? output.words : source.words,
          seen.wanted};
}

}  // namespace qkv::report
