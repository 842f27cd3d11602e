// Metrics by name: what `--metric`, a page or a program in another language asks for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/eval/bleu.h"

namespace qkv {

/// What can be asked of a metric. Each takes what it knows.
struct MetricOptions {
  BleuOptions bleu;
  int d2l_k = 2;  // the longest n-gram of d2l-bleu
  bool lowercase = false;
};

/// "bleu", "chrf", ...
std::vector<std::string> metric_names();

/// The metric of that name; fails with the names there are, and the nearest of them as a hint.
std::unique_ptr<Metric> make_metric(const std::string& name, const MetricOptions& options = {});

}  // namespace qkv
