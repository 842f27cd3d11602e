// qkv bench --distributed: how fast the ranks of a job exchange messages, and where the time of a step goes.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "qkv/cli/bench.h"
#include "qkv/core/parallel.h"
#include "qkv/models/transformer.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/plot/save.h"
#include "qkv/report/scaling.h"
#include "qkv/train/rank_steps.h"

namespace qkv::cli {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

constexpr int kTag = Ranks::kFirstTag;

// Bytes from rank 0 to another and, with `answer`, back: seconds per round.
double exchanged(Ranks& ranks, int other, size_t bytes, int rounds, int at_once, bool answer) {
  std::vector<char> out(bytes, 'x'), in(bytes * static_cast<size_t>(at_once));
  const bool first = ranks.rank() == 0;
  if (!first && ranks.rank() != other) return 0;
  const int peer = first ? other : 0;
  const auto start = Clock::now();
  for (int round = 0; round < rounds; ++round) {
    int left = 0;
    const auto done = [&] { --left; };
    const auto send = [&](int count) {
      for (int i = 0; i < count; ++i, ++left) ranks.send(out.data(), bytes, peer, kTag, done);
    };
    const auto receive = [&](int count) {
      for (int i = 0; i < count; ++i, ++left)
        ranks.receive(in.data() + static_cast<size_t>(i) * bytes, bytes, peer, kTag, done);
    };
    const auto finish = [&] { ranks.wait([&] { return left == 0; }); };
    char word = 0;
    if (first) {
      ranks.locked([&] { send(at_once); });
      finish();
      ranks.locked([&] {
        if (answer) return receive(at_once);
        ++left;
        ranks.receive(&word, 1, peer, kTag + 1, done);
      });
      finish();
    } else {
      ranks.locked([&] { receive(at_once); });
      finish();
      ranks.locked([&] {
        if (answer) return send(at_once);
        ++left;
        ranks.send(&word, 1, peer, kTag + 1, done);
      });
      finish();
    }
  }
  return seconds_since(start) / rounds;
}

double summed(Ranks& ranks, int64_t floats) {
  const UpdatePlan plan({ranks.size()}, ranks.size());
  GradientExchange exchange(ranks, floats);
  std::vector<float> gradient(static_cast<size_t>(floats), 1e-30f);
  const auto once = [&] {
    exchange.begin(plan, {gradient.data()}, gradient.data());
    exchange.all_ready();
    exchange.wait();
  };
  once();
  const int rounds = static_cast<int>(std::clamp<int64_t>(20'000'000 / floats, 2, 50));
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    ranks.gather("");
    const auto start = Clock::now();
    once();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

Ids repeating_ids(const Shape& shape, int32_t count) {
  Ids out = Ids::empty(shape);
  for (int64_t i = 0; i < out.numel(); ++i) out.mutable_ptr()[i] = static_cast<int32_t>(7 * i % count);
  return out;
}

struct BenchModel {
  std::string name;
  TransformerConfig config;
  int32_t words;
  int64_t rows, tokens;
  int steps;
};

// Steps of a Transformer whose batch is cut into one shard per rank.
report::StepTime step_of(Ranks& ranks, const BenchModel& bench) {
  Transformer model(bench.config, {bench.words, bench.words}, Rng(1));
  const Parameters all = flatten(model);
  Adam adam;
  adam.begin(all);
  Shards shards(all, ShardPolicy::number(ranks.size()));
  RankSteps steps(ranks, all);
  const Shape shape{bench.rows, bench.tokens};
  const Ids source = repeating_ids(shape, bench.words), target = repeating_ids(shape, bench.words);
  const auto loss = [&](int64_t begin, int64_t end, const Run& run) -> Loss {
    const Shape part{end - begin, bench.tokens};
    const Ids wanted = target.part(begin * bench.tokens, part);
    const Tensor x = model.features(source.part(begin * bench.tokens, part), {}, wanted, run);
    const Linear& output = model.decoder.output;
    return {linear_cross_entropy(x, output.weight, output.bias, wanted, {.reduction = Reduction::sum}),
            static_cast<double>(wanted.numel())};
  };
  report::StepTime out{.model = bench.name, .parameters = all.count()};
  const auto divisor = static_cast<double>(bench.rows * bench.tokens);
  const int64_t rows[] = {bench.rows};
  RankTimes before;
  uint64_t bytes = 0;
  double update = 0;
  for (int s = -2; s < bench.steps; ++s) {  // the first two warm up
    if (s == 0) {
      before = steps.times();
      update = 0;
    }
    bytes = ranks.bytes_sent();
    steps.begin(shards, rows, s + 2);
    shards.add(bench.rows, divisor, {.training = true, .rng = Rng(2)}, loss);
    steps.finish(shards, false);
    bytes = ranks.bytes_sent() - bytes;
    const auto start = Clock::now();
    adam.step(all, shards.gradient(), 1e-4f, clip_factor(norm(shards.gradient()), 1));
    steps.updated(norm(all.flat()), 0);
    update += seconds_since(start);
  }
  const GradientExchange theory(ranks, all.flat().numel());
  const double count = bench.steps;
  out.update = update / count;
  out.compute = std::max(0.0, (steps.times().compute - before.compute) / count - out.update);
  out.wait = (steps.times().wait - before.wait) / count;
  out.communicate = (steps.times().communicate - before.communicate) / count;
  out.bytes = static_cast<int64_t>(bytes);
  out.theory = 4 * theory.floats_sent(steps.plan()) + 512 * (ranks.size() - 1);
  return out;
}

// Times are those of the slowest rank.
void take_slowest(Ranks& ranks, double& seconds) {
  const std::vector<double> all = shared_rows(&ranks, ranks.size(), 1, [&](int64_t, double* row) { *row = seconds; });
  seconds = *std::ranges::max_element(all);
}

}  // namespace

report::RankMeasurements measure_ranks(Ranks& ranks, bool large) {
  report::RankMeasurements out{.ranks = ranks.size(), .threads = threads()};
  for (int r = 0; r < ranks.size(); ++r) out.hosts.push_back(ranks.host(r));
  out.bandwidth = 1e12;
  for (int r = 1; r < ranks.size(); ++r) {
    exchanged(ranks, r, 8, 20, 1, true);
    double ping = 1e9;
    for (int i = 0; i < 5; ++i) ping = std::min(ping, exchanged(ranks, r, 8, 100, 1, true));
    exchanged(ranks, r, 1 << 20, 2, 16, false);
    const double seconds = exchanged(ranks, r, 1 << 20, 4, 16, false);
    if (ranks.rank() == 0) {
      out.ping = std::max(out.ping, ping);
      out.bandwidth = std::min(out.bandwidth, 16.0 * (1 << 20) / seconds);
    }
    ranks.gather("");
  }
  if (ranks.size() > 1)
    for (const int64_t floats : {1'000, 10'000, 100'000, 1'000'000, 10'000'000}) {
      double seconds = summed(ranks, floats);
      take_slowest(ranks, seconds);
      out.exchanges.push_back({floats, seconds});
    }
  std::vector<BenchModel> models = {
      {"book, width 32", {.hidden = 32, .ffn = 64, .heads = 4, .layers = 2}, 200, 64, 10, 50},
      {"width 64", {.hidden = 64, .ffn = 256, .heads = 4, .layers = 2}, 1000, 64, 16, 20}};
  models.push_back({"width 512, 6 + 6", {.hidden = 512, .ffn = 2048, .heads = 8, .layers = 6}, 16000, 64, 32, 3});
  if (!large) models.pop_back();
  for (const BenchModel& model : models) {
    report::StepTime step = step_of(ranks, model);
    for (double* seconds : {&step.compute, &step.update, &step.communicate}) take_slowest(ranks, *seconds);
    out.steps.push_back(step);
  }
  return out;
}

}  // namespace qkv::cli
