// Lab of long inputs: time, memory and error at 8,192 tokens, and how far the exact kernel goes.
#include <algorithm>
#include <cmath>

#include "qkv/attention/attend.h"
#include "qkv/attention/long_attention.h"
#include "qkv/attention/positions.h"
#include "qkv/attention/scorers.h"
#include "qkv/core/parallel.h"
#include "qkv/labs/long_inputs.h"
#include "qkv/labs/show.h"
#include "qkv/labs/stopwatch.h"
#include "qkv/labs/work.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/pool.h"

namespace qkv::labs::long_inputs {
namespace {

constexpr int64_t kLong = 8192, kHeadWidth = 64;
constexpr double kMega = 1 << 20;

struct Inputs {
  Tensor x, v;  // (1, n, 1, 64): queries and keys, and values
};

// Tokens of a vocabulary with few frequent words and many rare ones; near tokens attract each other.
Inputs inputs(int64_t n, const Rng& rng) {
  constexpr int64_t kWords = 512;
  const Tensor words = normal({kWords, kHeadWidth / 2}, rng.at("words"));
  Ids ids = Ids::empty({n});
  for (int64_t i = 0; i < n; ++i) {
    const double u = static_cast<double>(rng.at("text").below(1'000'000, static_cast<uint64_t>(i))) / 1e6;
    ids.mutable_ptr()[i] = static_cast<int32_t>(std::min<double>(kWords - 1, std::pow(kWords, u) - 1));
  }
  const Tensor places = sinusoidal_positions(n, kHeadWidth / 2);
  const Tensor said = gather_rows(normal({kWords, kHeadWidth}, rng.at("said")), ids);  // the value of a word
  return {reshape(concat({scale(gather_rows(words, ids), 1.1f), scale(places, 1.2f)}, 1), {1, n, 1, kHeadWidth}),
          reshape(said, {1, n, 1, kHeadWidth})};
}

struct Cost {
  double milliseconds = 1e9, megabytes = 0;
  Tensor output;
};

// The processor time of one thread, the better of two runs, and the memory that the first run asked for.
template <class F>
Cost measured(const F& f) {
  const SerialScope serial;
  Cost out;
  for (int run = 0; run < 2; ++run) {
    Pool pool;
    {
      const PoolScope scope(pool);
      out.milliseconds = std::min(out.milliseconds, 1e3 * thread_seconds([&] { out.output = f(); }));
      out.output = out.output.copied();
    }
    out.megabytes = static_cast<double>(pool.bytes()) / kMega;
  }
  return out;
}

Tensor exact(const Tensor& x, const Tensor& v) {
  return attend(ScaledDot{}, x, x, v, Mask::none(), {}, {.axis = HeadAxis::inner}).output;
}

}  // namespace

void cost(Page& page) {
  page.heading(tr("8,192 tokens: time, memory, error"));
  page.say(tr(
      "One head of width {width}, forward, one thread. The text has frequent words and rare ones, and near tokens "
      "attract each other. Memory is everything that the computation asked for, its output included; all weights "
      "together would take {weights:.0f} MB. The error is that of the output, relative to the length of the exact one; "
      "low rank would have to be trained first.",
      "width"_a = kHeadWidth, "weights"_a = static_cast<double>(kLong * kLong * 4) / kMega));
  const Inputs in = inputs(kLong, Rng(page.seed()).at("cost"));
  Measured& all = page.shared<Measured>();
  std::vector<std::pair<Text, std::vector<std::string>>> rows;
  std::vector<Label> names;
  const std::vector<Kind> list = kinds(kLong);
  Tensor reference;
  Work work(page, tr("attention over 8,192 tokens, one kind after the other"), list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const AttentionKindOptions& options = list[i].options;
    const LongAttention kind(options, kHeadWidth, Rng(page.seed()).at("kind"));
    const Cost c = measured([&] {
      return options.kind == AttentionKind::exact ? exact(in.x, in.v) : kind(in.x, in.x, in.v, Mask::none(), {});
    });
    if (i == 0) reference = c.output;
    const double error = length_of(sub(c.output, reference)) / length_of(reference);
    all.milliseconds.push_back(c.milliseconds);
    all.megabytes.push_back(c.megabytes);
    all.error.push_back(error);
    names.emplace_back(list[i].name);
    const bool learned = options.kind == AttentionKind::linformer;
    rows.push_back(
        {list[i].name, {rounded(c.milliseconds, 1), rounded(c.megabytes, 1), learned ? "–" : rounded(error, 3)}});
    work.at(i, 1);
  }
  named_table(page, {tr("kind"), tr("ms"), tr("MB"), tr("output error")}, rows);
  page.draw("times", bars(names, {{tr("milliseconds"), all.milliseconds}}, {}, {.label = tr("milliseconds"), .low = 0}),
            tr("Processor time at 8,192 tokens, one head, forward."));
  const double slowest = *std::max_element(all.milliseconds.begin() + 1, all.milliseconds.end());
  page.claim(slowest < 0.7 * all.milliseconds[0],
             tr("At 8,192 tokens every one of them takes less time than exact attention."),
             tr("exact {exact:.0f} ms, the slowest of the others {slowest:.0f} ms", "exact"_a = all.milliseconds[0],
                "slowest"_a = slowest));
  const double least = *std::min_element(all.error.begin() + 1, all.error.end());
  page.claim(least > 1e-3, tr("None of them is free: on this text each changes the output."),
             tr("the smallest error is {least:.3f}", "least"_a = least));
}

void exact_reach(Page& page) {
  page.heading(tr("How far exact attention goes"));
  page.say(tr(
      "The exact kernel works in tiles and keeps one number per row besides its output. So length is a matter of time, "
      "not of memory. (131,072 tokens are in `bench/RESULTS.md`.)"));
  std::vector<double> lengths, memory;
  std::vector<std::vector<std::string>> rows;
  Work work(page, tr("exact attention over up to 32,768 tokens"), 3);
  size_t part = 0;
  for (const int64_t n : {int64_t{8192}, int64_t{16384}, int64_t{32768}}) {
    const Inputs in = inputs(n, Rng(page.seed()).at("reach"));
    Pool pool;
    double took = 0;
    {
      const PoolScope scope(pool);
      took = seconds([&] { exact(in.x, in.v); });
    }
    const double megabytes = static_cast<double>(pool.bytes()) / kMega;
    lengths.push_back(static_cast<double>(n));
    memory.push_back(megabytes);
    rows.push_back({grouped(n), rounded(took, 2), rounded(megabytes, 1),
                    rounded(static_cast<double>(n) * static_cast<double>(n) * 4 / kMega, 0)});
    work.at(part++, 1);
  }
  page.table({tr("tokens"), tr("seconds, all threads"), tr("MB"), tr("MB that the weights would take")}, rows);
  page.claim(
      memory[2] < 4.5 * memory[0] && memory[2] < 64,
      tr("The memory of exact attention grows with the length, not with its square."),
      tr("{small:.1f} MB at 8,192 tokens, {large:.1f} MB at 32,768", "small"_a = memory[0], "large"_a = memory[2]));
}

}  // namespace qkv::labs::long_inputs
