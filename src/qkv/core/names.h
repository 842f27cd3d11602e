// Names of enum values, written once beside the enum: they are what users write, what is printed, and what errors list.
//
//   enum class NormPlace { post, pre };
//   constexpr std::array<std::string_view, 2> names(NormPlace) { return {"post", "pre"}; }
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/check.h"

namespace QKV_API qkv {

/// "a, b, c".
std::string listed(const std::vector<std::string>& words, std::string_view between = ", ");
/// The parts between marks; parts may be empty: "a,b" -> a, b; "" -> one empty part.
std::vector<std::string> split(std::string_view text, char mark);

/// 'where: got "wrd", expected one of word, words', with the nearest word as the hint.
[[noreturn]] void refuse_word(std::string_view where, std::string_view word, const std::vector<std::string>& known);

/// An enum with names: `names(value)`, defined beside it, lists them in the order of the values, which count from 0.
template <class E>
concept Named = std::is_enum_v<E> && requires(E value) {
  std::string_view(names(value)[0]);
};

template <Named E>
constexpr std::string_view name_of(E value) {
  return names(value)[static_cast<size_t>(value)];
}

/// Every value, in order.
template <Named E>
std::vector<E> every() {
  std::vector<E> all;
  for (size_t i = 0; i < names(E{}).size(); ++i) all.push_back(static_cast<E>(i));
  return all;
}

/// The names of some values.
template <Named E>
std::vector<std::string> names_of(const std::vector<E>& values) {
  std::vector<std::string> words;
  for (const E value : values) words.emplace_back(name_of(value));
  return words;
}

/// The value with that name, if there is one.
template <Named E>
std::optional<E> find_named(std::string_view name) {
  const auto all = names(E{});
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] == name) return static_cast<E>(i);
  return {};
}

/// The value with that name; if there is none, the error starts with `where`.
template <Named E>
E parse_name(std::string_view name, std::string_view where) {
  if (const auto value = find_named<E>(name)) return *value;
  refuse_word(where, name, names_of(every<E>()));
}

/// Messages show the name of a value.
template <Named E>
void append_text(std::string& out, E value) {
  out += name_of(value);
}

}  // namespace qkv
