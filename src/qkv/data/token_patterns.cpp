// The patterns of byte-level tokenizers, by hand: every branch reads on from one place, so that time is linear.
#include <algorithm>
#include <array>

#include "qkv/data/characters.h"
#include "qkv/data/token_splitters.h"

namespace qkv {
namespace {

// The end of the characters from `at` on that are of a kind, `most` of them at most.
template <class IsKind>
size_t run(std::string_view text, size_t at, IsKind is_kind, size_t most = SIZE_MAX) {
  for (size_t n = 0; n < most && at < text.size(); ++n) {
    const Character c = character(text, at);
    if (!is_kind(c.code)) break;
    at += c.bytes;
  }
  return at;
}

bool is_other(int32_t code) { return !is_space(code) && !is_letter(code) && !is_number(code); }
bool is_line_end(int32_t code) { return code == '\r' || code == '\n'; }

// 's|'t|'re|'ve|'m|'ll|'d; in any case, ſ (U+017F) is an s as well.
size_t contraction(std::string_view text, size_t at, bool any_case) {
  if (text[at] != '\'') return at;
  const std::string_view rest = text.substr(at + 1, 2);
  std::string small(rest);
  if (any_case)
    for (char& c : small) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"})
    if (small.starts_with(ending)) return at + 1 + ending.size();
  return any_case && rest == "\xC5\xBF" ? at + 3 : at;
}

// \s+(?!\S)|\s+: blanks but for the last one before something else, or one alone.
size_t blanks(std::string_view text, size_t at) {
  const size_t end = run(text, at, is_space);
  if (end == text.size() || end == at) return end;
  const size_t last = end - character_before(text, end).bytes;
  return last > at ? last : end;
}

size_t gpt2(std::string_view text, size_t at) {
  if (const size_t end = contraction(text, at, false); end > at) return end;
  const size_t from = text[at] == ' ' ? at + 1 : at;  // " ?" belongs to what follows
  if (from < text.size()) {
    const int32_t code = character(text, from).code;
    if (is_letter(code)) return run(text, from, is_letter);
    if (is_number(code)) return run(text, from, is_number);
    if (!is_space(code)) return run(text, from, is_other);
  }
  return blanks(text, at);
}

size_t llama3(std::string_view text, size_t at, size_t digits) {
  if (const size_t end = contraction(text, at, true); end > at) return end;
  const Character first = character(text, at);
  // [^\r\n\p{L}\p{N}]?\p{L}+
  if (is_letter(first.code)) return run(text, at, is_letter);
  if (!is_number(first.code) && !is_line_end(first.code))
    if (const size_t end = run(text, at + first.bytes, is_letter); end > at + first.bytes) return end;
  if (is_number(first.code)) return run(text, at, is_number, digits);
  // " ?[^\s\p{L}\p{N}]+[\r\n]*"
  const size_t from = first.code == ' ' ? at + 1 : at;
  if (const size_t end = run(text, from, is_other); end > from) return run(text, end, is_line_end);
  // \s*[\r\n]+: up to the last line end in these blanks
  const size_t end = run(text, at, is_space);
  for (size_t i = end; i > at; --i)
    if (is_line_end(text[i - 1])) return i;
  return blanks(text, at);
}

}  // namespace

size_t match_pattern(TokenPattern pattern, std::string_view text, size_t at) {
  switch (pattern) {
    case TokenPattern::gpt2:
      return gpt2(text, at);
    case TokenPattern::llama3:
      return llama3(text, at, 3);
    case TokenPattern::qwen2:
      return llama3(text, at, 1);
    case TokenPattern::words: {
      const size_t end = run(text, at, is_word);
      return end > at ? end : run(text, at, [](int32_t code) { return !is_word(code) && !is_space(code); });
    }
    case TokenPattern::blanks:
      return run(text, at, is_space);
    case TokenPattern::digits:
      return run(text, at, is_number, 1);
  }
  return at;
}

}  // namespace qkv
