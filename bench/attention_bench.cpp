// Attention compared with the sgemm rate of the same minute: GFLOP/s forward (4 d per visible pair) and forward +
// backward (14 d), as a share of oneDNN's rate on the same number of threads. Usage: attention_bench [threads [n heads
// causal dropout]]
#include <fmt/format.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "qkv/core/parallel.h"
#include "qkv/core/rng.h"
#include "qkv/kernels/attention.h"

namespace {

using namespace qkv;
using namespace qkv::kernels;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::vector<float> normals(int64_t n, uint64_t seed) {
  std::vector<float> x(static_cast<size_t>(n));
  const Rng rng(seed);
  for (size_t i = 0; i < x.size(); ++i) x[i] = rng.normal(i);
  return x;
}

struct Shape {
  int64_t n, heads;
  bool causal;
  float dropout;
};

constexpr int64_t kWidth = 64;

// One problem and its best times so far.
class Case {
 public:
  explicit Case(Shape shape)
      : shape_(shape),
        q_(normals(size(), 1)),
        k_(normals(size(), 2)),
        v_(normals(size(), 3)),
        dout_(normals(size(), 4)) {
    call_.sizes = {1, shape.heads, shape.heads, shape.n, shape.n, kWidth, kWidth};
    call_.scale = 1 / std::sqrt(static_cast<float>(kWidth));
    call_.dropout.rate = shape.dropout;
    for (int64_t i = 0; i < shape.n; ++i) end_.push_back(static_cast<int32_t>(i + 1));
    if (shape.causal) call_.mask.end = end_.data();
  }
  void run() {
    const HeadStrides s{size(), shape_.n * kWidth, kWidth};
    const double start = seconds();
    attention_forward(call_, {q_.data(), s}, {k_.data(), s}, {v_.data(), s}, {out_.data(), s}, lse_.data());
    const double middle = seconds();
    AttentionGradients to;
    to.dq = {dq_.data(), s}, to.dk = {dk_.data(), s}, to.dv = {dv_.data(), s};
    attention_backward(call_, {q_.data(), s}, {k_.data(), s}, {v_.data(), s}, {out_.data(), s}, lse_.data(),
                       {dout_.data(), s}, to);
    forward = std::min(forward, middle - start);
    both = std::min(both, seconds() - start);
  }
  double pairs() const {
    const double n = static_cast<double>(shape_.n);
    return static_cast<double>(shape_.heads) * (shape_.causal ? n * (n + 1) / 2 : n * n);
  }
  double forward = 1e9, both = 1e9;

 private:
  int64_t size() const { return shape_.heads * shape_.n * kWidth; }
  Shape shape_;
  AttentionCall call_;
  std::vector<int32_t> end_;
  std::vector<float> q_, k_, v_, dout_;
  std::vector<float> out_ = std::vector<float>(q_.size()), dq_ = out_, dk_ = out_, dv_ = out_;
  std::vector<float> lse_ = std::vector<float>(static_cast<size_t>(shape_.heads * shape_.n));
};

// GFLOP/s of one product per thread, all at the same time.
double sgemm_rate() {
  constexpr int64_t M = 768;
  static const std::vector<float> a = normals(M * M, 5);
  static std::vector<std::vector<float>> c(64, std::vector<float>(M * M));
  const int64_t blocks = std::min(threads(), 64);
  const double start = seconds();
  parallel_for(blocks, 1e9, [&](int64_t b) {
    omp_set_num_threads(1);
    dnnl_sgemm('N', 'N', M, M, M, 1.f, a.data(), M, a.data(), M, 0.f, c[static_cast<size_t>(b)].data(), M);
  });
  return 2.0 * M * M * M * static_cast<double>(blocks) / (seconds() - start) / 1e9;
}

void measure(Shape shape) {
  Case c(shape);
  double rate = 0;
  const double start = seconds();
  for (int round = 0; round < 3 || (seconds() - start < 2 && round < 200); ++round) {
    c.run();
    for (int i = 0; i < 3; ++i) rate = std::max(rate, sgemm_rate());
  }
  const double flop = kWidth * c.pairs() / 1e9, forward = 4 * flop / c.forward, both = 14 * flop / c.both;
  const char* mask = shape.causal ? "causal" : "plain";
  fmt::print("n {:5} heads {} {:6} dropout {:.1f}  sgemm {:5.1f}", shape.n, shape.heads, mask, shape.dropout, rate);
  fmt::print("  forward {:8.3f} ms {:5.1f} = {:3.0f} %", c.forward * 1e3, forward, 100 * forward / rate);
  fmt::print("  forward+backward {:8.3f} ms {:5.1f} = {:3.0f} %\n", c.both * 1e3, both, 100 * both / rate);
}

}  // namespace

int main(int argc, char** argv) {
  set_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  if (argc == 6) {
    measure(
        {std::atoll(argv[2]), std::atoll(argv[3]), std::atoi(argv[4]) != 0, static_cast<float>(std::atof(argv[5]))});
    return 0;
  }
  for (const int64_t n : {512, 1024, 4096, 16384}) {
    for (const bool causal : {false, true}) measure({n, n < 16384 ? 8 : 1, causal, 0.f});
    measure({n, n < 16384 ? 8 : 1, false, 0.1f});
  }
}
