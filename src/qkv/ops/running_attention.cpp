// The value and all three gradients are the same sum, over earlier rows or over later ones.
#include "qkv/ops/running_attention.h"

#include "qkv/core/parallel.h"
#include "qkv/kernels/running_sums.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

using kernels::Running;

constexpr int64_t kColumns = 32;  // of the result per block of work
constexpr double kNanoseconds = 0.1;

// (a_i . b_j) c_j added up over the rows that count: a (B, H, n, F), b (B, H, m, F), c (B, H, m, D) -> (B, H, n, D)
Tensor summed(const Tensor& a, const Tensor& b, const Tensor& c, int64_t offset, Running way) {
  const int64_t heads = a.size(0) * a.size(1), n = a.size(2), m = b.size(2), F = a.size(3), D = c.size(3);
  Tensor y = Tensor::empty({a.size(0), a.size(1), n, D});
  if (y.numel() == 0) return y;
  const int64_t blocks = (D + kColumns - 1) / kColumns;
  parallel_for(heads * blocks, kNanoseconds * static_cast<double>(heads * (n + m)) * static_cast<double>(F * D),
               [&](int64_t block) {
                 const int64_t head = block / blocks, first = block % blocks * kColumns;
                 kernels::running_sums(
                     {a.ptr() + head * n * F, b.ptr() + head * m * F, c.ptr() + head * m * D, n, m, F, D, offset, way},
                     y.mutable_ptr() + head * n * D, first, std::min(first + kColumns, D));
               });
  return y;
}

}  // namespace

// y_i = sum over j <= i + offset of (q_i . k_j) v_j
// dq_i = sum over j <= i + offset of (dy_i . v_j) k_j
// dk_j = sum over i >= j - offset of (v_j . dy_i) q_i    dv_j = sum over i >= j - offset of (k_j . q_i) dy_i
Tensor running_attention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t offset) {
  check_present("running_attention", q, "queries");
  check_present("running_attention", k, "keys");
  check_present("running_attention", v, "values");
  check(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && q.size(0) == k.size(0) && k.size(0) == v.size(0) &&
            q.size(1) == k.size(1) && k.size(1) == v.size(1) && k.size(2) == v.size(2) && q.size(3) == k.size(3),
        "[running_attention] expected (B, H, Lq, F), (B, H, Lk, F) and (B, H, Lk, D), got ", q.shape(), ", ", k.shape(),
        " and ", v.shape());
  check(offset >= 0, "[running_attention] the offset must be 0 or more, got ", offset);
  Tensor y = summed(q, k, v, offset, Running::up);
  const Tensor sq = Tape::saved(q, {&k, &v}), sk = Tape::saved(k, {&q, &v}), sv = Tape::saved(v, {&q, &k});
  record("running_attention", y, {&q, &k, &v}, [sq, sk, sv, offset](Pull& p) {
    if (p.wants(0)) p.give(0, summed(p.dy(), sv, sk, offset, Running::up));
    if (p.wants(1)) p.give(1, summed(sv, p.dy(), sq, offset, Running::down));
    if (p.wants(2)) p.give(2, summed(sk, sq, p.dy(), offset, Running::down));
  });
  return y;
}

}  // namespace qkv
