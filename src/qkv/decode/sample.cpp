// Sampling. The model's rows are the unfinished samples, sentence by sentence; in the first step the samples of a
// sentence share one row.
#include "qkv/decode/sample.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/core/rng.h"
#include "qkv/decode/attention_rows.h"
#include "qkv/kernels/largest.h"
#include "qkv/kernels/softmax.h"

namespace qkv {
namespace {

struct Draw {
  int32_t token;
  float log_probability;  // under the model
};

// [0, 1) with the 53 bits of a double: 24 bits would never reach the rare tokens of a large vocabulary.
double unit_double(const Rng& rng) { return static_cast<double>(rng.below(uint64_t{1} << 53, 0)) * 0x1p-53; }

// The index of the weight that the number u in [0, 1) falls on. At least one weight is positive.
size_t place_of(std::span<const float> weights, double u) {
  double sum = 0;
  for (const float w : weights) sum += w;
  const double wanted = u * sum;
  double below = 0;
  size_t last = 0;  // last index with a weight: rounding may leave `wanted` a little above the sum
  for (size_t i = 0; i < weights.size(); ++i) {
    if (!(weights[i] > 0)) continue;
    last = i;
    below += weights[i];
    if (wanted < below) break;
  }
  return last;
}

// Draws tokens from the scores of one row.
class Chooser {
 public:
  /// `seen`: lists of tokens whose repetition is penalised.
  Chooser(const float* row, int64_t vocabulary, const SampleOptions& options,
          std::initializer_list<std::span<const int32_t>> seen)
      : row_(row), vocabulary_(vocabulary), options_(options) {
    allowed_.assign(row, row + vocabulary);
    if (options.repetition_penalty != 1) penalise(seen);
    for (const int32_t id : options.never)
      if (id >= 0 && id < vocabulary) allowed_[static_cast<size_t>(id)] = -std::numeric_limits<float>::infinity();
    kernels::Scored best[1];
    check(kernels::largest(row, vocabulary, 1, best) == 1, "[sample] the model's scores are not numbers");
    most_ = best[0].value;
    log_sum_ = kernels::log_sum_exp(row, most_, vocabulary);
    check(std::isfinite(log_sum_), "[sample] the model's scores are not finite: the largest number among them is ",
          most_);
    kernels::largest(allowed_.data(), vocabulary, 1, best);
    check(std::isfinite(best[0].value), "[sample] every token that may be written has probability 0");
    largest_ = best[0];
    if (options.temperature == 0) return;
    if (options.top_k > 0 || options.top_p < 1)
      cut_off();
    else
      weigh(allowed_);
  }

  Draw operator()(double u) const {
    int32_t token = largest_.id;
    if (options_.temperature > 0) {
      const size_t place = place_of(weights_, u);
      token = candidates_.empty() ? static_cast<int32_t>(place) : candidates_[place].id;
    }
    return {token, (row_[token] - most_) - log_sum_};
  }

 private:
  void penalise(std::initializer_list<std::span<const int32_t>> seen) {
    const auto penalty = static_cast<float>(options_.repetition_penalty);
    for (const auto& tokens : seen)
      for (const int32_t id : tokens) {
        if (id < 0 || id >= vocabulary_) continue;
        const float s = row_[id];  // once, however often the token was seen
        allowed_[static_cast<size_t>(id)] = s > 0 ? s / penalty : s * penalty;
      }
  }

  // weights <- softmax((scores - largest) / temperature): a small temperature leaves only the largest, and nothing
  // overflows.
  void weigh(std::span<const float> scores) {
    weights_.resize(scores.size());
    for (size_t i = 0; i < scores.size(); ++i)
      weights_[i] = static_cast<float>(std::max((double{scores[i]} - largest_.value) / options_.temperature, -1e30));
    kernels::softmax(weights_.data(), weights_.data(), 1, std::ssize(weights_));
  }

  // Keeps only the likeliest tokens, likeliest first. For top p a few are tried first, and more until p is reached.
  void cut_off() {
    const int64_t most = options_.top_k > 0 ? std::min(options_.top_k, vocabulary_) : vocabulary_;
    double mass = 0;  // total of all tokens, relative to the likeliest one
    if (options_.top_k == 0)
      for (const float s : allowed_) mass += std::exp((double{s} - largest_.value) / options_.temperature);
    for (int64_t count = options_.top_k > 0 ? most : std::min<int64_t>(most, 64);; count = std::min(most, 8 * count)) {
      candidates_.resize(static_cast<size_t>(count));
      candidates_.resize(
          static_cast<size_t>(kernels::largest(allowed_.data(), vocabulary_, count, candidates_.data())));
      while (candidates_.back().value == -std::numeric_limits<float>::infinity()) candidates_.pop_back();
      std::vector<double> share;
      for (const kernels::Scored& c : candidates_)
        share.push_back(std::exp((double{c.value} - largest_.value) / options_.temperature));
      const double wanted =
          options_.top_p * (options_.top_k > 0 ? std::accumulate(share.begin(), share.end(), 0.0) : mass);
      double sum = 0;
      size_t kept = 0;
      while (kept < share.size() && (kept == 0 || sum < wanted)) sum += share[kept++];
      if (sum < wanted && count < most) continue;
      candidates_.resize(options_.top_p < 1 ? kept : candidates_.size());
      break;
    }
    std::vector<float> scores;
    for (const kernels::Scored& c : candidates_) scores.push_back(c.value);
    weigh(scores);
  }

  const float* row_;
  int64_t vocabulary_;
  const SampleOptions& options_;
  std::vector<float> allowed_;               // the row, without the tokens that are never written
  std::vector<kernels::Scored> candidates_;  // tokens that may be drawn; empty: all
  std::vector<float> weights_;               // of the candidates, or of all tokens
  kernels::Scored largest_{};
  float most_ = 0, log_sum_ = 0;
};

struct Path {
  size_t sentence, number;  // of the sample
  int32_t row = 0;          // of the model, in the next step
  Hypothesis so_far;
  std::vector<int32_t> rows;  // in each step
};

class Sampler {
 public:
  Sampler(StepModel& model, std::span<const uint64_t> numbers, const SampleOptions& options)
      : model_(model), options_(options) {
    for (const uint64_t number : numbers) streams_.push_back(Rng(options.seed).at("sample").at(number));
  }

  std::vector<std::vector<Hypothesis>> operator()(std::span<const int32_t> first) {
    results_.assign(streams_.size(), std::vector<Hypothesis>(static_cast<size_t>(options_.samples)));
    if (streams_.empty() || options_.max_length == 0) return std::move(results_);
    last_.assign(first.begin(), first.end());
    for (size_t s = 0; s < streams_.size(); ++s)
      for (size_t n = 0; n < static_cast<size_t>(options_.samples); ++n)
        live_.push_back({s, n, static_cast<int32_t>(s), {}, {}});
    for (int64_t step = 0; !live_.empty(); ++step) take_step(step);
    return std::move(results_);
  }

 private:
  std::vector<Draw> drawn(const Tensor& scores, int64_t step) const;
  void take_step(int64_t step);
  void finish(Path& path, int64_t tokens);

  StepModel& model_;
  const SampleOptions& options_;
  std::vector<Rng> streams_;  // one per sentence
  std::vector<Path> live_;
  std::vector<int32_t> last_;      // last token of each row
  std::vector<Tensor> attention_;  // of each step, (R, maps, T)
  std::vector<std::vector<Hypothesis>> results_;
};

// Draws a token for each live path; paths that share a row are adjacent.
std::vector<Draw> Sampler::drawn(const Tensor& scores, int64_t step) const {
  const int64_t rows = scores.size(0), vocabulary = scores.size(1);
  std::vector<size_t> first(static_cast<size_t>(rows) + 1, live_.size());
  for (size_t p = live_.size(); p-- > 0;) first[static_cast<size_t>(live_[p].row)] = p;
  std::vector<Draw> out(live_.size());
  parallel_for(rows, 2.0 * static_cast<double>(scores.numel()), [&](int64_t r) {
    const size_t begin = first[static_cast<size_t>(r)];
    if (begin == live_.size()) return;
    // Paths share a row only in the first step, when they have written nothing.
    const Path& path = live_[begin];
    const std::span<const int32_t> read =
        options_.read.empty() ? std::span<const int32_t>() : options_.read[path.sentence];
    const Chooser choose(scores.ptr() + r * vocabulary, vocabulary, options_, {read, path.so_far.tokens});
    for (size_t p = begin; p < first[static_cast<size_t>(r) + 1]; ++p)
      out[p] =
          choose(unit_double(streams_[live_[p].sentence].at(live_[p].number).at_step(static_cast<uint64_t>(step))));
  });
  return out;
}

void Sampler::finish(Path& path, int64_t tokens) {
  Hypothesis& h = path.so_far;
  h.score = h.log_probability / std::pow(static_cast<double>(tokens), options_.length_penalty);
  if (options_.keep_attention) h.attention = attention_rows(attention_, path.rows);
  results_[path.sentence][path.number] = std::move(h);
}

void Sampler::take_step(int64_t step) {
  Ids tokens = Ids::empty({static_cast<int64_t>(last_.size())});
  std::copy(last_.begin(), last_.end(), tokens.mutable_ptr());
  const std::vector<Draw> draws = drawn(model_.step(tokens), step);
  if (options_.keep_attention) attention_.push_back(model_.attention());

  const size_t before = last_.size();
  const bool stops = options_.watch.stopped();
  std::vector<Path> unfinished;
  std::vector<int32_t> rows;
  last_.clear();
  for (size_t p = 0; p < live_.size(); ++p) {
    Path& path = live_[p];
    path.so_far.log_probability += draws[p].log_probability;
    path.rows.push_back(path.row);
    path.so_far.ended = draws[p].token == options_.end;
    if (!path.so_far.ended) {
      path.so_far.tokens.push_back(draws[p].token);
      path.so_far.ended = options_.ends && options_.ends(path.sentence, path.number, draws[p].token);
    }
    if (options_.watch.on_token)
      options_.watch.on_token({path.sentence, path.number, draws[p].token, draws[p].log_probability});
    if (path.so_far.ended || step + 1 >= options_.max_length || stops) {
      finish(path, step + 1);
      continue;
    }
    rows.push_back(path.row);
    last_.push_back(draws[p].token);
    path.row = static_cast<int32_t>(rows.size()) - 1;
    unfinished.push_back(std::move(path));
  }
  live_ = std::move(unfinished);
  bool same = rows.size() == before;
  for (size_t i = 0; same && i < rows.size(); ++i) same = rows[i] == static_cast<int32_t>(i);
  if (!live_.empty() && !same) model_.select(rows);
}

void check_options(const SampleOptions& options) {
  check(options.samples >= 1, "[sample] samples must be 1 or more, got ", options.samples);
  check(options.temperature >= 0 && std::isfinite(options.temperature),
        "[sample] the temperature must be 0 or more, got ", options.temperature);
  check(options.top_k >= 0, "[sample] top k must be 0 (all tokens) or more, got ", options.top_k);
  check(options.top_p > 0 && options.top_p <= 1, "[sample] top p must be above 0 and at most 1, got ", options.top_p);
  check(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty),
        "[sample] the repetition penalty must be above 0, got ", options.repetition_penalty);
  check(options.max_length >= 0, "[sample] the maximum length must be 0 or more, got ", options.max_length);
}

}  // namespace

std::vector<std::vector<Hypothesis>> sample(StepModel& model, std::span<const int32_t> first,
                                            std::span<const uint64_t> numbers, const SampleOptions& options) {
  check_options(options);
  check(first.size() == numbers.size(), "[sample] ", first.size(), " rows and ", numbers.size(), " numbers do not fit");
  check(options.read.empty() || options.read.size() == first.size(), "[sample] ", first.size(), " rows, but ",
        options.read.size(), " lists of tokens that they have read");
  model.keep_attention(options.keep_attention);
  return Sampler(model, numbers, options)(first);
}

std::vector<std::vector<Hypothesis>> sample(SourceStepModel& model, const Ids& source, const Ids& lengths,
                                            std::span<const uint64_t> numbers, const SampleOptions& options) {
  check_options(options);
  check(source.rank() == 2 && lengths.rank() == 1 && lengths.size(0) == source.size(0) &&
            std::ssize(numbers) == source.size(0),
        "[sample] source ", source.shape(), ", lengths ", lengths.shape(), " and ", numbers.size(),
        " numbers do not fit");
  if (source.size(0) > 0 && options.max_length > 0) model.start(source, lengths);
  return sample(model, std::vector<int32_t>(static_cast<size_t>(source.size(0)), options.begin), numbers, options);
}

}  // namespace qkv
