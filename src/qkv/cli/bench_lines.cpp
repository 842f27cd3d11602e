// Lines of the speed table: single ops, attention, small steps. The engine of the page is measured with them too.
#include <algorithm>
#include <chrono>
#include <iterator>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/cli/bench.h"
#include "qkv/kernels/gemm.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/norm.h"
#include "qkv/ops/softmax.h"

namespace qkv::cli {

double best_seconds(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  const auto timed = [&](int64_t repeats) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < repeats; ++i) work();
    return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(repeats);
  };
  work();
  const int64_t repeats = std::clamp<int64_t>(static_cast<int64_t>(0.02 / std::max(timed(1), 1e-9)), 1, 1'000'000);
  double best = timed(repeats);
  for (int round = 0; round < 6; ++round) best = std::min(best, timed(repeats));
  return best;
}

namespace {

Speed recorded_op() {
  const Tensor w = parameter(ones({8})), c = ones({8});
  const double seconds = best_seconds([&] {
    Tape tape;
    Tensor y = w;
    for (int i = 0; i < 100; ++i) y = mul(y, c);
    tape.backward(y, c);
  });
  return {seconds / 100};
}

BenchLine product(int64_t m, int64_t n, int64_t k) {
  return {
      tr("matrix product {m} x {n} x {k}, one thread", "m"_a = m, "n"_a = n, "k"_a = k), [=]() -> Speed {
        Tensor a = normal({m, k}, Rng(1)), b = normal({k, n}, Rng(2)), c = Tensor::empty({m, n});
        const double seconds = best_seconds([&] {
          kernels::gemm(
              {.M = m, .N = n, .K = k, .A = a.ptr(), .lda = k, .B = b.ptr(), .ldb = n, .C = c.mutable_ptr(), .ldc = n});
        });
        return {seconds, 2e-9 * static_cast<double>(m * n * k), "GFLOP/s"};
      }};
}

BenchLine memory_line(const Text& op_name, double bytes_per_element, const std::function<Tensor(const Tensor&)>& op) {
  return {tr("{op}, 2048 x 512", "op"_a = op_name), [=]() -> Speed {
            const Tensor x = normal({2048, 512}, Rng(3));
            return {best_seconds([&] { op(x); }), bytes_per_element * 1e-9 * static_cast<double>(x.numel()), "GB/s"};
          }};
}

enum class Direction { forward, both };

// A visible pair costs two products forward, and five more backward.
Speed attention(int64_t n, bool causal, Direction direction) {
  constexpr int64_t kHeads = 8, kWidth = 64;
  const Shape shape{1, kHeads, n, kWidth};
  const Tensor q = parameter(normal(shape, Rng(6))), k = parameter(normal(shape, Rng(7))),
               v = parameter(normal(shape, Rng(8)));
  const Tensor gradient = normal(shape, Rng(9));
  const Mask mask = causal ? Mask::causal() : Mask::none();
  const double pairs = kHeads * static_cast<double>(n) * static_cast<double>(causal ? n + 1 : 2 * n) / 2;
  const bool both = direction == Direction::both;
  const double seconds = best_seconds([&] {
    if (!both) return void(attend(ScaledDot(), q, k, v, mask));
    Tape tape;
    tape.backward(attend(ScaledDot(), q, k, v, mask).output, gradient);
  });
  return {seconds, (both ? 14e-9 : 4e-9) * kWidth * pairs, "GFLOP/s"};
}

BenchLine attention_line(int64_t n, bool causal, Direction direction) {
  const Text mask = causal ? tr("causal") : tr("plain");
  const Text name = direction == Direction::both
                        ? tr("attention forward + backward, n {n}, 8 heads of 64, {mask}", "n"_a = n, "mask"_a = mask)
                        : tr("attention forward, n {n}, 8 heads of 64, {mask}", "n"_a = n, "mask"_a = mask);
  return {name, [=] { return attention(n, causal, direction); }};
}

struct Perceptron {
  Linear first{32, 64, Rng(1)}, second{64, 32, Rng(2)}, third{32, 201, Rng(3)};
  Tensor operator()(const Tensor& x) const { return third(second(first(x, Activation::relu), Activation::relu)); }
  void visit(auto&& f) {
    f("first", first);
    f("second", second);
    f("third", third);
  }
};

Speed perceptron_step() {
  Perceptron model;
  const Tensor x = normal({640, 32}, Rng(4));
  Ids targets = Ids::empty({640});
  for (int64_t i = 0; i < 640; ++i) targets.mutable_ptr()[i] = static_cast<int32_t>(i % 201);
  const double seconds = step_seconds(model, 640, 640, [&](int64_t begin, int64_t end, const Run&) -> Loss {
    const Tensor sum = cross_entropy(model(x.part(begin * 32, {end - begin, 32})), targets.part(begin, {end - begin}),
                                     {.reduction = Reduction::sum});
    return {sum, static_cast<double>(end - begin)};
  });
  return {seconds, 640, "rows/s"};
}

struct OneTensor {
  Tensor w = parameter(zeros({1 << 22}));
  void visit(auto&& f) { f("w", w); }
};

Speed adam_step() {
  OneTensor model;
  Parameters all = flatten(model);
  Adam adam;
  const Tensor gradient = normal(all.flat().shape(), Rng(5));
  return {best_seconds([&] { adam.step(all, gradient, 1e-3f); }), 28e-9 * static_cast<double>(gradient.numel()),
          "GB/s"};
}

}  // namespace

std::vector<BenchLine> engine_lines() {
  std::vector<BenchLine> lines = {
      {tr("recorded op, 8 elements, forward + backward"), recorded_op},
      product(640, 32, 32),
      product(640, 200, 32),
      product(64, 64, 64),
      product(10, 10, 8),
      product(32, 32, 640),
      product(2048, 512, 512),
      product(1, 512, 512),
      attention_line(512, false, Direction::forward),
      attention_line(512, true, Direction::forward),
      attention_line(4096, false, Direction::forward),
      attention_line(4096, true, Direction::forward),
      attention_line(1024, false, Direction::both),
      attention_line(1024, true, Direction::both),
      memory_line(verbatim("softmax"), 8, softmax),
      memory_line(tr("layer norm"), 8,
                  [g = ones({512}), b = zeros({512})](const Tensor& x) { return layer_norm(x, g, b); }),
      memory_line(verbatim("gelu"), 8, gelu),
      {tr("Adam, 4 M parameters"), adam_step},
      {tr("perceptron 640 x 32 -> 64 -> 32 -> 201, training step"), perceptron_step}};
  std::ranges::move(model_lines(), std::back_inserter(lines));
  return lines;
}

}  // namespace qkv::cli
