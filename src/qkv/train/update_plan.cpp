// Walks the tree over batches and shards.
#include "qkv/train/update_plan.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/train/tree_sum.h"

namespace qkv {

UpdatePlan::UpdatePlan(std::vector<int64_t> shards, int ranks) : begins_{0}, ranks_(ranks) {
  check(!shards.empty() && ranks >= 1, "[update] ", shards.size(), " batches and ", ranks, " ranks");
  for (const int64_t count : shards) begins_.push_back(begins_.back() + std::max<int64_t>(1, count));
  visit_batches(0, batches());
}

int UpdatePlan::piece_if_alone(int64_t begin, int64_t end) {
  const int rank = rank_of(begin);
  if (rank_of(end - 1) != rank) return -1;
  pieces_.push_back({rank, begin, end});
  return static_cast<int>(pieces_.size()) - 1;
}

int UpdatePlan::visit(int64_t begin, int64_t end) {
  if (const int alone = piece_if_alone(begin, end); alone >= 0) return alone;
  const int64_t middle = tree_split(begin, end);
  const int left = visit(begin, middle), right = visit(middle, end);
  joins_.push_back({left, right});
  return left;
}

int UpdatePlan::visit_batches(int64_t begin, int64_t end) {
  if (const int alone = piece_if_alone(batch_begin(begin), batch_begin(end)); alone >= 0) return alone;
  if (end - begin == 1) return visit(batch_begin(begin), batch_begin(end));
  const int64_t middle = tree_split(begin, end);
  const int left = visit_batches(begin, middle), right = visit_batches(middle, end);
  joins_.push_back({left, right});
  return left;
}

UpdatePlan::Range UpdatePlan::pieces_of(int rank) const {
  const auto first = std::ranges::find_if(pieces_, [&](const Piece& p) { return p.rank >= rank; });
  const auto last = std::find_if(first, pieces_.end(), [&](const Piece& p) { return p.rank > rank; });
  return {first - pieces_.begin(), last - pieces_.begin()};
}

UpdatePlan::Range UpdatePlan::shards_of(int rank, int64_t batch) const {
  const Range own = leaves_of(rank);
  const int64_t first = batch_begin(batch), end = batch_begin(batch + 1);
  const int64_t from = std::clamp(own.begin, first, end), to = std::clamp(own.end, first, end);
  return {from - first, std::max(from, to) - first};
}

}  // namespace qkv
