// Beam search. The model's rows are the live hypotheses of all unfinished sentences, sentence by sentence; finished
// ones have no row.
#include "qkv/decode/search.h"

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

constexpr float kImpossible = -std::numeric_limits<float>::infinity();

// The output of a row as a path through the steps: the token and attention of step t are in row `row` of that step.
struct Node {
  int32_t token;
  int32_t row;     // of the model at that step
  int32_t parent;  // node of the previous step, or -1
};

struct Live {
  int32_t node = -1;
  double log_probability = 0;
};

struct Ended {
  int32_t node;  // of the last token, or -1 for an empty output
  int32_t end_row, steps;
  double log_probability, score;
  bool ended;
};

struct Sentence {
  int64_t index;  // in the batch
  std::vector<Live> live;
  std::vector<Ended> ended;
};

struct Candidate {
  int32_t live, token;
  double log_probability;
};

// The best continuations of every row: the log-probability of a token is (value - most) - log_sum.
struct Continuations {
  int64_t width = 0;                    // space per row
  std::vector<kernels::Scored> scored;  // (R, width), best first
  std::vector<int64_t> counts;          // (R)
  std::vector<float> log_sums;          // (R)
};

class Search {
 public:
  Search(StepModel& model, std::span<const int32_t> first, const SearchOptions& options)
      : model_(model), first_(first), options_(options) {}
  std::vector<std::vector<Hypothesis>> operator()();

 private:
  void take_step(int64_t step);
  Continuations continuations(const Tensor& scores) const;
  std::vector<Candidate> candidates(const Sentence& sentence, int64_t first_row, const Continuations& next) const;
  void grow_tree(int32_t parent, const Candidate& c, bool ended);
  void finish(Sentence& sentence);
  Hypothesis hypothesis(const Ended& e) const;
  double score(double log_probability, int64_t tokens) const {
    return log_probability / std::pow(static_cast<double>(std::max<int64_t>(tokens, 1)), options_.length_penalty);
  }
  bool is_never(int32_t token) const {
    return std::find(options_.never.begin(), options_.never.end(), token) != options_.never.end();
  }

  StepModel& model_;
  std::span<const int32_t> first_;
  const SearchOptions& options_;
  std::vector<Sentence> sentences_;  // unfinished
  std::vector<Node> nodes_;
  std::vector<Tensor> attention_;     // of each step, (R, maps, T)
  std::vector<int32_t> tree_places_;  // of the nodes, if there is a tree
  std::vector<std::vector<Hypothesis>> results_;
};

// A row can contribute at most 2 beam of its sentence's candidates, so only that many of its largest scores are used
// (plus those that are never written). Scores have the same order as log-probabilities.
Continuations Search::continuations(const Tensor& scores) const {
  const int64_t rows = scores.size(0), vocabulary = scores.size(1);
  const int64_t width = std::min(vocabulary, 2 * options_.beam + std::ssize(options_.never));
  Continuations out{width, std::vector<kernels::Scored>(static_cast<size_t>(rows * width)),
                    std::vector<int64_t>(static_cast<size_t>(rows)), std::vector<float>(static_cast<size_t>(rows))};
  parallel_for(rows, 0.8 * static_cast<double>(scores.numel()), [&](int64_t r) {
    const float* row = scores.ptr() + r * vocabulary;
    kernels::Scored* best = out.scored.data() + r * width;
    const int64_t count = kernels::largest(row, vocabulary, width, best);
    const bool ends_here = count > 0 && best[0].value == kImpossible;  // nothing can follow
    out.counts[static_cast<size_t>(r)] = ends_here ? 0 : count;
    if (ends_here) return;
    const float* soon = r + 1 < rows ? row + vocabulary : nullptr;
    const float log_sum = count > 0 ? kernels::log_sum_exp(row, best[0].value, vocabulary, soon)
                                    : std::numeric_limits<float>::quiet_NaN();
    check(!std::isnan(log_sum), "[search] the model's scores are not numbers");
    out.log_sums[static_cast<size_t>(r)] = log_sum;
  });
  return out;
}

// The best 2 beam continuations of a sentence: at most half of them end, so at least `beam` remain live.
std::vector<Candidate> Search::candidates(const Sentence& sentence, int64_t first_row,
                                          const Continuations& next) const {
  std::vector<Candidate> all;
  all.reserve(sentence.live.size() * static_cast<size_t>(next.width));
  for (size_t h = 0; h < sentence.live.size(); ++h) {
    const size_t row = static_cast<size_t>(first_row) + h;
    const kernels::Scored* best = next.scored.data() + static_cast<int64_t>(row) * next.width;
    for (int64_t i = 0; i < next.counts[row]; ++i) {
      const float log_p = (best[i].value - best[0].value) - next.log_sums[row];
      if (log_p == kImpossible || is_never(best[i].id)) continue;
      all.push_back({static_cast<int32_t>(h), best[i].id, sentence.live[h].log_probability + log_p});
    }
  }
  const auto most = std::min(std::ssize(all), static_cast<std::ptrdiff_t>(2 * options_.beam));
  std::partial_sort(all.begin(), all.begin() + most, all.end(), [](const Candidate& a, const Candidate& b) {
    if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
    return a.live != b.live ? a.live < b.live : a.token < b.token;
  });
  all.resize(static_cast<size_t>(most));
  return all;
}

Hypothesis Search::hypothesis(const Ended& e) const {
  Hypothesis out{.log_probability = e.log_probability, .score = e.score, .ended = e.ended};
  std::vector<int32_t> rows;
  if (e.ended) rows.push_back(e.end_row);
  for (int32_t n = e.node; n >= 0; n = nodes_[static_cast<size_t>(n)].parent) {
    out.tokens.push_back(nodes_[static_cast<size_t>(n)].token);
    rows.push_back(nodes_[static_cast<size_t>(n)].row);
  }
  std::reverse(out.tokens.begin(), out.tokens.end());
  std::reverse(rows.begin(), rows.end());
  if (options_.keep_attention) out.attention = attention_rows(attention_, rows);
  return out;
}

void Search::finish(Sentence& sentence) {
  check(!sentence.ended.empty(), "[search] the model gives no token a probability above 0");
  std::stable_sort(sentence.ended.begin(), sentence.ended.end(),
                   [](const Ended& a, const Ended& b) { return a.score > b.score; });
  auto& out = results_[static_cast<size_t>(sentence.index)];
  for (size_t i = 0; i < sentence.ended.size() && out.size() < static_cast<size_t>(options_.best); ++i)
    out.push_back(hypothesis(sentence.ended[i]));
}

void Search::grow_tree(int32_t parent, const Candidate& c, bool ended) {
  if (!options_.tree) return;
  const int32_t place = parent < 0 ? -1 : tree_places_[static_cast<size_t>(parent)];
  if (!ended) tree_places_.push_back(static_cast<int32_t>(options_.tree->size()));
  options_.tree->push_back({place, c.token, c.log_probability, ended});
}

void Search::take_step(int64_t step) {
  int64_t count = 0;
  for (const Sentence& s : sentences_) count += static_cast<int64_t>(s.live.size());
  Ids tokens = Ids::empty({count});
  int64_t row = 0;
  for (const Sentence& s : sentences_)
    for (const Live& l : s.live)
      tokens.mutable_ptr()[row++] =
          l.node < 0 ? first_[static_cast<size_t>(s.index)] : nodes_[static_cast<size_t>(l.node)].token;
  const Continuations next = continuations(model_.step(tokens));
  if (options_.keep_attention) attention_.push_back(model_.attention());

  std::vector<std::vector<Candidate>> found(sentences_.size());
  std::vector<int32_t> first(sentences_.size(), 0);
  for (size_t s = 1; s < first.size(); ++s)
    first[s] = first[s - 1] + static_cast<int32_t>(sentences_[s - 1].live.size());
  parallel_for(static_cast<int64_t>(sentences_.size()), 20.0 * static_cast<double>(count * next.width), [&](int64_t s) {
    found[static_cast<size_t>(s)] = candidates(sentences_[static_cast<size_t>(s)], first[static_cast<size_t>(s)], next);
  });

  const bool stops = options_.watch.stopped();
  std::vector<int32_t> rows;
  std::vector<Sentence> unfinished;
  for (size_t s = 0; s < sentences_.size(); ++s) {
    Sentence& sentence = sentences_[s];
    const std::vector<Live> before = std::move(sentence.live);
    sentence.live.clear();
    std::vector<int32_t> from;
    for (size_t rank = 0; rank < found[s].size() && sentence.live.size() < static_cast<size_t>(options_.beam); ++rank) {
      const Candidate& c = found[s][rank];
      const int32_t model_row = first[s] + c.live, parent = before[static_cast<size_t>(c.live)].node;
      if (options_.watch.on_token && options_.beam == 1 && rank == 0)
        options_.watch.on_token(
            {static_cast<size_t>(sentence.index), 0, c.token, c.log_probability - before[0].log_probability});
      if (c.token == options_.end) {
        // An end among the worse half of the candidates would not have been in the beam.
        if (rank >= static_cast<size_t>(options_.beam)) continue;
        grow_tree(parent, c, true);
        sentence.ended.push_back({parent, model_row, static_cast<int32_t>(step), c.log_probability,
                                  score(c.log_probability, step + 1), true});
        continue;
      }
      grow_tree(parent, c, false);
      nodes_.push_back({c.token, model_row, parent});
      sentence.live.push_back({static_cast<int32_t>(nodes_.size()) - 1, c.log_probability});
      from.push_back(model_row);
    }
    if (found[s].empty())  // nothing can follow: the hypotheses are cut off here
      for (const Live& l : before)
        sentence.ended.push_back(
            {l.node, 0, static_cast<int32_t>(step), l.log_probability, score(l.log_probability, step), false});
    const bool enough = sentence.ended.size() >= static_cast<size_t>(options_.beam),
               last = step + 1 >= options_.max_length || stops;
    if (!enough && last)
      for (const Live& l : sentence.live)
        sentence.ended.push_back(
            {l.node, 0, static_cast<int32_t>(step), l.log_probability, score(l.log_probability, step + 1), false});
    if (enough || sentence.live.empty() || last) {
      finish(sentence);
      continue;
    }
    rows.insert(rows.end(), from.begin(), from.end());
    unfinished.push_back(std::move(sentence));
  }
  sentences_ = std::move(unfinished);
  // Most steps of greedy search keep every row where it is: then there is nothing to move.
  bool same = static_cast<int64_t>(rows.size()) == count;
  for (size_t i = 0; same && i < rows.size(); ++i) same = rows[i] == static_cast<int32_t>(i);
  if (!sentences_.empty() && !same) model_.select(rows);
}

std::vector<std::vector<Hypothesis>> Search::operator()() {
  results_.resize(first_.size());
  if (options_.max_length == 0) {
    for (auto& r : results_) r.push_back({});
    return std::move(results_);
  }
  for (size_t b = 0; b < first_.size(); ++b) sentences_.push_back({static_cast<int64_t>(b), {Live{}}, {}});
  for (int64_t step = 0; !sentences_.empty(); ++step) take_step(step);
  return std::move(results_);
}

void check_options(const SearchOptions& options) {
  check(options.beam >= 1, "[search] the beam must hold 1 hypothesis or more, got ", options.beam);
  check(options.best >= 1 && options.best <= options.beam, "[search] cannot return the best ", options.best,
        " of a beam of ", options.beam);
  check(options.max_length >= 0, "[search] the maximum length must be 0 or more, got ", options.max_length);
}

}  // namespace

std::vector<std::vector<Hypothesis>> search(StepModel& model, std::span<const int32_t> first,
                                            const SearchOptions& options) {
  check_options(options);
  model.keep_attention(options.keep_attention);
  return Search(model, first, options)();
}

std::vector<std::vector<Hypothesis>> search(SourceStepModel& model, const Ids& source, const Ids& lengths,
                                            const SearchOptions& options) {
  check_options(options);
  check(source.rank() == 2 && lengths.rank() == 1 && lengths.size(0) == source.size(0), "[search] source ",
        source.shape(), " and lengths ", lengths.shape(), " do not fit");
  if (source.size(0) > 0 && options.max_length > 0) model.start(source, lengths);
  return search(model, std::vector<int32_t>(static_cast<size_t>(source.size(0)), options.begin), options);
}

}  // namespace qkv
