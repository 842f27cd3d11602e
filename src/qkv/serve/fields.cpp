// Checked access to the fields of a request.
#include <cmath>

#include "qkv/report/nested_json.h"
#include "qkv/serve/call.h"

namespace qkv::serve {
namespace {

std::string shown(const Json& value) {
  const std::string all = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return all.size() <= 60 ? all : all.substr(0, 57) + "...";
}

float as_float(const Json& value, const std::string& where) {
  if (!value.is_number())
    refuse("{field}: expected a number, got {value}", "field"_a = where, "value"_a = shown(value));
  const auto number = static_cast<float>(value.get<double>());
  require(std::isfinite(number), "{field}: {value} does not fit in a float", "field"_a = where,
          "value"_a = shown(value));
  return number;
}

}  // namespace

Fields::Fields(const Json& object, std::string name) : object_(object), name_(std::move(name)) {
  require(object.is_object(), "{field}: expected an object, got {value}", "field"_a = name_, "value"_a = shown(object));
}

bool Fields::has(const char* key) const {
  const auto found = object_.find(key);
  return found != object_.end() && !found->is_null();
}

const Json& Fields::at(const char* key) const {
  require(has(key), "{field} is missing", "field"_a = path(key));
  return object_.at(key);
}

std::string Fields::text(const char* key) const {
  const Json& value = at(key);
  require(value.is_string(), "{field}: expected a text, got {value}", "field"_a = path(key), "value"_a = shown(value));
  const auto& out = value.get_ref<const std::string&>();
  require(std::ssize(out) <= kMostTextBytes, "{field}: has {bytes} bytes; at most {most} are accepted",
          "field"_a = path(key), "bytes"_a = out.size(), "most"_a = kMostTextBytes);
  require(out.find('\0') == out.npos, "{field}: must not contain a NUL character", "field"_a = path(key));
  return out;
}

double Fields::number(const char* key, double low, double high) const {
  const Json& value = at(key);
  const bool fits = value.is_number() && value.get<double>() >= low && value.get<double>() <= high;
  require(fits, "{field}: expected a number from {low} to {high}, got {value}", "field"_a = path(key), "low"_a = low,
          "high"_a = high, "value"_a = shown(value));
  return value.get<double>();
}

int64_t Fields::whole(const char* key, int64_t low, int64_t high) const {
  const Json& value = at(key);
  const bool is_whole = value.is_number() && value.get<double>() == std::floor(value.get<double>()) &&
                        std::abs(value.get<double>()) < 9e15;
  const bool fits = is_whole && value.get<int64_t>() >= low && value.get<int64_t>() <= high;
  require(fits, "{field}: expected a whole number from {low} to {high}, got {value}", "field"_a = path(key),
          "low"_a = low, "high"_a = high, "value"_a = shown(value));
  return value.get<int64_t>();
}

bool Fields::flag(const char* key, bool absent) const {
  if (!has(key)) return absent;
  const Json& value = at(key);
  require(value.is_boolean(), "{field}: expected true or false, got {value}", "field"_a = path(key),
          "value"_a = shown(value));
  return value.get<bool>();
}

std::vector<double> Fields::numbers(const char* key, size_t most) const {
  const Json& list = at(key);
  require(list.is_array(), "{field}: expected a list, got {value}", "field"_a = path(key), "value"_a = shown(list));
  require(list.size() <= most, "{field}: has {count} numbers; at most {most} are accepted", "field"_a = path(key),
          "count"_a = list.size(), "most"_a = most);
  std::vector<double> out;
  for (const Json& value : list) {
    if (!value.is_number())
      refuse("{field}: expected a number, got {value}", "field"_a = path(key), "value"_a = shown(value));
    out.push_back(value.get<double>());
  }
  return out;
}

Tensor Fields::matrix(const char* key, int64_t most_rows, int64_t most_columns) const {
  const Json& rows = at(key);
  require(rows.is_array() && !rows.empty() && rows[0].is_array() && !rows[0].empty(),
          "{field}: expected a list of rows, got {value}", "field"_a = path(key), "value"_a = shown(rows));
  const auto columns = static_cast<int64_t>(rows[0].size());
  require(std::ssize(rows) <= most_rows && columns <= most_columns,
          "{field}: is {rows} x {columns}; at most {most_rows} x {most_columns} is accepted", "field"_a = path(key),
          "rows"_a = rows.size(), "columns"_a = columns, "most_rows"_a = most_rows, "most_columns"_a = most_columns);
  Tensor out = Tensor::empty({std::ssize(rows), columns});
  float* to = out.mutable_ptr();
  for (const Json& row : rows) {
    require(row.is_array() && std::ssize(row) == columns, "{field}: every row needs {columns} numbers, got {value}",
            "field"_a = path(key), "columns"_a = columns, "value"_a = shown(row));
    for (const Json& value : row) *to++ = as_float(value, path(key));
  }
  return out;
}

std::vector<Fields> Fields::objects(const char* key, size_t most) const {
  const Json& list = at(key);
  require(list.is_array() && list.size() <= most, "{field}: expected a list of at most {most} objects",
          "field"_a = path(key), "most"_a = most);
  std::vector<Fields> out;
  for (const Json& one : list) out.emplace_back(one, path(key));
  return out;
}

Json nested(const Tensor& x) { return report::nested_json<Json>(x); }

std::string command_line(const std::vector<std::string>& words) {
  std::string out = "qkv";
  for (const std::string& word : words) {
    const bool plain = !word.empty() && word.find_first_not_of(
                                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                            "0123456789-_./=:,") == word.npos;
    if (plain) {
      out += " " + word;
      continue;
    }
    out += " '";
    for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    out += "'";
  }
  return out;
}

std::string ask_line(const Call& call, const std::string& path) {
  Json body = call.body;
  for (const char* key : {"lang", "view", "stream"}) body.erase(key);  // of the page that asks
  std::vector<std::string> words = {"ask", path};
  // Ids are those of one server; the names of the folders stay.
  if (const auto model = body.find("model"); model != body.end() && model->is_string()) {
    *model = call.api.shelf().model(model->get<std::string>()).name;
    words.insert(words.end(), {"--models", call.api.shelf().folder()});
  }
  words.push_back(body.dump(-1, ' ', false, Json::error_handler_t::replace));
  return command_line(words);
}

}  // namespace qkv::serve
