// Packing: a counting sort by length, and copies of rows.
#include "qkv/ops/steps.h"

#include <limits>

#include "qkv/kernels/elementwise.h"

namespace qkv {
namespace {

double copy_cost(int64_t rows, int64_t width) {
  return static_cast<double>(rows) * (5 + 0.15 * static_cast<double>(width));
}

}  // namespace

Steps::Steps(const char* op, int64_t batch, int64_t length, const Ids& lens, Direction direction)
    : batch_(batch),
      length_(length),
      direction_(direction),
      order_(Ids::empty({batch})),
      lens_(Ids::empty({batch})),
      active_(Ids::empty({length + 1})),
      start_(Ids::empty({length + 1})) {
  check(!lens.defined() || lens.shape() == Shape{batch}, "[", op, "] lengths have shape ", lens.shape(),
        ", expected one for each of ", batch, " rows");
  check(batch * length <= std::numeric_limits<int32_t>::max(), "[", op, "] ", batch, " rows of ", length,
        " steps are too many");
  const auto length_of = [&](int64_t b) { return lens.defined() ? int64_t{lens.ptr()[b]} : length; };
  int32_t *active = active_.mutable_ptr(), *start = start_.mutable_ptr();
  std::fill_n(active, length + 1, 0);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t n = length_of(b);
    check(n >= 0 && n <= length, "[", op, "] length ", n, " of row ", b, " is not in 0 to ", length);
    ++active[n];  // for now, rows of exactly that length
  }
  for (int64_t s = length - 1; s >= 0; --s) active[s] += active[s + 1];  // rows of at least that length
  // Longer rows come first: rows of length n begin where the rows of at least n + 1 end.
  for (int64_t n = 0; n <= length; ++n) start[n] = n < length ? active[n + 1] : 0;
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t n = length_of(b);
    order_.mutable_ptr()[start[n]] = static_cast<int32_t>(b);
    lens_.mutable_ptr()[start[n]++] = static_cast<int32_t>(n);
  }
  for (int64_t s = 0; s < length; ++s) active[s] = active[s + 1];  // a row of length n has steps 0 .. n - 1
  active[length] = 0;
  start[0] = 0;
  for (int64_t s = 0; s < length; ++s) start[s + 1] = start[s] + active[s];
}

Tensor Steps::gather(const Tensor& x) const {
  const int64_t width = x.size(-1);
  Tensor packed = Tensor::empty({total(), width});
  parallel_ranges(length_, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, batch_ * width)), copy_cost(total(), width),
                  [&](int64_t begin, int64_t end) {
                    for (int64_t s = begin; s < end; ++s)
                      for (int64_t i = 0; i < active(s); ++i)
                        std::copy_n(x.ptr() + (row(i) * length_ + time(i, s)) * width, width,
                                    packed.mutable_ptr() + (start(s) + i) * width);
                  });
  return packed;
}

void Steps::scatter(const Tensor& packed, float* to, bool add) const {
  const int64_t width = packed.size(-1);
  parallel_ranges(batch_, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, length_ * width)),
                  copy_cost(batch_ * length_, width), [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      float* sequence = to + row(i) * length_ * width;
                      for (int64_t s = 0; s < row_length(i); ++s) {
                        const float* from = packed.ptr() + (start(s) + i) * width;
                        float* at = sequence + time(i, s) * width;
                        if (add)
                          kernels::add(at, from, at, width);
                        else
                          std::copy_n(from, width, at);
                      }
                      if (!add) std::fill(sequence + row_length(i) * width, sequence + length_ * width, 0.f);
                    }
                  });
}

Tensor Steps::sorted(const Tensor& x, int64_t width) const {
  if (!x.defined()) return zeros({batch_, width});
  Tensor out = Tensor::empty({batch_, width});
  for (int64_t i = 0; i < batch_; ++i) std::copy_n(x.ptr() + row(i) * width, width, out.mutable_ptr() + i * width);
  return out;
}

Tensor Steps::unsorted(const Tensor& x) const {
  const int64_t width = x.size(-1);
  Tensor out = Tensor::empty(x.shape());
  for (int64_t i = 0; i < batch_; ++i) std::copy_n(x.ptr() + i * width, width, out.mutable_ptr() + row(i) * width);
  return out;
}

int64_t Steps::cut(int64_t part, int64_t parts) const {
  if (part == 0) return 0;
  if (part == parts) return batch_;
  int64_t i = 0;
  for (int64_t steps = 0; i < batch_ && steps * parts < total() * part; ++i) steps += row_length(i);
  return i;
}

}  // namespace qkv
