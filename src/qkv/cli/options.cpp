// Options: converts texts to values; every error shows the text and what was expected.
#include "qkv/cli/options.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "qkv/cli/command.h"
#include "qkv/core/numbers.h"
#include "qkv/core/suggest.h"

namespace qkv::cli {
namespace {

[[noreturn]] void refuse_value(const std::string& name, const std::string& got, const Text& expected,
                               const Text& hint = {}) {
  throw UsageError(
      tr("{name}: got \"{got}\", expected {expected}", "name"_a = name, "got"_a = got, "expected"_a = expected), hint);
}

int64_t read_between(const std::string& name, const std::string& given, int64_t low, int64_t high) {
  if (const auto value = parse_whole_number(given, low, high)) return *value;
  refuse_value(name, given, expected_whole_number(low, high));
}

double read_between(const std::string& name, const std::string& given, double low, double high) {
  if (const auto value = parse_number(given, low, high)) return *value;
  refuse_value(name, given, expected_number(low, high));
}

// The value is a number, or an optional one.
template <class Value, class Limit>
OptionSpec& read_into(OptionSpec& spec, Value& value, Limit low, Limit high) {
  spec.set = [&value, low, high, name = spec.long_name()](const auto& given) {
    value = read_between(name, given[0], low, high);
  };
  return spec;
}

std::string choice(const std::string& name, const std::string& given, const std::vector<std::string>& choices) {
  for (const std::string& known : choices)
    if (given == known) return given;
  if (choices.empty()) return given;
  refuse_value(name, given, tr("one of {known}", "known"_a = listed(choices)), did_you_mean(given, choices));
}

}  // namespace

std::pair<double, double> two_numbers(const std::string& option, const std::string& given, char mark) {
  const size_t at = std::min(given.find(mark), given.size());
  const auto first = parse_number(std::string_view(given).substr(0, at));
  const auto second = parse_number(std::string_view(given).substr(std::min(at + 1, given.size())));
  if (!first || !second) refuse_value(option, given, tr("two numbers like 4{mark}5.5", "mark"_a = mark));
  return {*first, *second};
}

OptionSpec& Options::add(const std::string& names, const Text& help, OptionKind kind) {
  OptionSpec& spec = specs_.emplace_back();
  const size_t space = names.find(' ');
  spec.names = split(names.substr(0, space), ',');
  if (space != std::string::npos) spec.value_name = names.substr(space + 1);
  spec.help = help;
  spec.group = std::exchange(heading_, {});
  spec.kind = kind;
  return spec;
}

void Options::flag(const std::string& names, const Text& help, bool& value) {
  add(names, help, OptionKind::flag).set = [&value](const auto&) { value = true; };
}

void Options::option(const std::string& names, const Text& help, std::string& value,
                     const std::vector<std::string>& choices) {
  OptionSpec& spec = add(names, help, OptionKind::value);
  spec.default_text = value;
  spec.choices = choices;
  spec.set = [&value, choices, name = spec.long_name()](const auto& given) { value = choice(name, given[0], choices); };
}

void Options::option(const std::string& names, const Text& help, std::optional<std::string>& value,
                     const std::vector<std::string>& choices) {
  OptionSpec& spec = add(names, help, OptionKind::value);
  spec.choices = choices;
  spec.set = [&value, choices, name = spec.long_name()](const auto& given) { value = choice(name, given[0], choices); };
}

void Options::add_choice(const std::string& names, const Text& help, const std::vector<std::string>& words,
                         std::function<void(size_t)> set) {
  OptionSpec& spec = add(names, help, OptionKind::value);
  spec.choices = words;
  spec.set = [words, set = std::move(set), name = spec.long_name()](const auto& given) {
    const std::string word = choice(name, given[0], words);
    set(static_cast<size_t>(std::find(words.begin(), words.end(), word) - words.begin()));
  };
}

void Options::option(const std::string& names, const Text& help, int64_t& value, int64_t low, int64_t high) {
  read_into(add(names, help, OptionKind::value), value, low, high).default_text = text(value);
}

void Options::option(const std::string& names, const Text& help, std::optional<int64_t>& value, int64_t low,
                     int64_t high) {
  read_into(add(names, help, OptionKind::value), value, low, high);
}

void Options::option(const std::string& names, const Text& help, double& value, double low, double high) {
  read_into(add(names, help, OptionKind::value), value, low, high).default_text = text(value);
}

void Options::option(const std::string& names, const Text& help, std::optional<double>& value, double low,
                     double high) {
  read_into(add(names, help, OptionKind::value), value, low, high);
}

void Options::option_or_bare(const std::string& names, const Text& help, std::optional<int64_t>& value, int64_t bare,
                             int64_t low, int64_t high) {
  option(names, help, value, low, high);
  specs_.back().bare = text(bare);
}

void Options::option(const std::string& names, const Text& help, std::vector<std::string>& values) {
  add(names, help, OptionKind::repeated).set = [&values](const auto& given) { values = given; };
}

void Options::positional(const std::string& name, const Text& help, std::string& value) {
  OptionSpec& spec = add(name, help, OptionKind::positional);
  spec.least = 1;
  spec.set = [&value](const auto& given) { value = given[0]; };
}

void Options::positionals(const std::string& name, const Text& help, std::vector<std::string>& values, size_t least) {
  OptionSpec& spec = add(name, help, OptionKind::positionals);
  spec.least = least;
  spec.set = [&values](const auto& given) { values = given; };
}

}  // namespace qkv::cli
