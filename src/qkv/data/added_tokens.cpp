// Added tokens by a trie of their contents.
#include "qkv/data/added_tokens.h"

#include <algorithm>

#include "qkv/data/characters.h"

namespace qkv {
namespace {

size_t count_bytes(const std::vector<AddedToken>& tokens) {
  size_t bytes = 0;
  for (const AddedToken& token : tokens) bytes += token.content.size();
  return bytes;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)), nodes_(count_bytes(tokens_)), ends_{-1} {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    int32_t node = 0;
    for (const char c : tokens_[i].content) {
      const int32_t byte = static_cast<unsigned char>(c);
      if (nodes_.add(node, byte, {static_cast<int32_t>(ends_.size()), 0})) ends_.push_back(-1);
      node = nodes_.find(node, byte)->first;
    }
    if (node > 0) ends_[static_cast<size_t>(node)] = static_cast<int32_t>(i);
  }
}

std::vector<AddedPart> AddedTokens::split(std::string_view text) const {
  std::vector<AddedPart> parts;
  size_t rest = 0;
  const auto add = [&](int32_t id, size_t begin, size_t end) {
    if (end > begin) parts.push_back({id, {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}});
  };
  for (size_t at = 0; at < text.size() && ends_.size() > 1;) {
    int32_t node = 0, found = -1;
    size_t end = at;
    for (size_t i = at; i < text.size(); ++i) {
      const auto* next = nodes_.find(node, static_cast<unsigned char>(text[i]));
      if (!next) break;
      node = next->first;
      if (ends_[static_cast<size_t>(node)] < 0) continue;
      found = ends_[static_cast<size_t>(node)];
      end = i + 1;
    }
    if (found < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found)];
    size_t begin = at;
    at = end;
    if (token.single_word && ((begin > 0 && is_word(character_before(text, begin).code)) ||
                              (end < text.size() && is_word(character(text, end).code))))
      continue;
    if (token.lstrip)
      for (Character c; begin > rest && is_space((c = character_before(text, begin)).code);) begin -= c.bytes;
    if (token.rstrip)
      for (Character c; end < text.size() && is_space((c = character(text, end)).code);) end += c.bytes;
    begin = std::max(begin, rest);
    add(-1, rest, begin);
    add(token.id, begin, end);
    rest = at = std::max(end, begin);
  }
  add(-1, rest, text.size());
  return parts;
}

}  // namespace qkv
