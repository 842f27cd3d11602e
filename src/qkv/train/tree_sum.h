// The order in which shards are summed: a binary tree over their indices. A process that has an aligned block of shards
// can sum it on its own, and the sums of blocks are summed by the same tree; so one process and many get the same bits.
#pragma once

#include <bit>
#include <cstdint>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// Where the tree over [begin, end) is split: after the largest power of two below the number of leaves. Blocks of 2^k
/// leaves that begin at a multiple of 2^k are therefore nodes for any number of leaves.
constexpr int64_t tree_split(int64_t begin, int64_t end) {
  return begin + static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(end - begin - 1)));
}

/// The sum over the leaves [begin, end), at least one: add(left, right) joins two nodes.
template <class Leaf, class Add>
auto tree_sum(int64_t begin, int64_t end, const Leaf& leaf, const Add& add) -> decltype(leaf(begin)) {
  if (end - begin == 1) return leaf(begin);
  const int64_t middle = tree_split(begin, end);
  return add(tree_sum(begin, middle, leaf, add), tree_sum(middle, end, leaf, add));
}

/// The same tree for leaves that arrive one after another, with their number not known in advance: says which nodes to
/// join. Nodes that wait for their other half are on a stack, at 0, 1, ...; join(i) must join nodes i and i + 1 into
/// node i.
class TreeStack {
 public:
  /// The index of the next leaf on the stack.
  int64_t height() const { return height_; }
  /// The leaf has been put there.
  template <class Join>
  void push(const Join& join) {
    ++leaves_;
    ++height_;
    for (int64_t n = leaves_; n % 2 == 0; n /= 2) join_top(join);
  }
  /// There are no more leaves: one node remains, at 0, and the next leaf begins another tree.
  template <class Join>
  void finish(const Join& join) {
    while (height_ > 1) join_top(join);
    leaves_ = 0;
    height_ = 0;
  }

 private:
  template <class Join>
  void join_top(const Join& join) {
    --height_;
    join(height_ - 1);
  }
  int64_t leaves_ = 0, height_ = 0;
};

}  // namespace qkv
