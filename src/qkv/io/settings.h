// Settings: a table of named values in blocks. They come from YAML and from single words, and go back to YAML.
//
//   training:
//     epochs: 250     # passes over the data
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/language.h"

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
  void add(const std::string& block, const std::string& key, const Text& help, std::string& value,
           const std::vector<std::string>& choices = {}, const std::string& value_name = "TEXT");

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
  std::vector<Setting> settings_;
};

}  // namespace qkv
