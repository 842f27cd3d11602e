// JsonFile: a JSON file of other software, whose every value is checked when it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "qkv/core/check.h"

namespace qkv {

/// A value in a file. Knows its file and where it is there, so that what is wrong with it can be said.
class JsonValue {
 public:
  /// The value of a key; of something that is not an object or lacks the key: a value that is not given.
  JsonValue operator[](std::string_view key) const;
  /// Whether it is there and not null.
  bool is_given() const;
  bool is_text() const;
  bool is_object() const;
  bool is_list() const;
  bool is_true_or_false() const;

  /// Each refuses a value that is of another kind.
  std::string text() const;
  std::string text_or(std::string_view without) const;
  bool flag_or(bool without) const;
  int64_t whole(int64_t low, int64_t high) const;
  double number() const;
  /// The values of a list; none where it is not given.
  size_t size() const;
  JsonValue item(size_t i) const;
  /// Every key and value of an object.
  void each(const std::function<void(const std::string& key, const JsonValue& value)>& visit) const;

  /// "model.type"
  const std::string& key() const { return key_; }
  const std::string& file() const { return *file_; }
  /// Refuses the value, which the file may have but we do not read.
  [[noreturn]] void refuse_value(const Text& expected) const;
  /// The same with a list of what we read.
  [[noreturn]] void refuse_kind(std::span<const std::string_view> known) const;

 private:
  friend class JsonFile;
  JsonValue(const void* node, std::string key, const std::string* file)
      : node_(node), key_(std::move(key)), file_(file) {}
  std::string quoted() const;

  const void* node_;
  std::string key_;
  const std::string* file_;
};

class JsonFile {
 public:
  explicit JsonFile(const std::string& path);
  ~JsonFile();
  JsonFile(JsonFile&&) noexcept;
  JsonValue root() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A whole text file of at most `most` bytes, valid UTF-8.
std::string read_whole_text(const std::string& path, uint64_t most);

}  // namespace qkv
