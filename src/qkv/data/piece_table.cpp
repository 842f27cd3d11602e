// Vocabularies, and how tokenizers write bytes.
#include <algorithm>
#include <array>

#include "qkv/data/characters.h"
#include "qkv/data/token_models.h"

namespace qkv {
namespace {

// Bytes that are visible characters keep their place; the others, in order, are U+0100 and following.
struct ByteSigns {
  std::array<std::string, 256> signs;
  std::array<int16_t, 0x144> bytes;

  ByteSigns() {
    bytes.fill(-1);
    int32_t next = 0x100;
    for (int b = 0; b < 256; ++b) {
      const bool visible = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      const int32_t code = visible ? b : next++;
      append_character(signs[static_cast<size_t>(b)], code);
      bytes[static_cast<size_t>(code)] = static_cast<int16_t>(b);
    }
  }
};

const ByteSigns& byte_signs() {
  static const ByteSigns signs;
  return signs;
}

}  // namespace

PieceTable::PieceTable(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
  ids_.reserve(pieces_.size());
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (!pieces_[i].empty()) ids_.emplace(pieces_[i], static_cast<int32_t>(i));
    longest_ = std::max(longest_, pieces_[i].size());
  }
}

const std::string& byte_sign(unsigned char byte) { return byte_signs().signs[byte]; }

std::optional<std::string> bytes_of_signs(std::string_view piece) {
  std::string out;
  for (size_t at = 0; at < piece.size();) {
    const Character c = character(piece, at);
    const bool known = static_cast<size_t>(c.code) < byte_signs().bytes.size();
    const int byte = known ? byte_signs().bytes[static_cast<size_t>(c.code)] : -1;
    if (byte < 0) return {};
    out += static_cast<char>(byte);
    at += c.bytes;
  }
  return out;
}

std::string byte_piece(unsigned char byte) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte / 16], kDigits[byte % 16], '>'};
}

std::optional<unsigned char> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return {};
  const auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    const char upper = static_cast<char>(c & ~32);
    return upper >= 'A' && upper <= 'F' ? upper - 'A' + 10 : -1;
  };
  const int high = digit(piece[3]), low = digit(piece[4]);
  if (high < 0 || low < 0) return {};
  return static_cast<unsigned char>(high * 16 + low);
}

}  // namespace qkv
