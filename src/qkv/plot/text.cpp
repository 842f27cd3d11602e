// UTF-8, character widths and escaping.
#include "qkv/plot/text.h"

#include <array>
#include <charconv>
#include <cmath>

namespace qkv::plotting {
namespace {

struct PointRange {
  char32_t first, last;
};

// Unicode's East Asian Wide and Fullwidth blocks, and the emoji planes.
constexpr PointRange kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},  {0x23E9, 0x23EC}, {0x25FD, 0x25FE}, {0x2614, 0x2615},
    {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},  {0x4E00, 0x9FFF}, {0xA000, 0xA4CF}, {0xA960, 0xA97F},
    {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},  {0xFF00, 0xFF60}, {0xFFE0, 0xFFE6}, {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
constexpr PointRange kNarrowest[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F},
                                     {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E},
                                     {0x2060, 0x2064}, {0x20D0, 0x20FF}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
                                     {0xFEFF, 0xFEFF}};

template <size_t N>
bool within(char32_t point, const PointRange (&ranges)[N]) {
  for (const PointRange& r : ranges)
    if (point >= r.first && point <= r.last) return true;
  return false;
}

bool control(char32_t p) { return p < 0x20 || (p >= 0x7F && p < 0xA0) || (p & 0xFFFE) == 0xFFFE; }

// Returns the code point that starts at text[i] and moves i past it; an ill-formed byte gives U+FFFD.
char32_t next_point(std::string_view text, size_t& i) {
  const auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char lead = byte(i++);
  if (lead < 0x80) return lead;
  const int more = lead >= 0xF0 && lead <= 0xF4  ? 3
                   : lead >= 0xE0 && lead < 0xF0 ? 2
                   : lead >= 0xC2 && lead < 0xE0 ? 1
                                                 : 0;
  if (more == 0 || i + more > text.size()) return 0xFFFD;
  char32_t point = lead & (0x3F >> more);
  for (int j = 0; j < more; ++j) {
    if ((byte(i + j) & 0xC0) != 0x80) return 0xFFFD;
    point = point << 6 | (byte(i + j) & 0x3F);
  }
  const char32_t least[] = {0, 0x80, 0x800, 0x10000};
  if (point < least[more] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return 0xFFFD;
  i += more;
  return point;
}

// Width of a character in units of the font size, near Helvetica's.
double em_width(char32_t p) {
  if (p >= 0x80) return 0.56 * display_width(p) - (display_width(p) == 2 ? 0.12 : 0);
  const std::string_view thin = "ijl|'", slim = " !,./:;I[]\\", third = "()-rft`\"{}", broad = "mwMW%@&";
  const char c = static_cast<char>(p);
  if (thin.find(c) != thin.npos) return 0.24;
  if (slim.find(c) != slim.npos) return 0.29;
  if (third.find(c) != third.npos) return 0.35;
  if (broad.find(c) != broad.npos) return 0.85;
  if (c >= 'A' && c <= 'Z') return 0.69;
  return 0.56;
}

}  // namespace

std::vector<char32_t> code_points(std::string_view utf8) {
  std::vector<char32_t> points;
  for (size_t i = 0; i < utf8.size();) {
    const char32_t p = next_point(utf8, i);
    points.push_back(control(p) ? 0xFFFD : p);
  }
  return points;
}

void append_utf8(std::string& out, char32_t p) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(byte); };
  if (p < 0x80) return put(p);
  if (p < 0x800) {
    put(0xC0 | p >> 6);
  } else {
    if (p < 0x10000) {
      put(0xE0 | p >> 12);
    } else {
      put(0xF0 | p >> 18);
      put(0x80 | (p >> 12 & 0x3F));
    }
    put(0x80 | (p >> 6 & 0x3F));
  }
  put(0x80 | (p & 0x3F));
}

int display_width(char32_t point) {
  if (point < 0x300) return 1;
  if (within(point, kNarrowest)) return 0;
  return within(point, kWide) ? 2 : 1;
}

int display_width(std::string_view utf8) {
  int width = 0;
  for (char32_t p : code_points(utf8)) width += display_width(p);
  return width;
}

double text_width(std::string_view utf8, double font_size) {
  double width = 0;
  for (char32_t p : code_points(utf8)) width += em_width(p);
  return width * font_size;
}

std::string shortened(std::string_view utf8, double font_size, double width) {
  if (text_width(utf8, font_size) <= width) return std::string(utf8);
  std::string out;
  double used = 0.6 * font_size;
  for (char32_t p : code_points(utf8)) {
    used += em_width(p) * font_size;
    if (used > width) break;
    append_utf8(out, p);
  }
  return out + "…";
}

std::string with_minus_signs(std::string_view utf8) {
  const auto digit = [&](size_t i) { return i < utf8.size() && utf8[i] >= '0' && utf8[i] <= '9'; };
  std::string out;
  for (size_t i = 0; i < utf8.size(); ++i) {
    const bool begins = i == 0 || std::string_view(" ([{,;:=<>|/^").find(utf8[i - 1]) != std::string_view::npos;
    const bool number = digit(i + 1) || (i + 1 < utf8.size() && utf8[i + 1] == '.' && digit(i + 2));
    if (utf8[i] == '-' && begins && number)
      out += "−";
    else
      out += utf8[i];
  }
  return out;
}

std::string xml_escaped(std::string_view utf8) {
  std::string out;
  for (char32_t p : code_points(utf8)) {
    switch (p) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        append_utf8(out, p);
    }
  }
  return out;
}

std::string svg_number(double value) {
  if (!std::isfinite(value)) value = 0;
  std::array<char, 400> digits;
  char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), value, std::chars_format::fixed, 2).ptr;
  std::string out(digits.data(), end);
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

}  // namespace qkv::plotting
