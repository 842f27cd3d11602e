// The small files beside a tokenizer.
#include <array>
#include <filesystem>

#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/data/json_file.h"
#include "qkv/data/pretrained_codecs.h"
#include "qkv/data/tokenizer_json.h"

namespace qkv {
namespace {

constexpr std::array<std::string_view, 7> kTokenNames = {"bos_token", "eos_token", "pad_token", "unk_token",
                                                         "cls_token", "sep_token", "mask_token"};

// A token is a text, or an object with its content.
void read_tokens(const JsonValue& root, TokenizerConfig& config) {
  for (const std::string_view name : kTokenNames) {
    const JsonValue value = root[name];
    if (!value.is_given() || !config.token(name).empty()) continue;
    config.tokens.emplace_back(name, value.is_object() ? value["content"].text() : value.text());
  }
}

int32_t read_id(const std::string& id, const JsonValue& value) {
  const auto number = parse_whole_number(id, 0, limits::kTokens - 1);
  if (!number) value.refuse_value(tr("a key that is a number below {most}", "most"_a = limits::kTokens));
  return static_cast<int32_t>(*number);
}

}  // namespace

TokenizerConfig::TokenizerConfig(const std::string& folder) {
  const auto read = [&](const std::string& name, auto use) {
    const std::string path = folder + "/" + name;
    if (!std::filesystem::exists(path)) return;
    const JsonFile file(path);
    use(file.root());
    files.push_back(name);
  };
  read("tokenizer_config.json", [&](const JsonValue& root) {
    root.each([&](const std::string& key, const JsonValue& value) {
      if (value.is_true_or_false()) flags.emplace_back(key, value.flag_or(false));
    });
    read_tokens(root, *this);
    // "No limit" is written as a huge number.
    constexpr double kHuge = 1e9;
    if (const JsonValue limit = root["model_max_length"]; limit.is_given() && limit.number() < kHuge)
      most = static_cast<size_t>(limit.whole(1, INT32_MAX));
    if (const JsonValue tokens = root["added_tokens_decoder"]; tokens.is_given())
      tokens.each([&](const std::string& id, const JsonValue& value) {
        added.push_back(read_added_token(value, read_id(id, value)));
      });
  });
  read("special_tokens_map.json", [&](const JsonValue& root) { read_tokens(root, *this); });
  const bool has_added = !added.empty();
  read("added_tokens.json", [&](const JsonValue& root) {
    root.each([&](const std::string& content, const JsonValue& id) {
      if (has_added) return;
      AddedToken token;
      token.id = static_cast<int32_t>(id.whole(0, limits::kTokens - 1));
      token.content = content;
      added.push_back(std::move(token));
    });
  });
}

const std::string& TokenizerConfig::token(std::string_view name) const {
  static const std::string kNone;
  for (const auto& [key, token] : tokens)
    if (key == name) return token;
  return kNone;
}

std::optional<bool> TokenizerConfig::flag(std::string_view name) const {
  for (const auto& [key, value] : flags)
    if (key == name) return value;
  return {};
}

}  // namespace qkv
