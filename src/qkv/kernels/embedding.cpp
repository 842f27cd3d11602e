// Embedding kernels.
#include "qkv/kernels/embedding.h"

#include <optional>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "qkv/kernels/embedding.cpp"
#include <hwy/foreach_target.h>

#include "qkv/kernels/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {

void EmbedKernel(const EmbedForward& e, int64_t begin, int64_t end) {
  const Floats d;
  const int64_t n = e.width, row_bytes = KeepRowBytes(n);
  const Vec scale = hn::Set(d, e.scale), kept_scale = hn::Set(d, e.drop ? e.drop->scale() : 1);
  std::optional<KeepBits> keep_bits;
  if (e.drop) keep_bits.emplace(*e.drop, static_cast<uint64_t>(begin * n), (end - begin) * n);
  for (int64_t r = begin; r < end; ++r) {
    const float* row = e.table + e.ids[r] * n;
    const float* position = e.position ? e.position + r % e.period * n : nullptr;
    float* y = e.y + r * n;
    const auto value = [&](int64_t i, int64_t left) HWY_ATTR {
      const Vec v = LoadUpTo(d, row + i, left);
      return position ? hn::MulAdd(v, scale, LoadUpTo(d, position + i, left)) : hn::Mul(v, scale);
    };
    if (!keep_bits) {
      ForVectors(n, [&](int64_t i, int64_t left) HWY_ATTR { StoreUpTo(value(i, left), d, y + i, left); });
      continue;
    }
    uint8_t* bits = e.bits ? e.bits + r * row_bytes : nullptr;
    keep_bits->ForKept(n, bits, [&](int64_t i, int64_t left, auto kept) HWY_ATTR {
      StoreUpTo(hn::IfThenElseZero(kept, hn::Mul(value(i, left), kept_scale)), d, y + i, left);
    });
  }
}

void EmbedBackKernel(const EmbedBackward& e, int64_t begin, int64_t end) {
  const Floats d;
  const int64_t n = e.width, row_bytes = KeepRowBytes(n);
  const Vec scale = hn::Set(d, e.scale);
  for (int64_t r = 0; r < e.rows; ++r) {
    const float* dy = e.dy + r * n + begin;
    float* sum = e.sum + (e.ids ? e.ids[r] : r % e.period) * n + begin;
    const uint8_t* bits = e.bits ? e.bits + r * row_bytes + KeepOffset(begin) : nullptr;
    ForVectors(end - begin, [&](int64_t i, int64_t left) HWY_ATTR {
      Vec g = LoadUpTo(d, dy + i, left);
      if (bits) g = hn::IfThenElseZero(KeptAt(d, bits, i), g);
      StoreUpTo(hn::MulAdd(g, scale, LoadUpTo(d, sum + i, left)), d, sum + i, left);
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace qkv::kernels {

HWY_EXPORT(EmbedKernel);
HWY_EXPORT(EmbedBackKernel);
void embed(const EmbedForward& e, int64_t begin, int64_t end) { HWY_DYNAMIC_DISPATCH(EmbedKernel)(e, begin, end); }
void embed_back(const EmbedBackward& e, int64_t begin, int64_t end) {
  HWY_DYNAMIC_DISPATCH(EmbedBackKernel)(e, begin, end);
}

}  // namespace qkv::kernels
#endif
