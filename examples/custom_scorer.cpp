// Your own scorer: any type with scores(q, k), written in ordinary ops, works everywhere and has gradients.
#include <cstdio>

#include "qkv/attention/attend.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

using qkv::Tensor;

// a(q, k) = -rate * sum_d |q_d - k_d|: weights that fall off with the Manhattan distance.
struct Manhattan {
  Tensor rate;                                             // one learned number
  Tensor scores(const Tensor& q, const Tensor& k) const {  // (B, H, Lq, D), (B, H, Lk, D) -> (B, H, Lq, Lk)
    const Tensor rows = qkv::reshape(q, {q.size(0), q.size(1), q.size(2), 1, q.size(3)});
    const Tensor columns = qkv::reshape(k, {k.size(0), k.size(1), 1, k.size(2), k.size(3)});
    return qkv::neg(qkv::mul(qkv::sum(qkv::abs(rows - columns), -1), rate));
  }
};

int main() {
  const Tensor waist({5, 1}, {51, 56, 57, 58, 63}), weight({5, 1}, {40, 43, 46, 48, 55});
  Manhattan scorer{qkv::parameter(Tensor({1}, {0.1f}))};
  for (int step = 0; step < 4; ++step) {  // learn the rate: every point from the other four
    qkv::Tape tape;
    const auto [predicted, weights, empty_rows, path] =
        qkv::attend(scorer, waist, waist, weight, qkv::Mask::drop(qkv::eye(5)));
    const Tensor error = predicted - weight, loss = qkv::sum(error * error);
    tape.backward(loss);
    std::printf("rate %.4f  squared error %7.3f  weights for 57:", scorer.rate.item(), loss.item());
    for (float w : weights.row(0, 0, 2).data()) std::printf(" %.3f", w);
    std::printf("  %s\n", path == qkv::AttendPath::composed ? "composed" : "fused");
    scorer.rate.mutable_ptr()[0] -= 0.002f * tape.grad(scorer.rate).item();
  }
}
