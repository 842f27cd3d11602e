// The options of a command: a table of names, help texts and destinations of the values.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/core/names.h"

namespace qkv::cli {

/// The two numbers of an option's value, "0,5" -> {0, 5}; throws UsageError.
std::pair<double, double> two_numbers(const std::string& option, const std::string& given, char mark);

enum class OptionKind { flag, value, repeated, positional, positionals };

struct OptionSpec {
  std::vector<std::string> names;    // "-o", "--output"; or the name of a positional
  std::string value_name;            // "FILE"
  std::vector<std::string> choices;  // the words that are accepted; empty: any
  Text group;                        // the heading above this option in the help, may be empty
  std::string default_text;          // shown in the help, may be empty
  Text help;
  OptionKind kind = OptionKind::flag;
  size_t least = 0;  // how many positionals must be given
  std::string bare;  // the value when no number follows the name; empty: a value is required
  std::function<void(const std::vector<std::string>& given)> set;  // called when given; throws UsageError
  const std::string& long_name() const { return names.back(); }
};

/// Names are "--threads N", "-o,--output FILE", "--json" or, for positionals, "FILE". An absent option leaves its value
/// unchanged.
class Options {
 public:
  /// A heading in the help, above the option that is declared next.
  void group(const Text& heading) { heading_ = heading; }
  void flag(const std::string& names, const Text& help, bool& value);
  void option(const std::string& names, const Text& help, std::string& value,
              const std::vector<std::string>& choices = {});
  void option(const std::string& names, const Text& help, std::optional<std::string>& value,
              const std::vector<std::string>& choices = {});
  /// One of some values of an enum, by their names.
  template <Named E>
  void option(const std::string& names, const Text& help, E& value, const std::vector<E>& offered = every<E>()) {
    add_choice(names, help, names_of(offered), [&value, offered](size_t i) { value = offered[i]; });
    specs_.back().default_text = name_of(value);
  }
  template <Named E>
  void option(const std::string& names, const Text& help, std::optional<E>& value,
              const std::vector<E>& offered = every<E>()) {
    add_choice(names, help, names_of(offered), [&value, offered](size_t i) { value = offered[i]; });
  }
  void option(const std::string& names, const Text& help, int64_t& value, int64_t low = INT64_MIN,
              int64_t high = INT64_MAX);
  void option(const std::string& names, const Text& help, std::optional<int64_t>& value, int64_t low = INT64_MIN,
              int64_t high = INT64_MAX);
  void option(const std::string& names, const Text& help, double& value,
              double low = -std::numeric_limits<double>::infinity(),
              double high = std::numeric_limits<double>::infinity());
  void option(const std::string& names, const Text& help, std::optional<double>& value,
              double low = -std::numeric_limits<double>::infinity(),
              double high = std::numeric_limits<double>::infinity());
  /// "--sample [N]": a whole number; the name alone means `bare`.
  void option_or_bare(const std::string& names, const Text& help, std::optional<int64_t>& value, int64_t bare,
                      int64_t low, int64_t high);
  /// May be given several times; the values come in order.
  void option(const std::string& names, const Text& help, std::vector<std::string>& values);
  /// A required argument; and all remaining arguments, at least `least` of them.
  void positional(const std::string& name, const Text& help, std::string& value);
  void positionals(const std::string& name, const Text& help, std::vector<std::string>& values, size_t least = 0);

  const std::vector<OptionSpec>& specs() const { return specs_; }
  /// Shown in the help, for the option declared last.
  void set_default(const std::string& text) { specs_.back().default_text = text; }

 private:
  OptionSpec& add(const std::string& names, const Text& help, OptionKind kind);
  void add_choice(const std::string& names, const Text& help, const std::vector<std::string>& words,
                  std::function<void(size_t)> set);
  std::vector<OptionSpec> specs_;
  Text heading_;
};

}  // namespace qkv::cli
