// Dropout: forward draws which elements are kept, backward reads those decisions.
#pragma once

#include <cmath>
#include <cstdint>

#include "qkv/core/rng.h"

namespace qkv::kernels {

/// Element i is kept iff word i of the stream is at least rate * 2^32, and scaled by 1 / (1 - rate). Expects 0 < rate
/// < 1.
struct Drop {
  Rng rng;
  float rate = 0;

  uint32_t threshold() const { return static_cast<uint32_t>(std::ceil(static_cast<double>(rate) * 0x1p32)); }
  float scale() const { return static_cast<float>(1 / (1 - static_cast<double>(rate))); }
};

/// Enough bytes for the decisions of rows of that width, on any target.
inline int64_t keep_bytes(int64_t rows, int64_t width) { return rows * ((width + 3) / 4 + 1) + 8; }

/// Elements per block when a flat array is cut into pieces: a multiple of every vector size.
inline constexpr int64_t kDropoutBlock = 1 << 13;

/// y = x * scale where kept, 0 elsewhere, for elements [begin, end) of an array; begin a multiple of kDropoutBlock.
/// The decisions go to `bits` (of the whole array) unless it is null.
void dropout(const Drop& drop, const float* x, float* y, uint8_t* bits, int64_t begin, int64_t end);
/// dx = dy * scale where the bits say kept, 0 elsewhere.
void dropout_back(float scale, const float* dy, const uint8_t* bits, float* dx, int64_t begin, int64_t end);

/// Words first, first + 1, ... of the stream; and the same as floats low + (high - low) u, u in [0, 1). `first` must be
/// a multiple of 4.
void random_words(const Rng& rng, uint64_t first, uint32_t* words, int64_t n);
void random_uniform(const Rng& rng, uint64_t first, float low, float high, float* y, int64_t n);

}  // namespace qkv::kernels
