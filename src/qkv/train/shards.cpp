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
  for (const auto& shard : shards_) shard->outside.clear();
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

// The sum over the shards of a batch becomes the next node of the tree over batches.
BatchLoss Shards::sum_up() {
  in_place_ = used_ == 1 && batches_ == 1;
  if (in_place_) return shards_[0]->loss;
  const auto top = static_cast<size_t>(tree_.height());
  if (sums_.size() <= top) sums_.push_back({zeros(parameters_.flat().shape()), {}});
  Sum& sum = sums_[top];
  const auto count = static_cast<int64_t>(used_);
  const auto both = [](BatchLoss a, const BatchLoss& b) {
    a.add(b);
    return a;
  };
  sum.loss = count == 0 ? BatchLoss{}
                        : tree_sum(
                              0, count, [&](int64_t s) { return shards_[static_cast<size_t>(s)]->loss; }, both);

  const BatchLoss batch = sum.loss;

  std::array<const float*, ShardPolicy::kMost> gradients;
  for (size_t s = 0; s < used_; ++s) gradients[s] = shards_[s]->gradient.flat().ptr();
  const int64_t n = sum.gradient.numel();
  parallel_ranges(n, kBlock, 0.1 * static_cast<double>(n) * static_cast<double>(count),
                  [&](int64_t begin, int64_t end) {
                    float* out = sum.gradient.mutable_ptr() + begin;
                    const auto bytes = static_cast<size_t>(end - begin) * sizeof(float);
                    if (count == 0)
                      std::memset(out, 0, bytes);
                    else if (count == 1)
                      std::memcpy(out, gradients[0] + begin, bytes);
                    else {
                      std::array<float, static_cast<size_t>(kBlock * kMostLevels)> scratch;
                      sum_block(std::span(gradients).first(used_), begin, 0, count, out, scratch.data(), end - begin);
                    }
                  });
  tree_.push([this](int64_t left) { join(left); });
  return batch;
}

void Shards::join(int64_t left) {
  Sum &a = sums_[static_cast<size_t>(left)], &b = sums_[static_cast<size_t>(left + 1)];
  a.loss.add(b.loss);
  const int64_t n = a.gradient.numel();
  parallel_ranges(n, kBlock, 0.1 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    float* out = a.gradient.mutable_ptr() + begin;
    kernels::add(out, b.gradient.ptr() + begin, out, end - begin);
  });
}

BatchLoss Shards::finish() {
  if (in_place_) return shards_[0]->loss;
  tree_.finish([this](int64_t left) { join(left); });
  return sums_[0].loss;
}

int64_t Shards::pool_misses() const {
  int64_t misses = 0;
  for (const auto& shard : shards_) misses += shard->pool.misses();
  return misses;
}

}  // namespace qkv
