// All rows take every step; a finished row is fed its last token and its scores are ignored.
#include "qkv/decode/force.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/decode/attention_rows.h"
#include "qkv/kernels/largest.h"

namespace qkv {
namespace {

// Adds the log-probability of the token and, if asked for, the likeliest tokens of the row.
void add_step(Forced& out, const float* row, int64_t vocabulary, int32_t token, int64_t likeliest) {
  check(token >= 0 && token < vocabulary, "[force] the target has id ", token, ", but there are scores for ",
        vocabulary, " tokens");
  std::vector<kernels::Scored> best(static_cast<size_t>(std::clamp<int64_t>(likeliest, 1, vocabulary)));
  const int64_t found = kernels::largest(row, vocabulary, std::ssize(best), best.data());
  const float log_sum =
      found > 0 ? kernels::log_sum_exp(row, best[0].value, vocabulary) : std::numeric_limits<float>::quiet_NaN();
  const float log_p = (row[token] - best[0].value) - log_sum;
  check(!std::isnan(log_p), "[force] the model's scores are not numbers");
  out.log_probabilities.push_back(log_p);
  if (likeliest <= 0) return;
  out.likeliest.emplace_back();
  for (int64_t i = 0; i < found; ++i)
    out.likeliest.back().push_back(
        {best[static_cast<size_t>(i)].id, (best[static_cast<size_t>(i)].value - best[0].value) - log_sum});
}

}  // namespace

double Forced::log_probability() const {
  return std::accumulate(log_probabilities.begin(), log_probabilities.end(), 0.0);
}

std::vector<Forced> force(SourceStepModel& model, const Ids& source, const Ids& lengths,
                          std::span<const std::vector<int32_t>> targets, int32_t begin, bool keep_attention,
                          int64_t likeliest) {
  const auto rows = static_cast<int64_t>(targets.size());
  check(source.rank() == 2 && source.size(0) == rows, "[force] ", rows, " outputs for source ", source.shape());
  std::vector<Forced> out(targets.size());
  if (rows == 0) return out;
  size_t longest = 0;
  for (const auto& t : targets) longest = std::max(longest, t.size());
  model.keep_attention(keep_attention);
  model.start(source, lengths);
  Ids tokens = Ids::empty({rows});
  std::fill_n(tokens.mutable_ptr(), rows, begin);
  std::vector<Tensor> attention;
  for (size_t step = 0; step < longest; ++step) {
    const Tensor scores = model.step(tokens);
    if (keep_attention) attention.push_back(model.attention());
    Ids next = Ids::empty({rows});
    const int64_t vocabulary = scores.size(1);
    parallel_for(rows, 0.6 * static_cast<double>(scores.numel()), [&](int64_t r) {
      const std::vector<int32_t>& target = targets[static_cast<size_t>(r)];
      const bool done = step >= target.size();
      next.mutable_ptr()[r] = done ? tokens.ptr()[r] : target[step];
      if (done) return;
      add_step(out[static_cast<size_t>(r)], scores.ptr() + r * vocabulary, vocabulary, target[step], likeliest);
    });
    tokens = next;
  }
  for (size_t r = 0; keep_attention && r < targets.size(); ++r)
    out[r].attention = attention_rows(attention, std::vector<int32_t>(targets[r].size(), static_cast<int32_t>(r)));
  return out;
}

}  // namespace qkv
