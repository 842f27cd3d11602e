// The functions of utf8proc that qkv uses, with the tables of the browser (or of Node) in place of its own.
#include <emscripten.h>
#include <utf8proc.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

// Category in the order of utf8proc_category_t.
EM_JS(int, qkv_category_of, (int code), {
  const names = "Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co".split(" ");
  if (!Module.categories)
    Module.categories =
        names.map(function(name) { return new RegExp(String.fromCharCode(92) + "p{" + name + "}", "u"); });
  const text = String.fromCodePoint(code);
  return Math.max(0, Module.categories.findIndex(function(one) { return one.test(text); }));
});
// Its other case if that is one character, else itself.
EM_JS(int, qkv_case_of, (int code, int upper), {
  const text = String.fromCodePoint(code);
  const other = upper ? text.toUpperCase() : text.toLowerCase();
  const points = Array.from(other);
  return points.length == 1 ? points[0].codePointAt(0) : code;
});
// A normal form of UTF-8 text as new memory.
EM_JS(char*, qkv_normal_form, (const char* text, int bytes, int compatible), {
  const out = UTF8ToString(text, bytes).normalize(compatible ? "NFKC" : "NFC");
  const size = lengthBytesUTF8(out) + 1;
  const at = _malloc(size);
  stringToUTF8(out, at, size);
  return at;
});

namespace {

constexpr int kMostCode = 0x10ffff;
bool is_code(utf8proc_int32_t code) { return code >= 0 && code <= kMostCode; }
bool is_surrogate(utf8proc_int32_t code) { return code >= 0xd800 && code < 0xe000; }

}  // namespace

extern "C" {

const char* utf8proc_version(void) { return "of the browser"; }

utf8proc_ssize_t utf8proc_iterate(const utf8proc_uint8_t* text, utf8proc_ssize_t size, utf8proc_int32_t* code) {
  *code = -1;
  if (size == 0) return 0;
  const unsigned first = text[0];
  const int length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (length == 0 || (size >= 0 && length > size)) return UTF8PROC_ERROR_INVALIDUTF8;
  utf8proc_int32_t value = length == 1 ? static_cast<int>(first) : static_cast<int>(first & (0x7fu >> length));
  for (int i = 1; i < length; ++i) {
    if ((text[i] & 0xc0u) != 0x80) return UTF8PROC_ERROR_INVALIDUTF8;
    value = value << 6 | (text[i] & 0x3f);
  }
  const bool too_long = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  if (too_long || !is_code(value) || is_surrogate(value)) return UTF8PROC_ERROR_INVALIDUTF8;
  *code = value;
  return length;
}

utf8proc_ssize_t utf8proc_encode_char(utf8proc_int32_t code, utf8proc_uint8_t* out) {
  if (!is_code(code)) return 0;
  const int length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  if (length == 1) {
    out[0] = static_cast<utf8proc_uint8_t>(code);
    return 1;
  }
  for (int i = length - 1; i > 0; --i, code >>= 6) out[i] = static_cast<utf8proc_uint8_t>(0x80 | (code & 0x3f));
  out[0] = static_cast<utf8proc_uint8_t>((0xf00 >> length) | code);
  return length;
}

utf8proc_category_t utf8proc_category(utf8proc_int32_t code) {
  if (!is_code(code)) return UTF8PROC_CATEGORY_CN;
  if (is_surrogate(code)) return UTF8PROC_CATEGORY_CS;
  static std::array<signed char, 0x10000> known = [] {
    std::array<signed char, 0x10000> none;
    none.fill(-1);
    return none;
  }();
  if (code >= std::ssize(known)) return static_cast<utf8proc_category_t>(qkv_category_of(code));
  signed char& category = known[static_cast<size_t>(code)];
  if (category < 0) category = static_cast<signed char>(qkv_category_of(code));
  return static_cast<utf8proc_category_t>(category);
}

utf8proc_int32_t utf8proc_tolower(utf8proc_int32_t code) {
  return is_code(code) && !is_surrogate(code) ? qkv_case_of(code, 0) : code;
}
utf8proc_int32_t utf8proc_toupper(utf8proc_int32_t code) {
  return is_code(code) && !is_surrogate(code) ? qkv_case_of(code, 1) : code;
}

utf8proc_ssize_t utf8proc_map(const utf8proc_uint8_t* text, utf8proc_ssize_t size, utf8proc_uint8_t** out,
                              utf8proc_option_t options) {
  *out = nullptr;
  utf8proc_int32_t code = 0;
  for (utf8proc_ssize_t at = 0; at < size;) {
    const auto length = utf8proc_iterate(text + at, size - at, &code);
    if (length < 0) return length;
    at += length;
  }
  char* const made = qkv_normal_form(reinterpret_cast<const char*>(text), static_cast<int>(size),
                                     (options & UTF8PROC_COMPAT) != 0 ? 1 : 0);
  *out = reinterpret_cast<utf8proc_uint8_t*>(made);
  return static_cast<utf8proc_ssize_t>(std::strlen(made));
}

}  // extern "C"
