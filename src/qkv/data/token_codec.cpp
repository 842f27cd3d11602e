// Offsets, words and templates of encoded texts.
#include "qkv/data/token_codec.h"

#include <algorithm>

#include "qkv/data/characters.h"

namespace qkv {

void widen_to_characters(std::string_view text, std::vector<EncodedToken>& tokens) {
  const auto is_inside = [&](size_t at) {
    return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80;
  };
  for (EncodedToken& token : tokens) {
    while (is_inside(token.begin)) --token.begin;
    while (is_inside(token.end)) ++token.end;
  }
}

void trim_blanks(std::string_view text, std::vector<EncodedToken>& tokens) {
  for (EncodedToken& token : tokens) {
    for (Character c; token.begin < token.end && is_space((c = character(text, token.begin)).code);)
      token.begin += c.bytes;
    for (Character c; token.begin < token.end && is_space((c = character_before(text, token.end)).code);)
      token.end -= c.bytes;
  }
}

void number_by_blanks(std::string_view text, std::vector<EncodedToken>& tokens) {
  size_t at = 0;
  int32_t word = -1;
  bool blank = true;
  const auto step = [&] {
    const Character c = character(text, at);
    const bool is_blank = is_space(c.code);
    word += blank && !is_blank;
    blank = is_blank;
    at += c.bytes;
  };
  for (EncodedToken& token : tokens) {
    while (at < token.begin) step();
    while ((blank || at == token.begin) && at < token.end) step();
    token.word = std::max(word, 0);
  }
}

TokenTemplate surround(std::span<const int32_t> before, std::span<const int32_t> after,
                       std::span<const int32_t> between, int32_t second_type) {
  const auto add = [](std::vector<TemplateItem>& items, std::span<const int32_t> ids, int32_t type) {
    for (const int32_t id : ids) items.push_back({TemplateItem::Kind::token, id, type});
  };
  TokenTemplate out;
  out.single.clear();
  add(out.single, before, 0);
  out.single.push_back({TemplateItem::Kind::first, 0, 0});
  out.pair = out.single;
  add(out.single, after, 0);
  add(out.pair, between, 0);
  out.pair.push_back({TemplateItem::Kind::second, 0, second_type});
  add(out.pair, after, second_type);
  return out;
}

}  // namespace qkv
