// Typed access to a JSON object.
#include "qkv/tasks/pretrained/model_json.h"

#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/io/file.h"

namespace qkv {

struct ModelJson::Tree {
  nlohmann::json root;

  // Null if the key is absent.
  const nlohmann::json* find(std::string_view key) const {
    const auto found = root.find(std::string(key));
    return found == root.end() || found->is_null() ? nullptr : &*found;
  }
};

ModelJson::ModelJson(const std::string& path) : path_(path) {
  const InputFile file(path);
  require(file.size() <= limits::kModelJsonBytes, "{path}: has {size} bytes, expected at most {most}", "path"_a = path,
          "size"_a = file.size(), "most"_a = limits::kModelJsonBytes);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  auto tree = std::make_shared<Tree>();
  try {
    tree->root = nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    refuse("{path}: is not JSON: error at byte {position}", "path"_a = path, "position"_a = e.byte);
  }
  require(tree->root.is_object(), "{path}: is not a JSON object", "path"_a = path);
  tree_ = std::move(tree);
}

void ModelJson::wrong(std::string_view key, const std::string& expected) const {
  const nlohmann::json* value = tree_->find(key);
  require(value != nullptr, "{path}: has no \"{key}\", expected {expected}", "path"_a = path_, "key"_a = key,
          "expected"_a = expected);
  std::string found = value->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (found.size() > limits::kQuotedBytes) found = found.substr(0, limits::kQuotedBytes) + "...";
  refuse("{path}: \"{key}\" is {found}, expected {expected}", "path"_a = path_, "key"_a = key, "found"_a = found,
         "expected"_a = expected);
}

bool ModelJson::has(std::string_view key) const { return tree_->find(key) != nullptr; }

int64_t ModelJson::whole(std::string_view key, int64_t low, int64_t high, std::optional<int64_t> absent) const {
  const nlohmann::json* value = tree_->find(key);
  if (!value && absent) return *absent;
  const bool signed_fits = value && value->is_number_integer() && !value->is_number_unsigned();
  const bool fits =
      value && (value->is_number_unsigned() ? value->get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX) : signed_fits);
  if (fits && value->get<int64_t>() >= low && value->get<int64_t>() <= high) return value->get<int64_t>();
  wrong(key, text(low, " to ", high));
}

double ModelJson::number(std::string_view key, double low, double high, std::optional<double> absent) const {
  const nlohmann::json* value = tree_->find(key);
  if (!value && absent) return *absent;
  if (value && value->is_number() && value->get<double>() >= low && value->get<double>() <= high)
    return value->get<double>();
  wrong(key, text(low, " to ", high));
}

bool ModelJson::flag(std::string_view key, bool absent) const {
  const nlohmann::json* value = tree_->find(key);
  if (!value) return absent;
  if (value->is_boolean()) return value->get<bool>();
  wrong(key, "true / false");
}

void ModelJson::expect(std::string_view key, bool wanted, bool absent) const {
  if (flag(key, absent) != wanted) wrong(key, wanted ? "true" : "false");
}

std::string ModelJson::word(std::string_view key, const std::string& absent) const {
  const nlohmann::json* value = tree_->find(key);
  if (!value) return absent;
  if (value->is_string()) return value->get<std::string>();
  wrong(key, "\"...\"");
}

std::vector<int64_t> ModelJson::wholes(std::string_view key, int64_t low, int64_t high) const {
  const nlohmann::json* value = tree_->find(key);
  if (!value) return {};
  std::vector<int64_t> out;
  const std::vector<nlohmann::json> list =
      value->is_array() ? value->get<std::vector<nlohmann::json>>() : std::vector<nlohmann::json>{*value};
  for (const nlohmann::json& item : list) {
    const nlohmann::json& one = item.is_array() && item.size() == 1 ? item[0] : item;
    if (item.is_array() && item.size() != 1) continue;  // a phrase, not a token
    if (!one.is_number_integer() || one.get<int64_t>() < low || one.get<int64_t>() > high)
      wrong(key, text(low, " to ", high));
    out.push_back(one.get<int64_t>());
  }
  return out;
}

std::vector<std::string> ModelJson::words(std::string_view key) const {
  const nlohmann::json* value = tree_->find(key);
  if (!value) return {};
  std::vector<std::string> out;
  if (!value->is_array()) wrong(key, "[\"...\"]");
  for (const nlohmann::json& item : *value) {
    if (!item.is_string()) wrong(key, "[\"...\"]");
    out.push_back(item.get<std::string>());
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> ModelJson::strings(std::string_view key) const {
  const nlohmann::json* value = tree_->find(key);
  if (!value) return {};
  if (!value->is_object()) wrong(key, "{\"...\": \"...\"}");
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, item] : value->items()) {
    if (!item.is_string()) wrong(key, "{\"...\": \"...\"}");
    out.emplace_back(name, item.get<std::string>());
  }
  return out;
}

std::optional<ModelJson> ModelJson::object(std::string_view key) const {
  const nlohmann::json* value = tree_->find(key);
  if (!value) return {};
  if (!value->is_object()) wrong(key, "{...}");
  return ModelJson(text(path_, ": \"", key, "\""), std::make_shared<const Tree>(Tree{*value}));
}

}  // namespace qkv
