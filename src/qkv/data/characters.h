// Characters of UTF-8 text and their Unicode classes, as tokenizers use them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace qkv {

/// A character and its bytes. Text is known to be UTF-8.
struct Character {
  int32_t code = 0;
  uint32_t bytes = 0;
};

/// The character at byte `at` < text.size().
Character character(std::string_view text, size_t at);
/// The last character before byte `at` > 0.
Character character_before(std::string_view text, size_t at);
void append_character(std::string& out, int32_t code);

bool is_letter(int32_t code);           // \p{L}
bool is_number(int32_t code);           // \p{N}
bool is_space(int32_t code);            // \s
bool is_word(int32_t code);             // \w
bool is_punctuation(int32_t code);      // \p{P}
bool is_mark(int32_t code);             // \p{M}
bool is_nonspacing_mark(int32_t code);  // \p{Mn}
bool is_control(int32_t code);          // control, format, private use: what BERT removes, but for \t, \n and \r
int32_t lower_case(int32_t code);

/// Text of bytes that need not be UTF-8: U+FFFD for each longest part that cannot be a character.
std::string with_replacements(std::string_view bytes);

}  // namespace qkv
