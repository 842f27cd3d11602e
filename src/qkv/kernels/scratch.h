// Working memory of a kernel: one aligned buffer per thread, which grows and is kept.
#pragma once

#include <cstdint>

namespace qkv::kernels {

/// Hands out pieces of the calling thread's buffer, each aligned to a cache line. One Scratch per thread at a time.
class Scratch {
 public:
  /// floats: the total that will be requested, in `pieces` pieces.
  Scratch(int64_t floats, int pieces);
  float* take(int64_t floats);

 private:
  float* next_;
};

}  // namespace qkv::kernels
