// Errors: one exception type, one line, both values.
#pragma once

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace qkv {

/// What every check throws. `what()` is one line; `hint()` is what the user could do about it, or empty.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message, std::string hint = "")
      : std::runtime_error(message), hint_(std::move(hint)) {}
  const std::string& hint() const { return hint_; }

 private:
  std::string hint_;
};

/// Appends one part of a message; a type joins in by overloading this.
inline void append_text(std::string& out, std::string_view part) { out += part; }
inline void append_text(std::string& out, const char* part) { out += part; }
inline void append_text(std::string& out, char part) { out += part; }
inline void append_text(std::string& out, bool part) { out += part ? "true" : "false"; }
void append_text(std::string& out, double part);
void append_text(std::string& out, float part);  // 0.1f is "0.1"
template <std::integral T>
void append_text(std::string& out, T part) {
  out += std::to_string(part);
}

/// text("a ", 3, " b") == "a 3 b".
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

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

}  // namespace qkv
