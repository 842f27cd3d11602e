// Working memory of a kernel: one aligned buffer a thread, which grows and is kept.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// Hands out pieces of the calling thread's buffer, each on a cache line. One Scratch at a time on a thread.
class Scratch {
 public:
  /// floats: the sum of what will be asked for, pieces of it.
  Scratch(int64_t floats, int pieces);
  float* take(int64_t floats);

 private:
  float* next_;
};

}  // namespace qkv::kernels
