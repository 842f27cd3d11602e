// A scorer with learned parameters, a Student-t kernel: every point is predicted from the others, and the second
// coordinate, which is noise, is learned away.
#include <cstdio>

#include "qkv/qkv.h"

using namespace qkv;

// a(q, k) = -(nu + 1) / 2 log(1 + |W q - W k|^2 / nu)
struct StudentT {
  Tensor log_nu = parameter(zeros({1}));
  Linear w{2, 2, Rng(7), Linear::Bias::no};

  Tensor scores(const Tensor& q, const Tensor& k) const {
    const Tensor nu = exp(log_nu), d = unsqueeze(w(q), -2) - unsqueeze(w(k), -3);
    return log(1 + sum(d * d, -1) / nu) * (nu + 1) / -2;
  }
  void visit(auto&& f) {
    f("log_nu", log_nu);
    f("w", w);
  }
};

int main() {
  const Tensor x = uniform({200, 2}, Rng(1), -2, 2), y = sin(3 * slice(x, 1, 0, 1)) + normal({200, 1}, Rng(2), 0, 0.1f);
  StudentT scorer;
  Adam adam;
  const auto loss = [&](int64_t, const Run& run) {
    return squared_error(attend(scorer, x, x, y, Mask::drop(eye(200)), run).output, y);
  };
  const double before = loss(0, {}).item();
  fit(scorer, adam, {.steps = 300, .rate = constant_rate(0.03f)}, loss);
  const Tensor g = sum(scorer.w.weight * scorer.w.weight, 0);  // how much either coordinate counts
  std::printf("error %.2f, then below 0.1: %s; the noise counts less than a tenth: %s\n", before,
              loss(0, {}).item() < 0.1 ? "yes" : "no", g.at({1}) < 0.1f * g.at({0}) ? "yes" : "no");
}
