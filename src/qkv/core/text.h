// Strings made of parts.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// Appends one part of a string; overload it for your own types.
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

}  // namespace qkv
