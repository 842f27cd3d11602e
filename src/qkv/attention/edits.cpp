// Edits work on the logarithms of a row's weights, in double: temperatures then lose no key to underflow.
#include "qkv/attention/edits.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "qkv/core/check.h"

namespace qkv {
namespace {

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// One row of weights; log weights need not be normalised.
class EditedRow {
 public:
  EditedRow(const float* scores, const PlanRow& plan, int64_t keys) : logs_(static_cast<size_t>(keys), kNothing) {
    for (int64_t j = 0; j < keys; ++j)
      if (plan.sees(j)) logs_[static_cast<size_t>(j)] = scores[j];
    for (const double log : logs_) seen_.push_back(log != kNothing);
  }

  void apply(const AttentionEdit& edit) {
    switch (edit.what) {
      case EditKind::off:
        std::ranges::fill(logs_, kNothing);
        break;
      case EditKind::flat:
        for (size_t j = 0; j < logs_.size(); ++j) logs_[j] = seen_[j] ? 0 : kNothing;
        break;
      case EditKind::force:
        if (!sees(edit.keys.front())) break;
        std::ranges::fill(logs_, kNothing);
        logs_[static_cast<size_t>(edit.keys.front())] = 0;
        break;
      case EditKind::temperature:
        for (double& log : logs_) log /= edit.temperature;
        break;
      case EditKind::mask:
        for (const int64_t key : edit.keys) {
          if (!sees(key)) continue;
          logs_[static_cast<size_t>(key)] = kNothing;
          seen_[static_cast<size_t>(key)] = false;
        }
        break;
    }
  }

  void write(float* weights) const {
    double most = kNothing, sum = 0;
    for (const double log : logs_) most = std::max(most, log);
    if (most == kNothing) most = 0;
    for (const double log : logs_) sum += std::exp(log - most);
    for (size_t j = 0; j < logs_.size(); ++j)
      weights[j] = sum == 0 ? 0 : static_cast<float>(std::exp(logs_[j] - most) / sum);
  }

 private:
  bool sees(int64_t key) const { return key < std::ssize(seen_) && seen_[static_cast<size_t>(key)]; }

  std::vector<double> logs_;
  std::vector<bool> seen_;
};

}  // namespace

void check_edit(const AttentionEdit& edit) {
  const bool one = edit.what == EditKind::force, some = edit.what == EditKind::mask;
  require(!one || edit.keys.size() == 1, "an edit of {path} forces one key, got {count}", "path"_a = edit.path,
          "count"_a = edit.keys.size());
  require(!some || !edit.keys.empty(), "an edit of {path} masks keys, but names none", "path"_a = edit.path);
  for (const int64_t key : edit.keys)
    require(key >= 0, "an edit of {path} has key {key}: keys count from 0", "path"_a = edit.path, "key"_a = key);
  require(edit.query.value_or(0) >= 0, "an edit of {path} has query {query}: queries count from 0",
          "path"_a = edit.path, "query"_a = edit.query.value_or(0));
  require(edit.head.value_or(0) >= 0, "an edit of {path} has head {head}: heads count from 0", "path"_a = edit.path,
          "head"_a = edit.head.value_or(0));
  require(edit.what != EditKind::temperature || (std::isfinite(edit.temperature) && edit.temperature > 0),
          "an edit of {path} has temperature {temperature}, expected a number greater than 0", "path"_a = edit.path,
          "temperature"_a = edit.temperature);
}

EditProbe::EditProbe(AttentionEdits edits, Probe* then) : edits_(std::move(edits)), then_(then) {
  for (const AttentionEdit& edit : edits_) check_edit(edit);
}

void EditProbe::attention(std::string_view path, const Weights& weights) {
  if (then_) then_->attention(path, weights);
}

void EditProbe::values(std::string_view path, const Tensor& v) {
  if (then_) then_->values(path, v);
}

bool EditProbe::edits(std::string_view path) const {
  return std::ranges::any_of(edits_, [&](const AttentionEdit& edit) { return edit.path == path; });
}

void EditProbe::edit(std::string_view path, EditableWeights& w) {
  const int64_t heads = w.weights.size(1), queries = w.weights.size(2), keys = w.weights.size(3);
  std::vector<const AttentionEdit*> here;
  for (const AttentionEdit& edit : edits_) {
    if (edit.path != path) continue;
    require(edit.head.value_or(0) < heads, "{path} has no head {head}: it has {heads}, counted from 0",
            "path"_a = edit.path, "head"_a = edit.head.value_or(0), "heads"_a = heads);
    here.push_back(&edit);
  }
  float* weights = w.weights.mutable_ptr();
  std::vector<const AttentionEdit*> of_row;
  for (int64_t r = 0; r < w.weights.size(0) * heads * queries; ++r) {
    const int64_t b = r / queries / heads, h = r / queries % heads, i = r % queries;
    const int64_t number = i + (w.first_queries.empty() ? 0 : w.first_queries[static_cast<size_t>(b)]);
    of_row.clear();
    for (const AttentionEdit* edit : here)
      if (edit->head.value_or(h) == h && edit->query.value_or(number) == number) of_row.push_back(edit);
    if (of_row.empty()) continue;  // the row keeps its bits
    EditedRow row(w.scores.ptr() + r * keys, w.plan.row(b, h, i, keys), keys);
    for (const AttentionEdit* edit : of_row) row.apply(*edit);
    row.write(weights + r * keys);
  }
}

}  // namespace qkv
