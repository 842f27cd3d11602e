// Batches of sentence pairs: order, cuts, padding.
#include "qkv/data/translation.h"

#include <algorithm>
#include <mutex>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/shuffle.h"

namespace qkv {
namespace {

// An epoch's order of the pairs, and its batches as ranges of it.
struct Plan {
  std::vector<int64_t> order;
  std::vector<std::pair<int64_t, int64_t>> batches;  // [begin, end) in order
};

int64_t longest(const IdPair& pair) { return static_cast<int64_t>(std::max(pair.source.size(), pair.target.size())); }

Plan make_plan(const std::vector<IdPair>& pairs, const BatchOptions& options, int64_t epoch) {
  const int64_t n = std::ssize(pairs);
  const bool by_length = options.by_length || options.tokens > 0;
  const Rng rng = Rng(options.seed).at("batches").at(static_cast<uint64_t>(epoch));
  const auto length = [&](int64_t i) {
    const int64_t l = longest(pairs[static_cast<size_t>(i)]);
    return options.fixed_steps > 0 ? options.fixed_steps : l;
  };
  Plan plan;
  if (options.shuffle) {
    plan.order = shuffled(n, rng.at("pairs"));
  } else {
    plan.order.resize(static_cast<size_t>(n));
    std::iota(plan.order.begin(), plan.order.end(), int64_t{0});
  }
  if (by_length)
    std::stable_sort(plan.order.begin(), plan.order.end(), [&](int64_t a, int64_t b) { return length(a) < length(b); });
  for (int64_t begin = 0, end = 0; begin < n; begin = end) {
    if (options.tokens > 0) {
      // Lengths ascend, so the next sentence is the longest of the batch it would join.
      for (end = begin + 1;
           end < n && (end + 1 - begin) * length(plan.order[static_cast<size_t>(end)]) <= options.tokens; ++end)
        continue;
    } else {
      end = std::min(n, begin + options.rows);
    }
    plan.batches.emplace_back(begin, end);
  }
  if (options.shuffle && by_length) {
    const auto cuts = plan.batches;
    const auto order = shuffled(std::ssize(cuts), rng.at("order"));
    for (size_t i = 0; i < cuts.size(); ++i) plan.batches[i] = cuts[static_cast<size_t>(order[i])];
  }
  return plan;
}

// Fills row `row` of (B, steps) with the ids, cut or padded; returns the number of ids written.
int32_t put_row(int32_t* out, int64_t steps, const std::vector<int32_t>& ids, int32_t pad) {
  const int64_t count = std::min<int64_t>(steps, std::ssize(ids));
  std::copy_n(ids.begin(), count, out);
  std::fill(out + count, out + steps, pad);
  return static_cast<int32_t>(count);
}

}  // namespace

struct TranslationBatches::State {
  std::vector<IdPair> pairs;
  int32_t pad_source, pad_target, bos;
  BatchOptions options;
  int64_t batches;

  // The plan of the last requested epoch: otherwise every batch would sort the corpus.
  std::mutex mutex;
  int64_t epoch = -1;
  std::shared_ptr<const Plan> plan;

  std::shared_ptr<const Plan> plan_of(int64_t wanted) {
    if (!options.shuffle) wanted = 0;
    const std::lock_guard lock(mutex);
    if (epoch != wanted || !plan) {
      plan = std::make_shared<const Plan>(make_plan(pairs, options, wanted));
      epoch = wanted;
    }
    return plan;
  }
};

std::vector<IdPair> encode_pairs(const SentencePairs& pairs, const Tokenizer& source, const Tokenizer& target) {
  check(pairs.source.size() == pairs.target.size(), "[encode_pairs] ", pairs.source.size(), " sources and ",
        pairs.target.size(), " targets");
  std::vector<IdPair> out(pairs.source.size());
  for (size_t i = 0; i < out.size(); ++i) {
    for (const auto& [side, text] : {std::pair{&source, &pairs.source[i]}, {&target, &pairs.target[i]}})
      require(text->size() <= side->most_bytes(), "pair {pair} has a sentence of {size} bytes, expected at most {most}",
              "pair"_a = i + 1, "size"_a = grouped(text->size()), "most"_a = grouped(side->most_bytes()));
    out[i] = {source.encode(pairs.source[i]), target.encode(pairs.target[i])};
    out[i].source.push_back(source.eos());
    out[i].target.push_back(target.eos());
  }
  return out;
}

TranslationBatches::TranslationBatches(std::vector<IdPair> pairs, int32_t pad_source, int32_t pad_target, int32_t bos,
                                       const BatchOptions& options)
    : state_(std::make_shared<State>()) {
  check(options.rows >= 1, "[batches] rows is ", options.rows, ", expected at least 1");
  check(options.tokens >= 0, "[batches] tokens is ", options.tokens, ", expected 0 (cut by rows) or more");
  check(options.fixed_steps >= 0, "[batches] fixed_steps is ", options.fixed_steps,
        ", expected 0 (as long as needed) or more");
  check(options.source_steps >= 0, "[batches] source_steps is ", options.source_steps,
        ", expected 0 (as long as needed) or more");
  check(pad_source >= 0 && pad_target >= 0 && bos >= 0, "[batches] <pad> and <bos> are ", pad_source, ", ", pad_target,
        " and ", bos, ", expected 0 or more");
  for (size_t i = 0; i < pairs.size(); ++i)
    check(!pairs[i].source.empty() && !pairs[i].target.empty(), "[batches] pair ", i, " has a side without <eos>");
  State& s = *state_;
  s.pairs = std::move(pairs);
  s.options = options;
  s.pad_source = pad_source;
  s.pad_target = pad_target;
  s.bos = bos;
  s.batches = std::ssize(s.plan_of(0)->batches);
}

int64_t TranslationBatches::batches() const { return state_->batches; }
const std::vector<IdPair>& TranslationBatches::pairs() const { return state_->pairs; }

std::vector<int64_t> TranslationBatches::rows(int64_t epoch, int64_t index) const {
  check(epoch >= 0 && index >= 0 && index < batches(), "[batches] no batch ", index, " of epoch ", epoch,
        ", there are ", batches());
  const auto plan = state_->plan_of(epoch);
  const auto [begin, end] = plan->batches[static_cast<size_t>(index)];
  return {plan->order.begin() + begin, plan->order.begin() + end};
}

TranslationBatch TranslationBatches::batch(int64_t epoch, int64_t index) const {
  const State& s = *state_;
  const std::vector<int64_t> numbers = rows(epoch, index);
  const auto pair = [&](int64_t row) -> const IdPair& {
    return s.pairs[static_cast<size_t>(numbers[static_cast<size_t>(row)])];
  };
  const int64_t count = std::ssize(numbers);
  int64_t source_steps = s.options.fixed_steps, target_steps = s.options.fixed_steps;
  if (s.options.fixed_steps == 0) {
    source_steps = s.options.source_steps;
    for (int64_t row = 0; row < count; ++row) {
      source_steps = std::max<int64_t>(source_steps, std::ssize(pair(row).source));
      target_steps = std::max<int64_t>(target_steps, std::ssize(pair(row).target));
    }
  }
  TranslationBatch out{Ids::empty({count, source_steps}), Ids::empty({count}), Ids::empty({count, target_steps}),
                       Ids::empty({count, target_steps}), Ids::empty({count})};
  for (int64_t row = 0; row < count; ++row) {
    int32_t* target_out = out.target_out.mutable_ptr() + row * target_steps;
    int32_t* target_in = out.target_in.mutable_ptr() + row * target_steps;
    out.source_lens.mutable_ptr()[row] =
        put_row(out.source.mutable_ptr() + row * source_steps, source_steps, pair(row).source, s.pad_source);
    out.target_lens.mutable_ptr()[row] = put_row(target_out, target_steps, pair(row).target, s.pad_target);
    target_in[0] = s.bos;
    std::copy_n(target_out, target_steps - 1, target_in + 1);
  }
  return out;
}

}  // namespace qkv
