// A training step of the Bahdanau model: milliseconds, target tokens per second, and GFLOP/s next to the rate of matrix
// products in the same minute. Usage: seq2seq_bench [threads [batch embed hidden vocabulary source target lstm]];
// without sizes: the book's, then larger ones.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "qkv/core/parallel.h"
#include "qkv/kernels/gemm.h"
#include "qkv/models/seq2seq.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/shards.h"

namespace {

using namespace qkv;

// On one thread, processor time is measured: a busy machine disturbs it less.
double seconds() {
  if (threads() == 1) return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Sizes {
  int64_t batch, embed, hidden, vocabulary, source, target;
  bool lstm = false;
};

// Sentences of about 0.6 of the longest, as in length-bucketed or trimmed batches.
Ids lengths(int64_t rows, int64_t longest, uint64_t seed) {
  Ids lens = Ids::empty({rows});
  const int64_t least = std::max<int64_t>(1, longest * 3 / 10);
  for (int64_t b = 0; b < rows; ++b)
    lens.mutable_ptr()[b] =
        static_cast<int32_t>(least + static_cast<int64_t>(Rng(seed).below(static_cast<uint64_t>(longest - least + 1),
                                                                          static_cast<uint64_t>(b))));
  lens.mutable_ptr()[0] = static_cast<int32_t>(longest);
  return lens;
}

Ids ids(int64_t rows, int64_t columns, int64_t below, uint64_t seed) {
  Ids out = Ids::empty({rows, columns});
  for (int64_t i = 0; i < out.numel(); ++i)
    out.mutable_ptr()[i] =
        static_cast<int32_t>(Rng(seed).below(static_cast<uint64_t>(below), static_cast<uint64_t>(i)));
  return out;
}

class Step {
 public:
  explicit Step(const Sizes& z)
      : z_(z),
        source_(ids(z.batch, z.source, z.vocabulary, 1)),
        target_(ids(z.batch, z.target, z.vocabulary, 2)),
        source_lens_(lengths(z.batch, z.source, 3)),
        target_lens_(lengths(z.batch, z.target, 4)),
        wanted_(ids(z.batch, z.target, z.vocabulary, 5)),
        model_({.embed = z.embed, .hidden = z.hidden, .layers = 2, .cell = z.lstm ? CellKind::lstm : CellKind::gru},
               {z.vocabulary, z.vocabulary}, Rng(6)),
        all_(flatten(model_)),
        shards_(all_) {
    for (int64_t i = 0; i < wanted_.numel(); ++i)
      if (i % z.target >= target_lens_.ptr()[i / z.target]) wanted_.mutable_ptr()[i] = -1;
  }
  void run() {
    shards_.gradients(
        z_.batch, static_cast<double>(z_.target), {.training = true, .rng = Rng(7)},
        [&](int64_t begin, int64_t end, const Run& run) -> Loss {
          const int64_t n = end - begin;
          const auto rows = [&](const Ids& x) { return x.part(begin * x.size(1), {n, x.size(1)}); };
          const auto lens = [&](const Ids& x) { return x.part(begin, {n}); };
          const Tensor y = model_.features(rows(source_), lens(source_lens_), rows(target_), run, lens(target_lens_));
          const Tensor sum = linear_cross_entropy(y, model_.output.weight, model_.output.bias, rows(wanted_),
                                                  {.ignore_id = -1, .reduction = Reduction::sum});
          return {sum, static_cast<double>(n)};
        });
    adam_.step(all_, shards_.gradient(), 5e-3f, clip_factor(norm(shards_.gradient()), 1));
  }
  int64_t tokens() const { return total(target_lens_); }
  int64_t parameters() const { return all_.count(); }
  // Multiplications and additions of the products of steps that exist, forward and backward; the output layer
  // recomputes its logits.
  double flop() const {
    const double s = static_cast<double>(total(source_lens_)), t = static_cast<double>(tokens()),
                 h = static_cast<double>(z_.hidden);
    const double e = static_cast<double>(z_.embed), v = static_cast<double>(z_.vocabulary), g = z_.lstm ? 4 : 3;
    return 6 * (s * g * h * (e + h + 2 * h) + s * h * h + t * (h * h + g * h * (e + h + h + 2 * h))) + 8 * t * h * v;
  }

 private:
  static int64_t total(const Ids& lens) {
    int64_t sum = 0;
    for (const int32_t n : lens.data()) sum += n;
    return sum;
  }
  Sizes z_;
  Ids source_, target_, source_lens_, target_lens_, wanted_;
  Seq2Seq model_;
  Parameters all_;
  Adam adam_;
  Shards shards_;
};

// GFLOP/s of our own products, one per thread.
double product_rate() {
  constexpr int64_t M = 512;
  static std::vector<float> a(M * M, 1.f), c(static_cast<size_t>(threads()) * M * M);
  const double start = seconds();
  parallel_for(threads(), 1e9, [&](int64_t b) {
    kernels::gemm({.M = M,
                   .N = M,
                   .K = M,
                   .A = a.data(),
                   .lda = M,
                   .B = a.data(),
                   .ldb = M,
                   .C = c.data() + b * M * M,
                   .ldc = M});
  });
  return 2.0 * M * M * M * threads() / (seconds() - start) / 1e9;
}

void measure(const Sizes& z) {
  Step step(z);
  step.run();
  double best = 1e9, rate = 0;
  std::vector<double> times;
  const double start = seconds();
  while (times.size() < 5 || (seconds() - start < 2 && times.size() < 500)) {
    const double before = seconds();
    step.run();
    times.push_back(seconds() - before);
    best = std::min(best, times.back());
    if (times.size() % 8 == 0 || best > 0.05) rate = std::max(rate, product_rate());
  }
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(times.size() / 2), times.end());
  const double gflops = step.flop() / best / 1e9;
  fmt::print(
      "B {:3} embed {:3} hidden {:3} V {:4} S {:2} T {:2} {:4} {:9} parameters: best {:8.3f} ms, median {:8.3f}, "
      "{:7.0f} tokens/s, {:5.1f} GFLOP/s of {:5.1f}\n",
      z.batch, z.embed, z.hidden, z.vocabulary, z.source, z.target, z.lstm ? "lstm" : "gru", step.parameters(),
      best * 1e3, times[times.size() / 2] * 1e3, static_cast<double>(step.tokens()) / best, gflops, rate);
}

}  // namespace

int main(int argc, char** argv) {
  set_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  const auto number = [&](int i) { return static_cast<int64_t>(std::atoll(argv[i])); };
  if (argc == 9) {
    measure({number(2), number(3), number(4), number(5), number(6), number(7), number(8) != 0});
    return 0;
  }
  measure({64, 32, 32, 201, 6, 7});
  measure({64, 32, 32, 201, 6, 7, true});
  measure({64, 256, 256, 8000, 20, 20});
  measure({128, 256, 512, 8000, 25, 25});
}
