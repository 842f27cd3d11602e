// The gradient of a relative bias: dS summed along its diagonals, in float inside a tile, then in double over the tiles
// of a group, the groups of a head, and the heads and batch rows that share the bias, always in this order. O(n)
// memory.
#if defined(QKV_KERNELS_ATTENTION_RELATIVE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef QKV_KERNELS_ATTENTION_RELATIVE_INL_H_
#undef QKV_KERNELS_ATTENTION_RELATIVE_INL_H_
#else
#define QKV_KERNELS_ATTENTION_RELATIVE_INL_H_
#endif

#include <vector>

#include "qkv/kernels/attention_gradient-inl.h"
#include "qkv/kernels/borrowed.h"

HWY_BEFORE_NAMESPACE();
namespace qkv::kernels {
namespace HWY_NAMESPACE {
namespace attn {

constexpr int64_t kGroups = 4;  // tile t belongs to group t % kGroups: interleaved, so that causal groups cost the same

/// sums[j - i + Lq - 1] += dS_ij for the block's queries i and keys [j0, j1), dscores (j1 - j0, kBlock). Reversed as in
/// AddRelative.
HWY_NOINLINE void AddToDiagonals(const QueryBlock& block, int64_t j0, int64_t j1, const float* dscores, int64_t queries,
                                 double* sums) {
  HWY_ALIGN float turned[kTile + kBlock];
  const int64_t count = j1 - j0 - 1 + block.count;
  std::fill_n(turned, count, 0.f);
  for (int64_t j = j0; j < j1; ++j) {
    float* to = turned + j1 - 1 - j;
    Map(to, dscores + (j - j0) * kBlock, to, block.count, [](Floats, Vec a, Vec b) HWY_ATTR { return hn::Add(a, b); });
  }
  double* last = sums + queries - 1 + j1 - 1 - block.first;
  for (int64_t t = 0; t < count; ++t) last[-t] += static_cast<double>(turned[t]);
}

/// The sums of all heads of one call; does nothing if no drelative is wanted.
class DiagonalSums {
 public:
  explicit DiagonalSums(const BackwardCall& x) : x_(x), count_(x.call.sizes.queries + x.call.sizes.keys - 1) {
    if (!wanted()) return;
    kept_->resize(static_cast<size_t>(x.call.sizes.batch * x.call.sizes.heads * count_));
    heads_ = kept_->data();
  }

  /// Where the groups of one head add their sums, (kGroups, Lq + Lk - 1), in `memory`.
  double* OfGroups(std::vector<double>& memory) const {
    if (!wanted()) return nullptr;
    memory.resize(static_cast<size_t>(kGroups * count_));
    return memory.data();
  }
  /// Call when the groups of head bh are complete.
  void Merge(int64_t bh, const double* groups) const {
    if (!wanted()) return;
    double* to = heads_ + bh * count_;
    std::copy_n(groups, count_, to);
    for (int64_t g = 1; g < kGroups; ++g) {
      for (int64_t t = 0; t < count_; ++t) to[t] += groups[g * count_ + t];
    }
  }
  /// Call when all heads are complete.
  void Write() const {
    if (!wanted()) return;
    const AttentionSizes& z = x_.call.sizes;
    const AttentionMask& mask = x_.call.mask;
    const int64_t slice_heads = mask.relative_head ? z.heads : 1,
                  slices = (mask.relative_batch ? z.batch : 1) * slice_heads;
    constexpr int64_t kRange = 1024;
    parallel_ranges(
        slices * count_, kRange, static_cast<double>(z.batch * z.heads * count_), [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; ++at) {
            const int64_t b = at / count_ / slice_heads, h = at / count_ % slice_heads;
            const int64_t b1 = mask.relative_batch ? b + 1 : z.batch, h1 = mask.relative_head ? h + 1 : z.heads;
            double sum = 0;
            for (int64_t row = b; row < b1; ++row) {
              for (int64_t head = h; head < h1; ++head) sum += heads_[(row * z.heads + head) * count_ + at % count_];
            }
            x_.to.drelative[at] = static_cast<float>(sum);
          }
        });
  }

 private:
  bool wanted() const { return x_.to.drelative && x_.call.mask.relative; }

  const BackwardCall& x_;
  int64_t count_;
  Borrowed<double> kept_;
  double* heads_ = nullptr;  // (B, H, Lq + Lk - 1), in kept_
};

}  // namespace attn
}  // namespace HWY_NAMESPACE
}  // namespace qkv::kernels
HWY_AFTER_NAMESPACE();
#endif
