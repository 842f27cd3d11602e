// Sums shards and batches by their trees.
#include "qkv/train/shards.h"

#include <array>
#include <cstring>
#include <map>
#include <span>

#include "qkv/core/check.h"
#include "qkv/kernels/elementwise.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 2048;  // elements summed at a time, so that they stay in the L1 cache
constexpr int kMostLevels = std::bit_width(static_cast<uint64_t>(ShardPolicy::kMost));

// Node [begin, end) of the tree over shards, for a block of n elements that starts at `from` in each. `scratch` has one
// block per level.
void sum_block(std::span<const float* const> shards, int64_t from, int64_t begin, int64_t end, float* sum,
               float* scratch, int64_t n) {
  const auto leaf = [&](int64_t s) { return shards[static_cast<size_t>(s)] + from; };
  const int64_t middle = tree_split(begin, end);
  if (middle - begin > 1) sum_block(shards, from, begin, middle, sum, scratch, n);
  if (end - middle > 1) sum_block(shards, from, middle, end, scratch, scratch + kBlock, n);
  kernels::add(middle - begin > 1 ? sum : leaf(begin), end - middle > 1 ? scratch : leaf(middle), sum, n);
}

}  // namespace

void Shards::begin(int64_t batches) {
  batches_ = batches;
  tree_ = {};  // drops the state of a failed update
  first_ = 0;
  batch_ = 0;
  pieces_ = 0;
  plan_ = nullptr;
  listener_ = nullptr;
  in_place_ = false;
  for (const auto& shard : shards_) shard->outside.clear();
}

void Shards::begin(const UpdatePlan& plan, int rank, GradListener* listener) {
  begin(plan.batches());
  plan_ = &plan;
  rank_ = rank;
  listener_ = listener;
  const auto [first, last] = plan.pieces_of(rank);
  in_place_ = last - first == 1 &&
              plan.pieces()[static_cast<size_t>(first)].end - plan.pieces()[static_cast<size_t>(first)].begin == 1;
  if (in_place_ && shards_.empty()) shards_.push_back(std::make_unique<Shard>(parameters_));
  if (!in_place_) reserve_sums(static_cast<size_t>(std::max<int64_t>(1, last - first)));
}

UpdatePlan::Range Shards::own_shards(int64_t count) const {
  if (!plan_) return {0, count};
  const UpdatePlan::Range own = plan_->shards_of(rank_, batch_);
  return {std::min(own.begin, count), std::min(own.end, count)};  // a batch without rows has a place, but no shard
}

std::vector<Tensor> Shards::piece_gradients() const {
  if (in_place_) return {shards_[0]->gradient.flat()};
  const auto [first, last] = plan_->pieces_of(rank_);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < last - first; ++i) out.push_back(sums_[static_cast<size_t>(i)].gradient);
  return out;
}

std::vector<BatchLoss> Shards::piece_losses() const {
  if (in_place_) return {shards_[0]->loss};
  std::vector<BatchLoss> out;
  for (size_t i = 0; i < pieces_; ++i) out.push_back(sums_[i].loss);
  return out;
}

void Shards::differentiate(Tape& tape, const Loss& loss, double divisor, Shard& shard) {
  check(loss.sum.defined() && loss.sum.numel() == 1, "[fit] the loss must be one number, got ",
        loss.sum.defined() ? text("shape ", loss.sum.shape()) : "an absent tensor");
  if (!Tape::tracks(loss.sum) || loss.sum.is_parameter())
    throw Error(
        verbatim("[fit] the loss depends on no parameter of the step"),
        verbatim("compute it inside the loss function, from the model itself: tensors computed before are constants"));
  shard.loss = {loss.sum.item(), loss.count};
  tape.backward(loss.sum, full(loss.sum.shape(), static_cast<float>(1 / divisor)));
  const std::vector<OutsideLeaf> outside = tape.outside();
  shard.outside.insert(shard.outside.end(), outside.begin(), outside.end());
}

std::vector<OutsideLeaf> Shards::outside() const {
  std::map<uint32_t, OutsideLeaf> all;
  for (const auto& shard : shards_)
    for (const OutsideLeaf& leaf : shard->outside) all.emplace(leaf.number, leaf);
  std::vector<OutsideLeaf> list;
  for (const auto& [number, leaf] : all) list.push_back(leaf);
  return list;
}

void Shards::reserve_sums(size_t count) {
  while (sums_.size() < count) sums_.push_back({zeros(parameters_.flat().shape()), {}});
}

// Node [begin, end) of the tree over the shards that were computed here.
void Shards::sum_node(int64_t begin, int64_t end, Sum& sum) {
  const int64_t count = end - begin;
  const auto both = [](BatchLoss a, const BatchLoss& b) {
    a.add(b);
    return a;
  };
  sum.loss = count == 0 ? BatchLoss{}
                        : tree_sum(
                              begin, end, [&](int64_t s) { return shards_[static_cast<size_t>(s)]->loss; }, both);

  std::array<const float*, ShardPolicy::kMost> gradients;
  for (int64_t s = begin; s < end; ++s)
    gradients[static_cast<size_t>(s)] = shards_[static_cast<size_t>(s)]->gradient.flat().ptr();
  const int64_t n = sum.gradient.numel();
  float* all = sum.gradient.mutable_ptr();
  parallel_ranges(n, kBlock, 0.1 * static_cast<double>(n) * static_cast<double>(count), [&](int64_t from, int64_t to) {
    const auto bytes = static_cast<size_t>(to - from) * sizeof(float);
    if (count == 0)
      std::memset(all + from, 0, bytes);
    else if (count == 1)
      std::memcpy(all + from, gradients[static_cast<size_t>(begin)] + from, bytes);
    else {
      std::array<float, static_cast<size_t>(kBlock * kMostLevels)> scratch;
      sum_block(std::span(gradients).first(used_), from, begin, end, all + from, scratch.data(), to - from);
    }
  });
}

// The sum over the shards of a batch becomes the next node of the tree over batches.
BatchLoss Shards::sum_up() {
  in_place_ = used_ == 1 && batches_ == 1;
  if (in_place_) return shards_[0]->loss;
  const auto top = static_cast<size_t>(tree_.height());
  reserve_sums(top + 1);
  sum_node(0, static_cast<int64_t>(used_), sums_[top]);
  const BatchLoss batch = sums_[top].loss;
  tree_.push([this](int64_t left) { join(left); });
  return batch;
}

// The same for the pieces of this rank that have a part in the batch: nodes inside the batch, or a node over whole
// batches of which this is the next.
BatchLoss Shards::sum_pieces(const UpdatePlan::Range& own) {
  BatchLoss batch;
  if (in_place_) return used_ == 1 ? shards_[0]->loss : batch;
  const int64_t begin = plan_->batch_begin(batch_), end = plan_->batch_begin(batch_ + 1);
  const auto [first, last] = plan_->pieces_of(rank_);
  for (int64_t i = first + static_cast<int64_t>(pieces_); i < last; ++i) {
    const UpdatePlan::Piece& piece = plan_->pieces()[static_cast<size_t>(i)];
    if (piece.begin >= end) break;
    const size_t top = pieces_ + static_cast<size_t>(tree_.height());
    reserve_sums(top + 1);
    if (used_ == 0)
      sum_node(0, 0, sums_[top]);
    else
      sum_node(std::max(piece.begin, begin) - begin - own.begin, std::min(piece.end, end) - begin - own.begin,
               sums_[top]);
    batch.add(sums_[top].loss);
    tree_.push([this](int64_t left) { join(left); });
    if (piece.end > end) break;
    tree_.finish([this](int64_t left) { join(left); });
    ++pieces_;
  }
  return batch;
}

void Shards::join(int64_t left) {
  Sum &a = sums_[pieces_ + static_cast<size_t>(left)], &b = sums_[pieces_ + static_cast<size_t>(left + 1)];
  a.loss.add(b.loss);
  const int64_t n = a.gradient.numel();
  parallel_ranges(n, kBlock, 0.1 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    float* out = a.gradient.mutable_ptr() + begin;
    kernels::add(out, b.gradient.ptr() + begin, out, end - begin);
  });
}

BatchLoss Shards::finish() {
  if (in_place_ || plan_) return in_place_ ? shards_[0]->loss : BatchLoss{};
  tree_.finish([this](int64_t left) { join(left); });
  return sums_[0].loss;
}

int64_t Shards::pool_misses() const {
  int64_t misses = 0;
  for (const auto& shard : shards_) misses += shard->pool.misses();
  return misses;
}

}  // namespace qkv
