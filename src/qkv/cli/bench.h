// Lines of the speed table, and how they are measured.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "qkv/core/text.h"
#include "qkv/nn/module.h"
#include "qkv/ranks/ranks.h"
#include "qkv/report/scaling.h"
#include "qkv/train/optimizer.h"
#include "qkv/train/shards.h"

namespace qkv::cli {

struct Speed {
  double seconds;         // per repetition, best of several rounds
  double work = 0;        // per repetition, in the unit below
  std::string unit = {};  // "GFLOP/s", "GB/s", "rows/s"
};

struct BenchLine {
  Text name;
  std::function<Speed()> measure;
};

/// The best of rounds that take about 20 ms each.
double best_seconds(const std::function<void()>& work);

/// A training step on a batch of `rows` with `count` losses: gradients, clipping, Adam. loss_of as in
/// Shards::gradients.
double step_seconds(auto& model, int64_t rows, double count, const auto& loss_of) {
  Parameters all = flatten(model);
  Adam adam;
  Shards shards(all);
  return best_seconds([&] {
    shards.gradients(rows, count, {.training = true}, loss_of);
    adam.step(all, shards.gradient(), 1e-3f, clip_factor(norm(shards.gradient()), 1));
  });
}

/// bench_lines.cpp: the table of the engine, from single ops to whole models.
std::vector<BenchLine> engine_lines();
/// bench_ranks.cpp: the messages and steps of a distributed job; `large`: also of a model of 60 million parameters.
report::RankMeasurements measure_ranks(Ranks& ranks, bool large);

/// bench_models.cpp: whole models.
std::vector<BenchLine> model_lines();
/// The lines of one model, a run or a pretrained folder: opening it, and what it does for a user. It stays open as long
/// as the lines.
std::vector<BenchLine> model_lines(const std::string& folder);

}  // namespace qkv::cli
