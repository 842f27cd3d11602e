// Matrix products: empty cases, thread set-up, and the fixed cuts that run in parallel.
#include "qkv/kernels/gemm.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "qkv/core/parallel.h"
#include "qkv/kernels/gemm_kernel.h"
#include "qkv/kernels/linear.h"

namespace qkv::kernels {
namespace {

constexpr double kFlopsPerNanosecond = 60;  // for estimates of work
constexpr double kBlockFlops = 2e5;         // a block takes at least about 3 us
constexpr int64_t kBlocksWanted = 8;
constexpr int64_t kSharedLeast = 1 << 16,
                  kSharedMost = 1 << 22;    // floats of an op(B) that blocks share after packing
constexpr int64_t kCachedFloats = 1 << 16;  // a C of this size is still in L2 when it is complete

float* aligned_floats(int64_t count) {
  void* p = std::aligned_alloc(64, static_cast<size_t>((count + 15) / 16 * 16) * sizeof(float));
  if (!p) throw std::bad_alloc();
  return static_cast<float*>(p);
}

int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }
int64_t round_up(int64_t n, int64_t unit) { return blocks_of(n, unit) * unit; }

// C <- beta C, or the bias
void scale_only(const GemmCall& c) {
  for (int64_t i = 0; i < c.M; ++i) {
    float* row = c.C + i * c.ldc;
    if (c.bias)
      std::copy_n(c.bias, c.N, row);
    else if (c.beta == 0)
      std::fill_n(row, c.N, 0.f);
    else if (c.beta != 1)
      std::transform(row, row + c.N, row, [&](float x) { return c.beta * x; });
  }
}

// How C is cut: a function of the shape.
struct Cut {
  int64_t rows, columns, row_blocks, column_blocks;
  int64_t count() const { return row_blocks * column_blocks; }
};

double flops_of(const GemmCall& c) {
  return 2.0 * static_cast<double>(c.M) * static_cast<double>(c.N) * static_cast<double>(c.K);
}

Cut cut_of(const GemmCall& c, int64_t products) {
  // Each block packs its own panels of B, which costs as much as 4 rows, or 30 if B comes from memory. So blocks have
  // many rows, up to 512, and columns are cut if that gives too few blocks.
  const double row_flops = 2.0 * static_cast<double>(c.N) * static_cast<double>(std::max<int64_t>(c.K, 1));
  const int64_t least = static_cast<int64_t>(std::min(kBlockFlops / row_flops, 1e9)) + 1;
  Cut cut;
  cut.rows =
      std::min(std::max<int64_t>(c.M, 1),
               round_up(std::max({int64_t{96}, least, blocks_of(c.M, 64), std::min<int64_t>(512, blocks_of(c.M, 4))}),
                        kTileRows));
  cut.row_blocks = blocks_of(c.M, cut.rows);
  cut.columns = c.N;
  if (cut.row_blocks * products < kBlocksWanted && c.N >= 128 && flops_of(c) >= 2 * kBlockFlops) {
    const int64_t parts = blocks_of(kBlocksWanted, cut.row_blocks * products);
    cut.columns = std::min(c.N, round_up(std::max<int64_t>(64, blocks_of(c.N, parts)), kPanelColumns));
  }
  cut.column_blocks = blocks_of(c.N, cut.columns);
  return cut;
}

// Whether blocks of rows share one packed op(B): it must be large enough to be worth packing and small enough to stay
// in the last-level cache.
bool shares_panels(const GemmCall& c, const Cut& cut) {
  const int64_t floats = packed_floats(c.N, c.K);
  return !c.panels && cut.row_blocks > 1 && floats >= kSharedLeast && floats <= kSharedMost;
}

// With one packed op(B) for all, blocks may have few rows, and only as many columns as are processed at once: there are
// many blocks, and the threads finish a product together.
Cut shared_cut_of(const GemmCall& c) {
  Cut cut;
  cut.rows = std::min(c.M, round_up(std::clamp<int64_t>(blocks_of(c.M, 2 * kBlocksWanted), kRowBlock, 512), kTileRows));
  cut.columns = std::min(c.N, kColumnBlock);
  cut.row_blocks = blocks_of(c.M, cut.rows);
  cut.column_blocks = blocks_of(c.N, cut.columns);
  return cut;
}

// Memory of the calling thread for an op(B) that other threads read too; it grows and is kept.
float* shared_panels(int64_t floats) {
  struct Memory {
    struct Free {
      void operator()(float* p) const { std::free(p); }
    };
    std::unique_ptr<float, Free> data;
    int64_t size = 0;
  };
  static thread_local Memory memory;
  if (memory.size < floats) {
    memory.data.reset();
    memory.size = 0;
    memory.data.reset(aligned_floats(floats));
    memory.size = floats;
  }
  return memory.data.get();
}

GemmBlock block_of(const GemmCall& c, const Cut& cut, int64_t b) {
  const int64_t row = b / cut.column_blocks * cut.rows, column = b % cut.column_blocks * cut.columns;
  return {row, std::min(cut.rows, c.M - row), column, std::min(cut.columns, c.N - column)};
}

void run_block(GemmCall c, const GemmBlock& block) {
  c.A += block.row * (c.transpose_a == Transpose::no ? c.lda : 1);
  if (c.panels)
    c.panels += block.column * c.K;  // blocks begin at whole panels
  else
    c.B += block.column * (c.transpose_b == Transpose::no ? 1 : c.ldb);
  c.C += block.row * c.ldc + block.column;
  if (c.bias) c.bias += block.column;
  c.M = block.rows;
  c.N = block.columns;
  gemm(c);
}

// The product in parallel, op(B) packed in parallel before it.
void run_shared(GemmCall c, double ns, void (*after)(void*, GemmBlock), void* context) {
  constexpr int64_t kColumns = 4 * kPanelColumns;
  float* panels = shared_panels(packed_floats(c.N, c.K));
  parallel_ranges(c.N, kColumns, 0.3 * static_cast<double>(c.N * c.K), [&](int64_t begin, int64_t end) {
    const float* B = c.B + begin * (c.transpose_b == Transpose::no ? 1 : c.ldb);
    pack_right(c.transpose_b, end - begin, c.K, B, c.ldb, panels + begin * c.K);
  });
  c.panels = panels;
  const Cut cut = shared_cut_of(c);
  parallel_for(cut.count(), ns, [&](int64_t b) {
    const GemmBlock block = block_of(c, cut, b);
    run_block(c, block);
    if (after) after(context, block);
  });
}

}  // namespace

GemmScratch gemm_scratch() {
  struct Memory {
    struct Free {
      void operator()(float* p) const { std::free(p); }
    };
    std::unique_ptr<float, Free> a{aligned_floats((kDepth + kRowGap) * kRowBlock)},
        b{aligned_floats(kDepth * (kColumnBlock + 64))};
  };
  static thread_local Memory memory;
  return {memory.a.get(), memory.b.get()};
}

int64_t packed_floats(int64_t N, int64_t K) { return round_up(N, kPanelColumns) * K; }

void gemm(const GemmCall& c) {
  flush_denormals();
  if (c.M == 0 || c.N == 0) return;
  if (c.K == 0 || c.alpha == 0) return scale_only(c);
  if (!c.bias || panel_depth(c.K) == c.K) return tiled_gemm(c);
  GemmCall bare = c;  // several panels of K: the bias is added with the last
  bare.bias = nullptr;
  tiled_gemm(bare);
  bias_activation(Activation::none, c.C, c.C, c.bias, {c.M, c.N, c.ldc});
}

void gemm_parallel(const GemmCall& c, void (*after)(void*, GemmBlock), void* context) {
  if (c.M == 0 || c.N == 0) return;
  const Cut cut = cut_of(c, 1);
  const double ns = flops_of(c) / kFlopsPerNanosecond;
  if (!detail::parallel_worthwhile(cut.count(), ns) &&
      (!after || c.M * c.N <= kCachedFloats)) {  // one piece is cheaper, with the same bits
    gemm(c);
    if (after) after(context, {0, c.M, 0, c.N});
    return;
  }
  if (c.K > 0 && c.alpha != 0 && shares_panels(c, cut) && detail::parallel_worthwhile(cut.count(), ns))
    return run_shared(c, ns, after, context);
  parallel_for(cut.count(), ns, [&](int64_t b) {
    const GemmBlock block = block_of(c, cut, b);
    run_block(c, block);
    if (after) after(context, block);
  });
}

void gemm_batched(const GemmCall& c, const GemmBatch& batch) {
  if (batch.count == 1) return gemm_parallel(c);
  if (c.M == 0 || c.N == 0 || batch.count == 0) return;
  const Cut cut = cut_of(c, batch.count);
  const double flops = flops_of(c), ns = flops * static_cast<double>(batch.count) / kFlopsPerNanosecond;
  const auto product = [&](int64_t i) {
    GemmCall one = c;
    one.A += i * batch.stride_a;
    one.B += i * batch.stride_b;
    one.C += i * batch.stride_c;
    return one;
  };
  if (cut.count() == 1 || !detail::parallel_worthwhile(batch.count * cut.count(), ns)) {
    const int64_t group = static_cast<int64_t>(std::min(kBlockFlops / std::max(flops, 1.0), 1e6)) + 1;
    return parallel_ranges(batch.count, group, ns, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) gemm(product(i));
    });
  }
  parallel_for(batch.count * cut.count(), ns,
               [&](int64_t b) { run_block(product(b / cut.count()), block_of(c, cut, b % cut.count())); });
}

}  // namespace qkv::kernels
