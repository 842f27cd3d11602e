// What the standard library of Debian 12's emscripten (libc++ 13) lacks of C++20, as far as qkv uses it. The build of
// the page includes it before every file, so that no call site knows of it; nothing else may include it.
#pragma once

#include <algorithm>
#include <charconv>
#include <functional>
#include <iterator>
#include <ranges>
#include <type_traits>

namespace std {

template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From) && is_trivially_copyable_v<To> && is_trivially_copyable_v<From>);
  return __builtin_bit_cast(To, from);
}

// The shortest digits that give the number again, and the number that digits give: src/qkv/wasm/standard.cpp.
to_chars_result to_chars(char* first, char* last, double value);
to_chars_result to_chars(char* first, char* last, float value);
to_chars_result to_chars(char* first, char* last, double value, chars_format format, int precision);
from_chars_result from_chars(const char* first, const char* last, double& value);
from_chars_result from_chars(const char* first, const char* last, float& value);

namespace ranges {
namespace detail {

// Compares or tests what a projection makes of an element.
template <class F, class P>
auto through(F f, P projection) {
  return [f = std::move(f), projection = std::move(projection)](const auto&... x) -> decltype(auto) {
    return std::invoke(f, std::invoke(projection, x)...);
  };
}

}  // namespace detail

template <class R, class F, class P = identity>
bool all_of(R&& r, F f, P p = {}) {
  return std::all_of(begin(r), end(r), detail::through(f, p));
}
template <class R, class F, class P = identity>
bool any_of(R&& r, F f, P p = {}) {
  return std::any_of(begin(r), end(r), detail::through(f, p));
}
template <class R, class F, class P = identity>
bool none_of(R&& r, F f, P p = {}) {
  return std::none_of(begin(r), end(r), detail::through(f, p));
}
template <class R, class F, class P = identity>
auto find_if(R&& r, F f, P p = {}) {
  return std::find_if(begin(r), end(r), detail::through(f, p));
}
template <class I, class F, class P = identity>
requires input_iterator<I> I find_if(I first, I last, F f, P p = {}) {
  return std::find_if(first, last, detail::through(f, p));
}
template <class R, class T, class P = identity>
auto find(R&& r, const T& value, P p = {}) {
  return ranges::find_if(
      r, [&](const auto& x) { return x == value; }, p);
}
template <class R, class F, class P = identity>
auto count_if(R&& r, F f, P p = {}) {
  return std::count_if(begin(r), end(r), detail::through(f, p));
}
template <class R, class T, class P = identity>
auto count(R&& r, const T& value, P p = {}) {
  return ranges::count_if(
      r, [&](const auto& x) { return x == value; }, p);
}
template <class R, class C = std::less<>, class P = identity>
auto max_element(R&& r, C c = {}, P p = {}) {
  return std::max_element(begin(r), end(r), detail::through(c, p));
}
template <class R, class C = std::less<>, class P = identity>
auto min_element(R&& r, C c = {}, P p = {}) {
  return std::min_element(begin(r), end(r), detail::through(c, p));
}
template <class R>
auto min(R&& r) {
  return *std::min_element(begin(r), end(r));
}
template <class R, class T>
bool binary_search(R&& r, const T& value) {
  return std::binary_search(begin(r), end(r), value);
}
template <class R, class O>
auto copy(R&& r, O out) {
  return std::copy(begin(r), end(r), out);
}
template <class R, class O>
auto move(R&& r, O out) {
  return std::move(begin(r), end(r), out);
}
template <class R, class T>
void fill(R&& r, const T& value) {
  std::fill(begin(r), end(r), value);
}
template <class R, class T, class U>
void replace(R&& r, const T& old, const U& value) {
  std::replace(begin(r), end(r), old, value);
}
template <class R, class C = std::less<>, class P = identity>
void sort(R&& r, C c = {}, P p = {}) {
  std::sort(begin(r), end(r), detail::through(c, p));
}
template <class R, class C = std::less<>, class P = identity>
void stable_sort(R&& r, C c = {}, P p = {}) {
  std::stable_sort(begin(r), end(r), detail::through(c, p));
}
template <class R>
auto unique(R&& r) {
  const auto last = std::unique(begin(r), end(r));
  return ranges::subrange(last, end(r));
}

}  // namespace ranges
}  // namespace std
