// Dropout as an op. Decisions are kept as bits, 1/32 of the array: drawing them again costs ten times as much as
// reading them.
#include "qkv/ops/dropout.h"

#include "qkv/core/parallel.h"
#include "qkv/kernels/dropout.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {

bool drops(const char* op, float rate, const Run& run) {
  check(rate >= 0 && rate < 1, "[", op, "] the dropout rate must be in [0, 1), got ", rate);
  return run.training && rate > 0;
}

void note_draw(const char* op, const Run& run) {
  if (Tape* tape = Tape::current()) tape->note_draw(op, run.rng);
}

Buffer keep_bits(int64_t rows, int64_t width) {
  return Buffer::take(static_cast<size_t>(kernels::keep_bytes(rows, width)));
}

// y = x m / (1 - rate), m the decisions.   dx = dy m / (1 - rate)
Tensor dropout(const Tensor& x, float rate, const Run& run) {
  check_present("dropout", x);
  if (!drops("dropout", rate, run)) return x;
  note_draw("dropout", run);
  const kernels::Drop drop{run.rng, rate};
  const int64_t n = x.numel();
  Tensor y = Tensor::empty(x.shape());
  const Buffer bits = Tape::tracks(x) ? keep_bits(1, n) : Buffer();
  parallel_ranges(n, kernels::kDropoutBlock, 0.8 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    kernels::dropout(drop, x.ptr(), y.mutable_ptr(), reinterpret_cast<uint8_t*>(bits.data()), begin, end);
  });
  record("dropout", y, {&x}, [bits, scale = drop.scale()](Pull& p) {
    const Tensor& dy = p.dy();
    Tensor dx = Tensor::empty(dy.shape());
    parallel_ranges(dy.numel(), kernels::kDropoutBlock, 0.3 * static_cast<double>(dy.numel()),
                    [&](int64_t begin, int64_t end) {
                      kernels::dropout_back(scale, dy.ptr(), reinterpret_cast<const uint8_t*>(bits.data()),
                                            dx.mutable_ptr(), begin, end);
                    });
    p.give(0, std::move(dx));
  });
  return y;
}

}  // namespace qkv
