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

/// Processor time of this thread so far: time taken by other programs does not count.
double thread_seconds();

/// The processor time that f() took, if it stays on this thread.
template <class F>
double thread_seconds(F&& f) {
  const double start = thread_seconds();
  f();
  return thread_seconds() - start;
}

}  // namespace qkv::labs
