// What the program says to people: English in the code, other languages by a catalogue (catalogue.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "qkv/core/text.h"

#include "qkv/core/api.h"

namespace QKV_API qkv {

enum class Language { en, zh };

struct TextValue;

/// A sentence in any language: its English, which is also its key in the catalogue, and the values of its fields.
/// Made by tr() and verbatim(), so that no sentence misses the catalogue by accident.
class Text {
 public:
  Text();
  /// The same in every language: a name, a number, a formula.
  Text(std::string verbatim);
  template <size_t N>
  Text(const char (&)[N]) = delete;  // tr("...") for what is translated, verbatim("...") for what is not
  Text(std::string_view english, std::vector<TextValue> values);
  Text(const Text&);
  Text(Text&&) noexcept;
  Text& operator=(const Text&);
  Text& operator=(Text&&) noexcept;
  ~Text();

  std::string in(Language language) const;
  bool empty() const { return pattern_.empty(); }

 private:
  std::string pattern_;
  std::vector<TextValue> values_;
  bool translated_ = false;
};

/// One value of a text; its type decides how it is written.
struct TextValue {
  std::string_view name;  // of static storage
  std::variant<int64_t, float, double, std::string, Text> value;
};

inline Text verbatim(std::string text) { return Text(std::move(text)); }

namespace detail {

/// The name of a value, as a template argument.
template <size_t N>
struct ValueName {
  char letters[N]{};
  consteval ValueName(const char (&name)[N]) {
    for (size_t i = 0; i < N; ++i) letters[i] = name[i];
  }
  constexpr std::string_view view() const { return {letters, N - 1}; }
};

template <ValueName Name, class T>
struct NamedValue {
  const T& value;
};

template <ValueName Name>
struct Naming {
  template <class T>
  constexpr NamedValue<Name, T> operator=(const T& value) const {
    return {value};
  }
};

/// Whether `pattern` has a field {name} or {name:format}.
constexpr bool has_field(std::string_view pattern, std::string_view name) {
  for (size_t at = pattern.find('{'); at != pattern.npos; at = pattern.find('{', at + 1)) {
    const std::string_view rest = pattern.substr(at + 1);
    if (rest.starts_with(name) && rest.size() > name.size() && (rest[name.size()] == '}' || rest[name.size()] == ':'))
      return true;
  }
  return false;
}

/// A text in which every named value has a field; others do not compile.
template <ValueName... Names>
struct Pattern {
  std::string_view english;
  consteval Pattern(const char* literal) : english(literal) {
    if (!(has_field(english, Names.view()) && ...)) throw "a value has no field of its name in the text";
  }
};

template <class T>
TextValue named(std::string_view name, const T& value) {
  if constexpr (std::is_same_v<T, bool>)
    return {name, text(value)};
  else if constexpr (std::is_same_v<T, char>)
    return {name, std::string(1, value)};
  else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, uint64_t>)
    return {name, static_cast<int64_t>(value)};
  else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, Text>)
    return {name, value};
  else
    return {name, text(value)};
}

}  // namespace detail

/// tr("{rows} rows in {file}", "rows"_a = 3, "file"_a = path). A field may have a format: {share:.2f}. Braces
/// around anything but the name of a value stay as they are, such as TeX's \sqrt{d}.
template <detail::ValueName... Names, class... Values>
Text tr(std::type_identity_t<detail::Pattern<Names...>> pattern, detail::NamedValue<Names, Values>... values) {
  return Text(pattern.english, {detail::named(Names.view(), values.value)...});
}

template <detail::ValueName Name>
consteval detail::Naming<Name> operator""_a() {
  return {};
}

}  // namespace qkv
