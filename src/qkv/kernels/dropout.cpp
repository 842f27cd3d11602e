// Dropout and random numbers over flat arrays.
#include "qkv/kernels/dropout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/dropout.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

void DropoutKernel(const Drop& drop, const float* x, float* y, uint8_t* bits, int64_t begin, int64_t end) {
  const Floats d;
  const Vec scale = hn::Set(d, drop.scale());
  KeepBits keep_bits(drop, static_cast<uint64_t>(begin), end - begin);
  keep_bits.ForKept(end - begin, bits ? bits + KeepOffset(begin) : nullptr,
                    [&](int64_t i, int64_t left, auto kept) HWY_ATTR {
                      const Vec v = LoadUpTo(d, x + begin + i, left);
                      StoreUpTo(hn::IfThenElseZero(kept, hn::Mul(v, scale)), d, y + begin + i, left);
                    });
}

void DropoutBackKernel(float scale, const float* dy, const uint8_t* bits, float* dx, int64_t begin, int64_t end) {
  const Floats d;
  const uint8_t* row = bits + KeepOffset(begin);
  ForVectors(end - begin, [&](int64_t i, int64_t left) HWY_ATTR {
    const Vec g = hn::Mul(LoadUpTo(d, dy + begin + i, left), hn::Set(d, scale));
    StoreUpTo(hn::IfThenElseZero(KeptAt(d, row, i), g), d, dx + begin + i, left);
  });
}

// out[i] = convert(word first + i), a vector at a time; the last few through a buffer.
template <class T, class D, class F>
HWY_INLINE void ForWords(const Rng& rng, uint64_t first, T* out, int64_t n, D d, F&& convert) {
  const WordStream stream(rng);
  const int64_t step = WordStream::kVectors * kLanes;
  HWY_ALIGN T last[WordStream::kVectors * HWY_MAX_BYTES / sizeof(T)];
  for (int64_t i = 0; i < n; i += step) {
    T* y = n - i >= step ? out + i : last;
    stream.Next(first / 4 + static_cast<uint64_t>(i / 4),
                [&](int64_t v, WordVec w) HWY_ATTR { hn::StoreU(convert(w), d, y + v * kLanes); });
    if (y == last) std::copy_n(last, n - i, out + i);
  }
}

void RandomWordsKernel(const Rng& rng, uint64_t first, uint32_t* words, int64_t n) {
  ForWords(rng, first, words, n, Words(), [](WordVec w) HWY_ATTR { return w; });
}

void RandomUniformKernel(const Rng& rng, uint64_t first, float low, float high, float* y, int64_t n) {
  const Floats d;
  const Vec width = hn::Set(d, high - low), bottom = hn::Set(d, low), unit = hn::Set(d, 0x1p-24f);
  ForWords(rng, first, y, n, d, [=](WordVec w) HWY_ATTR {
    const Vec u =
        hn::Mul(hn::ConvertTo(Floats(), hn::BitCast(hn::RebindToSigned<Floats>(), hn::ShiftRight<8>(w))), unit);
    return hn::Add(bottom, hn::Mul(width, u));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(DropoutKernel);
HWY_EXPORT(DropoutBackKernel);
HWY_EXPORT(RandomWordsKernel);
HWY_EXPORT(RandomUniformKernel);

void dropout(const Drop& drop, const float* x, float* y, uint8_t* bits, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(DropoutKernel)(drop, x, y, bits, begin, end);
}
void dropout_back(float scale, const float* dy, const uint8_t* bits, float* dx, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(DropoutBackKernel)(scale, dy, bits, dx, begin, end);
}
void random_words(const Rng& rng, uint64_t first, uint32_t* words, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RandomWordsKernel)(rng, first, words, n);
}
void random_uniform(const Rng& rng, uint64_t first, float low, float high, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(RandomUniformKernel)(rng, first, low, high, y, n);
}

}  // namespace qkv::kernels
#endif
