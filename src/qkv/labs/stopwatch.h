// How long something takes.
#pragma once

#include <chrono>

namespace qkv::labs {

/// The seconds that f() took.
template <class F>
double seconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace qkv::labs
