// Settings: a table of named values in blocks. They come from YAML and from single words, and go back to YAML.
//
//   training:
//     epochs: 250     # passes over the data
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/core/names.h"

namespace qkv {

struct Setting {
  std::string block, key;
  Text help;
  std::string value_name;            // "N", "X", "FILE", "BOOL"
  std::vector<std::string> choices;  // empty: any
  std::function<void(const std::string& value, const std::string& where)> set;  // `where` begins the error
  std::function<std::string()> get;

  std::string name() const { return block + "." + key; }
  /// The option of a command line: "batch_rows" -> "--batch-rows".
  std::string flag() const;
};

/// Knows where each value lives; the values themselves belong to the caller and must outlive it.
class Settings {
 public:
  void add(const std::string& block, const std::string& key, const Text& help, int64_t& value, int64_t low = INT64_MIN,
           int64_t high = INT64_MAX);
  void add(const std::string& block, const std::string& key, const Text& help, double& value,
           double low = -std::numeric_limits<double>::infinity(), double high = std::numeric_limits<double>::infinity());
  void add(const std::string& block, const std::string& key, const Text& help, bool& value);
  void add(const std::string& block, const std::string& key, const Text& help, std::string& value, const std::string& value_name = "TEXT");
  /// One of some values of an enum, by their names.
  template <Named E>
  void add(const std::string& block, const std::string& key, const Text& help, E& value, const std::vector<E>& offered = every<E>()) {
    add_choice(block, key, help, names_of(offered), [&value, offered](size_t i) { value = offered[i]; }, [&value] { return std::string(name_of(value)); });
  }
  /// The same where a word of its own, the first choice, leaves the value open.
  template <Named E>
  void add(const std::string& block, const std::string& key, const Text& help, std::optional<E>& value, const std::string& open,
           const std::vector<E>& offered = every<E>()) {
    std::vector<std::string> words = names_of(offered);
    words.insert(words.begin(), open);
    add_choice(block, key, help, words, [&value, offered](size_t i) { value = i == 0 ? std::optional<E>() : offered[i - 1]; },
               [&value, open] { return value ? std::string(name_of(*value)) : open; });
  }

  const std::vector<Setting>& all() const { return settings_; }
  const Setting& find(const std::string& name) const;

  /// Reads a YAML file of blocks of keys. What the file does not name stays as it is. Unknown or repeated keys, values of another type
  /// and deeper nesting are errors with the line; nothing is set then.
  void read(const std::string& path);
  void parse(const std::string& yaml, const std::string& name);
  /// All values as YAML that reads back as the same values, each with its help text and the words it may be as a comment.
  std::string dump() const;

 private:
  void add(Setting setting);
  void add_choice(const std::string& block, const std::string& key, const Text& help, const std::vector<std::string>& words,
                  std::function<void(size_t)> set, std::function<std::string()> get);
  std::vector<Setting> settings_;
};

}  // namespace qkv
