// The number of threads, for the length of a test.
#pragma once

#include "qkv/core/parallel.h"

namespace qkv_test {

/// Puts the number of threads back when it goes, so that no test leaves its own to the next.
class ThreadsScope {
 public:
  ThreadsScope() = default;
  explicit ThreadsScope(int count) { qkv::set_threads(count); }
  ~ThreadsScope() { qkv::set_threads(before_); }
  ThreadsScope(const ThreadsScope&) = delete;
  ThreadsScope& operator=(const ThreadsScope&) = delete;

 private:
  int before_ = qkv::threads();
};

}  // namespace qkv_test
