// The list of metrics. A new one needs its own file and a row here.
#include "qkv/eval/metrics.h"

#include "qkv/core/names.h"
#include "qkv/eval/chrf.h"
#include "qkv/eval/d2l_bleu.h"

namespace qkv {
namespace {

struct MetricRow {
  const char* name;
  std::unique_ptr<Metric> (*make)(const MetricOptions&);
};

std::unique_ptr<Metric> bleu(const MetricOptions& o) {
  BleuOptions options = o.bleu;
  options.lowercase = o.lowercase;
  return std::make_unique<Bleu>(options);
}
std::unique_ptr<Metric> chrf(const MetricOptions& o) {
  return std::make_unique<Chrf>(ChrfOptions{.lowercase = o.lowercase});
}
std::unique_ptr<Metric> chrf_with_words(const MetricOptions& o) {
  return std::make_unique<Chrf>(ChrfOptions{.word_order = 2, .lowercase = o.lowercase});
}
std::unique_ptr<Metric> d2l(const MetricOptions& o) {
  return std::make_unique<D2lBleu>(D2lBleuOptions{o.d2l_k, o.lowercase});
}

constexpr MetricRow kMetrics[] = {{"bleu", bleu}, {"chrf", chrf}, {"chrf++", chrf_with_words}, {"d2l-bleu", d2l}};

}  // namespace

std::vector<std::string> metric_names() {
  std::vector<std::string> names;
  for (const MetricRow& row : kMetrics) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<Metric> make_metric(const std::string& name, const MetricOptions& options) {
  for (const MetricRow& row : kMetrics)
    if (name == row.name) return row.make(options);
  refuse_word("metric", name, metric_names());
}

}  // namespace qkv
