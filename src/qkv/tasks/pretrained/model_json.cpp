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

namespace {

nlohmann::json parsed(const std::string& path) {
  const InputFile file(path);
  require(file.size() <= limits::kModelJsonBytes, "{path}: has {size} bytes, expected at most {most}", "path"_a = path,
          "size"_a = file.size(), "most"_a = limits::kModelJsonBytes);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    refuse("{path}: is not JSON: error at byte {position}", "path"_a = path, "position"_a = e.byte);
  }
}

}  // namespace

ModelJson::ModelJson(const std::string& path) : path_(path) {
  auto tree = std::make_shared<Tree>();
  tree->root = parsed(path);
  require(tree->root.is_object(), "{path}: is not a JSON object", "path"_a = path);
  tree_ = std::move(tree);
}

std::vector<ModelJson> ModelJson::list(const std::string& path) {
  nlohmann::json all = parsed(path);
  require(all.is_array(), "{path}: is not a JSON list", "path"_a = path);
  std::vector<ModelJson> out;
  for (nlohmann::json& one : all) {
    require(one.is_object(), "{path}: is not a list of JSON objects", "path"_a = path);
    auto tree = std::make_shared<Tree>();
    tree->root = std::move(one);
    out.push_back(ModelJson(path, std::move(tree)));
  }
  return out;
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

std::vector<double> ModelJson::numbers(std::string_view key, double low, double high) const {
  const nlohmann::json* value = tree_->find(key);
  if (!value) return {};
  std::vector<double> out;
  if (!value->is_array()) wrong(key, text("[", low, " to ", high, "]"));
  for (const nlohmann::json& item : *value) {
    if (!item.is_number() || item.get<double>() < low || item.get<double>() > high)
      wrong(key, text("[", low, " to ", high, "]"));
    out.push_back(item.get<double>());
  }
  return out;
}

bool ModelJson::is_object(std::string_view key) const {
  const nlohmann::json* value = tree_->find(key);
  return value && value->is_object();
}

std::vector<std::string> ModelJson::numbered_words(std::string_view key) const {
  const auto named = strings(key);
  std::vector<std::string> out(named.size());
  for (const auto& [number, name] : named) {
    size_t at = out.size();
    if (!number.empty() && number.size() < 10 && number.find_first_not_of("0123456789") == std::string::npos)
      at = static_cast<size_t>(std::stoul(number));
    require(at < out.size() && out[at].empty(), "{path}: \"{key}\" has the number \"{number}\", expected 0 to {most}",
            "path"_a = path_, "key"_a = key, "number"_a = number, "most"_a = out.size() - 1);
    out[at] = name.empty() ? number : name;
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
