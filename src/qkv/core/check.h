// Errors: one exception type, one line, both values.
#pragma once

#include <stdexcept>
#include <string>

#include "qkv/core/language.h"

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// What every check throws: one line, and what the user could do about it, or nothing. `what()` is the English line.
class Error : public std::runtime_error {
 public:
  explicit Error(Text message, Text hint = {})
      : std::runtime_error(message.in(Language::en)), message_(std::move(message)), hint_(std::move(hint)) {}
  const Text& message() const { return message_; }
  const Text& hint() const { return hint_; }

 private:
  Text message_, hint_;
};

template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(text(parts...));
}

/// check(k == k2, "[matmul] inner sizes differ: ", a.shape(), " x ", b.shape());
template <class... Parts>
inline void check(bool ok, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(parts...);
}

/// For what users of the program meet, in their language: refuse("{file}: it is empty", "file"_a = path). Texts of the
/// library that only its callers meet, "[matmul] ...", are made by check and fail and stay English.
template <detail::ValueName... Names, class... Values>
[[noreturn]] void refuse(std::type_identity_t<detail::Pattern<Names...>> pattern,
                         detail::NamedValue<Names, Values>... values) {
  throw Error(tr<Names...>(pattern, values...));
}

template <detail::ValueName... Names, class... Values>
inline void require(bool ok, std::type_identity_t<detail::Pattern<Names...>> pattern,
                    detail::NamedValue<Names, Values>... values) {
  if (!ok) [[unlikely]]
    refuse<Names...>(pattern, values...);
}

}  // namespace qkv
