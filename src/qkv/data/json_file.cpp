// JSON values over nlohmann-json.
#include "qkv/data/json_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using Json = nlohmann::json;

const Json* json(const void* node) { return static_cast<const Json*>(node); }

// The root is "the file"; "a" and "b" below it are a.b.
std::string below(const std::string& key, std::string_view child) {
  return key.empty() ? std::string(child) : text(key, ".", child);
}

}  // namespace

JsonValue JsonValue::operator[](std::string_view key) const {
  const void* child = nullptr;
  if (is_object())
    if (const auto found = json(node_)->find(key); found != json(node_)->end()) child = &*found;
  return {child, below(key_, key), file_};
}

bool JsonValue::is_given() const { return node_ && !json(node_)->is_null(); }
bool JsonValue::is_text() const { return node_ && json(node_)->is_string(); }
bool JsonValue::is_object() const { return node_ && json(node_)->is_object(); }
bool JsonValue::is_list() const { return node_ && json(node_)->is_array(); }
bool JsonValue::is_true_or_false() const { return node_ && json(node_)->is_boolean(); }

std::string JsonValue::quoted() const {
  if (is_object()) return "{...}";
  if (is_list()) return "[...]";
  std::string value = printable(json(node_)->dump(-1, ' ', false, Json::error_handler_t::replace));
  if (value.size() <= limits::kQuotedBytes) return value;
  value.resize(limits::kQuotedBytes);
  while (find_invalid_utf8(value) != std::string_view::npos) value.pop_back();
  return value + "...";
}

void JsonValue::refuse_value(const Text& expected) const {
  if (key_.empty()) refuse("{file}: expected {expected}", "file"_a = *file_, "expected"_a = expected);
  const std::string key = printable(key_);
  require(is_given(), "{file}: {key} is missing, expected {expected}", "file"_a = *file_, "key"_a = key,
          "expected"_a = expected);
  refuse("{file}: {key} is {value}, expected {expected}", "file"_a = *file_, "key"_a = key, "value"_a = quoted(),
         "expected"_a = expected);
}

void JsonValue::refuse_kind(std::span<const std::string_view> known) const {
  std::string list;
  for (const std::string_view name : known) list += qkv::text(list.empty() ? "" : ", ", name);
  refuse_value(tr("one of those that qkv knows: {list}", "list"_a = list));
}

std::string JsonValue::text() const {
  if (!is_text()) refuse_value(tr("a text"));
  return json(node_)->get_ref<const std::string&>();
}

std::string JsonValue::text_or(std::string_view without) const { return is_given() ? text() : std::string(without); }

bool JsonValue::flag_or(bool without) const {
  if (!is_given()) return without;
  if (!is_true_or_false()) refuse_value(tr("true or false"));
  return json(node_)->get<bool>();
}

int64_t JsonValue::whole(int64_t low, int64_t high) const {
  const bool whole = node_ && json(node_)->is_number_integer();
  const bool fits = whole && !(json(node_)->is_number_unsigned() && json(node_)->get<uint64_t>() > INT64_MAX);
  if (!fits || json(node_)->get<int64_t>() < low || json(node_)->get<int64_t>() > high)
    refuse_value(expected_whole_number(low, high));
  return json(node_)->get<int64_t>();
}

double JsonValue::number() const {
  if (!node_ || !json(node_)->is_number()) refuse_value(tr("a number"));
  return json(node_)->get<double>();
}

size_t JsonValue::size() const {
  if (!is_given()) return 0;
  if (!is_list()) refuse_value(tr("a list"));
  return json(node_)->size();
}

JsonValue JsonValue::item(size_t i) const { return {&(*json(node_))[i], qkv::text(key_, "[", i, "]"), file_}; }

void JsonValue::each(const std::function<void(const std::string&, const JsonValue&)>& visit) const {
  if (!is_object()) refuse_value(tr("an object"));
  for (const auto& [key, value] : json(node_)->items()) visit(key, {&value, below(key_, key), file_});
}

struct JsonFile::State {
  std::string path;
  Json root;
};

JsonFile::JsonFile(const std::string& path) : state_(std::make_unique<State>()) {
  state_->path = path;
  const std::string bytes = read_whole_text(path, limits::kTokenizerBytes);
  try {
    state_->root = Json::parse(bytes);
  } catch (const Json::parse_error& error) {
    refuse("{path}: not JSON, or damaged, at byte {at}", "path"_a = path, "at"_a = grouped(error.byte));
  } catch (const Json::exception&) {
    refuse("{path}: a number in it is too large", "path"_a = path);
  }
}

JsonFile::~JsonFile() = default;
JsonFile::JsonFile(JsonFile&&) noexcept = default;

JsonValue JsonFile::root() const { return {&state_->root, "", &state_->path}; }

std::string read_whole_text(const std::string& path, uint64_t most) {
  const InputFile file(path);
  require(file.size() <= most, "{path}: has {size} bytes, expected at most {most}", "path"_a = path,
          "size"_a = grouped(file.size()), "most"_a = grouped(most));
  std::string bytes(file.size(), '\0');
  file.read(0, std::as_writable_bytes(std::span(bytes.data(), bytes.size())));
  check_utf8(bytes, verbatim(path));
  return bytes;
}

}  // namespace qkv
