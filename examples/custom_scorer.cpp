// Your own scorer: any type with scores(q, k), written in ordinary ops, works everywhere and has gradients.
#include <qkv/qkv.h>

#include <cstdio>

using qkv::Tensor;

// a(q, k) = -rate * sum_d |q_d - k_d|: weights that fall off with the Manhattan distance.
struct Manhattan {
  Tensor rate;                                             // one learned number
  Tensor scores(const Tensor& q, const Tensor& k) const {  // (B, H, Lq, D), (B, H, Lk, D) -> (B, H, Lq, Lk)
    return -rate * sum(abs(unsqueeze(q, 3) - unsqueeze(k, 2)), -1);
  }
};

int main() {
  const Tensor waist({5, 1}, {51, 56, 57, 58, 63}), weight({5, 1}, {40, 43, 46, 48, 55});
  Manhattan scorer{qkv::parameter(Tensor({1}, {0.1f}))};
  for (int step = 0; step < 4; ++step) {  // learn the rate: every point from the other four
    qkv::Tape tape;
    const auto [predicted, weights] = qkv::attend(scorer, waist, waist, weight, qkv::Mask::drop(qkv::eye(5)));
    const Tensor error = predicted - weight, loss = sum(error * error);
    tape.backward(loss);
    std::printf("rate %.4f  squared error %7.3f  weights for 57:", scorer.rate.item(), loss.item());
    for (float w : weights.row(0, 0, 2).data()) std::printf(" %.3f", w);
    std::printf("  %s\n", weights.path() == qkv::AttendPath::composed ? "composed" : "fused");
    scorer.rate.mutable_ptr()[0] -= 0.002f * tape.grad(scorer.rate).item();
  }
}
