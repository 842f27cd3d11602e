// qkv bench: the speed table of this machine. bench/peers compares with other libraries.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <nlohmann/json.hpp>

#include "qkv/attention/attend.h"
#include "qkv/attention/scorers.h"
#include "qkv/cli/bench.h"
#include "qkv/cli/command.h"
#include "qkv/cli/rank_job.h"
#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/kernels/gemm.h"
#include "qkv/kernels/target.h"
#include "qkv/labs/wrap.h"
#include "qkv/nn/layers.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/norm.h"
#include "qkv/ops/softmax.h"
#include "qkv/plot/save.h"

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

// Filters know the English name too, in any language.
bool contains(const Text& name, const std::string& filter, Language language) {
  const auto found = [&](Language spoken) {
    return lowercase(name.in(spoken)).find(lowercase(filter)) != std::string::npos;
  };
  return found(Language::en) || found(language);
}

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

std::string time_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.1f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return fmt::format("{:.3f} ms", seconds * 1e3);
}

// In columns: a Chinese character takes two.
std::string row(const std::string& name, const Speed& speed) {
  const auto blanks = static_cast<size_t>(std::max(0, 60 - labs::columns_of(name)));
  std::string out = fmt::format("{}{} {:>11}", name, std::string(blanks, ' '), time_text(speed.seconds));
  if (!speed.unit.empty()) out += fmt::format(" {:>12.1f} {}", speed.work / speed.seconds, speed.unit);
  return out;
}

// The table of the engine, from single ops to whole models.
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

class BenchCommand : public Command {
 public:
  std::string name() const override { return "bench"; }
  Text summary() const override { return tr("how fast the engine is on this machine"); }
  std::string example() const override { return "qkv bench --filter product"; }
  void bind(Options& options) override {
    options.option("--filter TEXT", tr("only lines whose name contains this text (case is ignored)"), filter_);
    options.option("--model DIR", tr("the speed of this model instead: a run or a pretrained folder"), model_);
    options.flag("--json", tr("print one JSON object"), json_);
    options.flag("--distributed", tr("measure messages and training steps of the MPI job that this process belongs to"),
                 distributed_);
    options.flag("--large", tr("with --distributed: also a model of 60 million parameters"), large_);
    options.option("--plot FILE",
                   tr("with --distributed: draw what more machines and other networks would cost; .svg, .png or .txt"),
                   plot_);
  }

  int run(const Global& global) override {
    if (distributed_) return run_distributed(global);
    if (large_ || plot_) throw UsageError(tr("--large and --plot need --distributed"));
    std::vector<BenchLine> lines = model_.empty() ? engine_lines() : model_lines(model_);
    nlohmann::ordered_json all = {
        {"threads", threads()}, {"target", kernels::running_target()}, {"lines", nlohmann::ordered_json::array()}};
    int shown = 0;
    for (const BenchLine& line : lines) {
      if (!contains(line.name, filter_, global.language)) continue;
      const Speed speed = line.measure();
      ++shown;
      if (json_)
        all["lines"].push_back({{"name", line.name.in(Language::en)},
                                {"seconds", speed.seconds},
                                {"rate", speed.work / speed.seconds},
                                {"unit", speed.unit}});
      else
        fmt::print("{}\n", row(line.name.in(global.language), speed));
      std::fflush(stdout);
    }
    if (shown == 0)
      throw UsageError(tr("--filter: no line of the table contains \"{filter}\"", "filter"_a = filter_),
                       tr("qkv bench without --filter shows all lines"));
    if (json_) fmt::print("{}\n", all.dump(2));
    return 0;
  }

 private:
  int run_distributed(const Global& global) const {
    if (plot_) check_figure_path(*plot_);
    return on_ranks({.distributed = Distributed::mpi}, global, [&](Ranks* ranks, const Global& own) {
      const report::RankMeasurements measured = measure_ranks(*ranks, large_);
      if (ranks->rank() > 0) return 0;
      if (plot_ && ranks->size() == 1) throw UsageError(tr("--plot needs at least two ranks: mpirun -n 2"));
      if (plot_) save(report::scaling_figure(measured), *plot_, own.language);
      fmt::print("{}", json_ ? report::to_json(measured) + "\n" : report::to_text(measured, own.language));
      return 0;
    });
  }

  std::string filter_, model_;
  bool json_ = false, distributed_ = false, large_ = false;
  std::optional<std::string> plot_;
};

}  // namespace

std::unique_ptr<Command> bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace qkv::cli
