// Classes over utf8proc, with short cuts for ASCII.
#include "qkv/data/characters.h"

#include <utf8proc.h>

namespace qkv {

Character character(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(text[at + i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {static_cast<int32_t>(first), 1};
  if (first < 0xe0) return {static_cast<int32_t>((first & 31) << 6 | (byte(1) & 63)), 2};
  if (first < 0xf0) return {static_cast<int32_t>((first & 15) << 12 | (byte(1) & 63) << 6 | (byte(2) & 63)), 3};
  return {static_cast<int32_t>((first & 7) << 18 | (byte(1) & 63) << 12 | (byte(2) & 63) << 6 | (byte(3) & 63)), 4};
}

Character character_before(std::string_view text, size_t at) {
  do --at;
  while ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return character(text, at);
}

void append_character(std::string& out, int32_t code) {
  utf8proc_uint8_t bytes[4];
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(utf8proc_encode_char(code, bytes)));
}

bool is_letter(int32_t code) {
  if (code < 0x80) return (code | 32) >= 'a' && (code | 32) <= 'z';
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool is_number(int32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool is_space(int32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  if (code == 0x85) return true;
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP;
}

bool is_mark(int32_t code) {
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(int32_t code) { return utf8proc_category(code) == UTF8PROC_CATEGORY_MN; }

bool is_word(int32_t code) {
  if (code < 0x80) return is_letter(code) || is_number(code) || code == '_';
  switch (utf8proc_category(code)) {
    case UTF8PROC_CATEGORY_NO:
      return false;
    case UTF8PROC_CATEGORY_PC:
      return true;
    case UTF8PROC_CATEGORY_CF:  // the two joiners
      return code == 0x200c || code == 0x200d;
    case UTF8PROC_CATEGORY_SO:  // letters in circles and squares
      return (code >= 0x24b6 && code <= 0x24e9) || (code >= 0x1f130 && code <= 0x1f149) ||
             (code >= 0x1f150 && code <= 0x1f169) || (code >= 0x1f170 && code <= 0x1f189);
    default:
      return is_letter(code) || is_number(code) || is_mark(code);
  }
}

bool is_punctuation(int32_t code) {
  const auto category = utf8proc_category(code);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_control(int32_t code) {
  if (code < 0x80) return (code < 32 && code != '\t' && code != '\n' && code != '\r') || code == 127;
  const auto category = utf8proc_category(code);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CO;
}

int32_t lower_case(int32_t code) {
  if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 32 : code;
  return utf8proc_tolower(code);
}

std::string with_replacements(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  const auto byte = [&](size_t i) { return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0; };
  for (size_t at = 0; at < bytes.size();) {
    const int first = byte(at);
    // How many bytes the character has, and which second byte is possible (Unicode, table 3-7).
    size_t length = first < 0x80 ? 1 : first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : 0;
    if (first >= 0xf0 && first < 0xf5) length = 4;
    const int low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    const int high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    size_t good = 1;
    while (good < length && byte(at + good) >= (good == 1 ? low : 0x80) && byte(at + good) <= (good == 1 ? high : 0xbf))
      ++good;
    if (good == length)
      out += bytes.substr(at, length);
    else
      out += "\xEF\xBF\xBD";
    at += good;
  }
  return out;
}

}  // namespace qkv
