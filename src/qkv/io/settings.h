// Settings: a table of named values in blocks, read from YAML or from single words and written back as YAML.
//
//   training:
//     epochs: 250     # passes over the data
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/core/names.h"
#include "qkv/core/open.h"

namespace QKV_API qkv {

struct Setting {
  using Assign = std::function<void()>;

  std::string block, key;
  Text help;
  std::string value_name;            // "N", "X", "FILE", "NAME"
  std::vector<std::string> choices;  // empty: any
  /// Checks at once; calling the result sets the value. Errors start with `where`.
  std::function<Assign(const std::string& value, const std::string& where)> parse;
  std::function<std::string()> get;
  /// On the command line: "batch_rows" -> "--batch-rows"; for a key of two blocks: "--book-positions".
  std::string flag = {};

  std::string name() const { return block + "." + key; }
  void set(const std::string& value, const std::string& where) const { parse(value, where)(); }
};

/// Refers to values that belong to the caller and must outlive it.
class Settings {
 public:
  void add(const std::string& block, const std::string& key, const Text& help, int64_t& value, int64_t low = INT64_MIN,
           int64_t high = INT64_MAX);
  void add(const std::string& block, const std::string& key, const Text& help, double& value,
           double low = -std::numeric_limits<double>::infinity(),
           double high = std::numeric_limits<double>::infinity());
  void add(const std::string& block, const std::string& key, const Text& help, float& value, double low, double high);
  void add(const std::string& block, const std::string& key, const Text& help, bool& value);
  void add(const std::string& block, const std::string& key, const Text& help, std::string& value,
           const std::string& value_name = "TEXT");
  /// Numbers that may be left open.
  void add(const std::string& block, const std::string& key, const Text& help, std::optional<int64_t>& value,
           const Open& open, int64_t low, int64_t high);
  void add(const std::string& block, const std::string& key, const Text& help, std::optional<float>& value,
           const Open& open, double low, double high);
  /// A list of whole numbers: "3 17".
  void add(const std::string& block, const std::string& key, const Text& help, std::vector<int32_t>& value, int32_t low,
           int32_t high);
  /// A list of numbers: "0.4 0.5 0.6".
  void add(const std::string& block, const std::string& key, const Text& help, std::vector<double>& value, double low,
           double high);
  /// One of the offered values of an enum, by name.
  template <Named E>
  void add(const std::string& block, const std::string& key, const Text& help, E& value,
           const std::vector<E>& offered = every<E>()) {
    add_choice(
        block, key, help, names_of(offered), [&value, offered](size_t i) { value = offered[i]; },
        [&value] { return std::string(name_of(value)); });
  }
  /// A word that is fixed to one of `words`: the caller has read it already and built the table for it.
  void add_fixed(const std::string& block, const std::string& key, const Text& help,
                 const std::vector<std::string>& words, const std::string& word);
  /// Every field of a config: its fields(f) calls f(key, help, value, limits...) for each.
  template <class Config>
  void add_block(const std::string& block, Config& config) {
    config.fields([&](const char* key, const Text& help, auto& value, const auto&... limits) {
      add(block, key, help, value, limits...);
    });
  }

  const std::vector<Setting>& all() const { return settings_; }
  bool has(const std::string& name) const;
  const Setting& find(const std::string& name) const;

  /// For older files: a setting that moved ("training.loss" to "book.loss"), one that is read and ignored, and a value
  /// that was renamed.
  void accept(const std::string& old_name, const std::string& name) { moved_[old_name] = name; }
  void drop(const std::string& old_name) { moved_[old_name] = ""; }
  void accept_value(const std::string& name, const std::string& old_value, const std::string& value) {
    values_[name + "=" + old_value] = value;
  }
  /// A known key that is not among the settings: the error says `why`. No later setting gets its flag.
  void explain(const std::string& name, const Text& why) { why_not_[name] = why; }

  /// Reads a YAML file of blocks of keys. Settings that the file does not name keep their values. Unknown or repeated
  /// keys, values of another type and deeper nesting are errors that name the line; nothing is set then.
  void read(const std::string& path);
  void parse(const std::string& yaml, const std::string& name);
  /// All values as YAML that reads back as the same values, each with a comment: its help text and allowed words.
  std::string dump() const;

 private:
  friend class SettingsReader;
  void add(Setting setting);
  void add_choice(const std::string& block, const std::string& key, const Text& help,
                  const std::vector<std::string>& words, std::function<void(size_t)> set,
                  std::function<std::string()> get);
  std::vector<Setting> settings_;
  std::map<std::string, std::string> moved_, values_;
  std::map<std::string, Text> why_not_;
};

/// The whole text of a configuration file; one over the size limit is an error.
std::string read_settings_text(const std::string& path);

/// The value of one setting in YAML text, ignoring everything else, and its line for errors; absent if the text does
/// not have it.
struct FoundSetting {
  std::string value, where;
};
std::optional<FoundSetting> find_setting(const std::string& yaml, const std::string& name, const std::string& setting);

}  // namespace qkv
