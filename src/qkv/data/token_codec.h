// TokenCodec: a tokenizer without the tokens that a model wants around a text; and the template of those.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/data/pretrained_tokenizer.h"

namespace qkv {

class TokenCodec {
 public:
  virtual ~TokenCodec() = default;
  /// Appends the tokens of a text, which is UTF-8.
  virtual void encode(std::string_view text, std::vector<EncodedToken>& out) const = 0;
  /// The same for a text that the model writes.
  virtual void encode_target(std::string_view text, std::vector<EncodedToken>& out) const { encode(text, out); }
  /// All ids are used ones.
  virtual std::string decode(std::span<const int32_t> ids, bool special) const = 0;
  virtual const std::string& piece(int32_t id) const = 0;
  virtual std::string shown(int32_t id) const = 0;
  virtual std::optional<int32_t> id(std::string_view piece) const = 0;
  virtual int32_t size() const = 0;
  virtual bool is_special(int32_t id) const = 0;
};

// What tokens come from, made presentable.
/// Tokens of a few bytes of a character belong to the whole character.
void widen_to_characters(std::string_view text, std::vector<EncodedToken>& tokens);
/// Offsets without the blanks at both ends.
void trim_blanks(std::string_view text, std::vector<EncodedToken>& tokens);
/// Words are what blanks separate.
void number_by_blanks(std::string_view text, std::vector<EncodedToken>& tokens);

/// A place of a template: a token, or the first or second text.
struct TemplateItem {
  enum class Kind { token, first, second } kind = Kind::token;
  int32_t id = 0;    // of a token
  int32_t type = 0;  // EncodedToken::text of what is put there
};

struct TokenTemplate {
  std::vector<TemplateItem> single = {{TemplateItem::Kind::first, 0, 0}};
  std::vector<TemplateItem> pair = {{TemplateItem::Kind::first, 0, 0}, {TemplateItem::Kind::second, 0, 1}};
};

/// `before` text `after`: the template of most models. `between` separates the texts of a pair.
TokenTemplate surround(std::span<const int32_t> before, std::span<const int32_t> after,
                       std::span<const int32_t> between, int32_t second_type);

/// What a folder's files say.
struct OpenedTokenizer {
  std::unique_ptr<const TokenCodec> codec;
  TokenTemplate tokens;
  SpecialIds special;
  size_t most = 0;
  std::vector<std::string> languages, files;
  std::string folder;  // of the files
  std::string kind;
};

}  // namespace qkv
