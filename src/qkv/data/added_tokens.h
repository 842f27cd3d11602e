// AddedTokens: tokens that are found in a text as they are, before anything else cuts it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/aligned_text.h"
#include "qkv/data/pair_map.h"

namespace qkv {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;             // not inside a word
  bool lstrip = false, rstrip = false;  // with the blanks on that side
  bool normalized = true;               // looked for in the normalised text
  bool special = false;
};

/// A part of a text; with an id it is an added token.
struct AddedPart {
  int32_t id = -1;
  Range bytes;
};

class AddedTokens {
 public:
  AddedTokens() : AddedTokens(std::vector<AddedToken>()) {}
  explicit AddedTokens(std::vector<AddedToken> tokens);
  /// Cuts a text at the leftmost tokens, the longest first. No part is empty.
  std::vector<AddedPart> split(std::string_view text) const;

 private:
  std::vector<AddedToken> tokens_;
  PairMap nodes_;              // the trie of their contents: from a node, by a byte, to a node
  std::vector<int32_t> ends_;  // the index of the token that ends at a node, or -1
};

}  // namespace qkv
