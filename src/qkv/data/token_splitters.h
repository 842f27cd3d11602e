// Pre-tokenizers: where tokenizers cut a text into words before they cut words into tokens.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/aligned_text.h"

namespace qkv {

/// A text and its words, in order; what lies between them is left out.
struct Words {
  AlignedText text;
  std::vector<Range> words;
};

class Splitter {
 public:
  virtual ~Splitter() = default;
  /// `first`: whether the text is the beginning of what is encoded.
  virtual void apply(Words& words, bool first) const = 0;
};

using Splitters = std::vector<std::unique_ptr<const Splitter>>;

/// Patterns that tokenizers cut at, matched by hand.
enum class TokenPattern {
  gpt2,    // 's|'t|'re|... ?letters| ?numbers| ?others|blanks
  llama3,  // the same with three digits at most, line ends apart, any case
  qwen2,   // the same with one digit
  words,   // \w+|[^\w\s]+
  blanks,  // \s+
  digits,  // \d or \p{N}, one by one
};
/// What becomes of a match.
enum class SplitBehavior { removed, isolated, with_previous, with_next, contiguous };

std::unique_ptr<const Splitter> bert_splitter();
std::unique_ptr<const Splitter> whitespace_splitter();  // words and signs
std::unique_ptr<const Splitter> blank_splitter();       // cuts at blanks alone
std::unique_ptr<const Splitter> punctuation_splitter(SplitBehavior behavior);
std::unique_ptr<const Splitter> digit_splitter(bool each);
/// GPT-2's: bytes are not replaced here, models of bytes read them as they are.
std::unique_ptr<const Splitter> byte_level_splitter(bool add_space, bool cut);

enum class PrependScheme { always, first, never };
std::unique_ptr<const Splitter> metaspace_splitter(std::string sign, PrependScheme scheme, bool cut);
std::unique_ptr<const Splitter> text_splitter(std::string text, SplitBehavior behavior, bool invert);
/// Cuts at what the pattern matches.
std::unique_ptr<const Splitter> pattern_splitter(TokenPattern pattern, SplitBehavior behavior, bool invert);
std::unique_ptr<const Splitter> splitter_sequence(Splitters steps);

/// The end of the pattern's match that begins at byte `at`, or `at`.
size_t match_pattern(TokenPattern pattern, std::string_view text, size_t at);

}  // namespace qkv
