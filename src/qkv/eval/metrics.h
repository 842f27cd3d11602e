// Metrics by name, for `--metric`, a page or a program in another language.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/eval/bleu.h"

namespace QKV_API qkv {

/// Options of metrics. Each metric uses the ones it knows.
struct MetricOptions {
  BleuOptions bleu;
  int d2l_k = 2;  // the longest n-gram of d2l-bleu
  bool lowercase = false;
};

/// "bleu", "chrf", ...
std::vector<std::string> metric_names();

/// The metric with this name; an error lists the names, with the nearest one as a hint.
std::unique_ptr<Metric> make_metric(const std::string& name, const MetricOptions& options = {});

}  // namespace qkv
