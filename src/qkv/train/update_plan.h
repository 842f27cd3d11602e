// Who computes what in an update that several ranks share: neighbouring shards belong to one rank, and the nodes of the
// tree over them that a rank can sum alone are the pieces that ranks exchange.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "qkv/core/api.h"

namespace QKV_API qkv {

class UpdatePlan {
 public:
  /// The shards of every batch of the update, in order. A batch without any still has its place in the tree.
  UpdatePlan(std::vector<int64_t> shards, int ranks);
  UpdatePlan() : UpdatePlan({1}, 1) {}

  /// A node of the tree all of whose shards belong to one rank, and whose parent's do not.
  struct Piece {
    int rank;
    int64_t begin, end;  // shards, counted over all batches
  };
  /// Adds piece `from` and everything that was added to it to piece `to`.
  struct Join {
    int to, from;
  };
  struct Range {
    int64_t begin, end;
  };

  /// In the order of their shards.
  const std::vector<Piece>& pieces() const { return pieces_; }
  /// The rest of the tree: afterwards piece 0 is the sum.
  const std::vector<Join>& joins() const { return joins_; }
  /// The pieces of a rank: [begin, end) of pieces().
  Range pieces_of(int rank) const;
  /// The shards of a rank in a batch, counted from the first of that batch.
  Range shards_of(int rank, int64_t batch) const;
  int64_t leaves() const { return begins_.back(); }
  int64_t batch_begin(int64_t batch) const { return begins_[static_cast<size_t>(batch)]; }
  int64_t batches() const { return static_cast<int64_t>(begins_.size()) - 1; }
  int ranks() const { return ranks_; }
  bool operator==(const UpdatePlan& other) const { return begins_ == other.begins_ && ranks_ == other.ranks_; }

 private:
  Range leaves_of(int rank) const { return {leaves() * rank / ranks_, leaves() * (rank + 1) / ranks_}; }
  int rank_of(int64_t leaf) const { return static_cast<int>(((leaf + 1) * ranks_ - 1) / leaves()); }
  int visit(int64_t begin, int64_t end);           // leaves of one batch
  int visit_batches(int64_t begin, int64_t end);   // whole batches
  int piece_if_alone(int64_t begin, int64_t end);  // its number, or -1 if several ranks have a part

  std::vector<int64_t> begins_;  // the first leaf of every batch, and the number of all
  int ranks_;
  std::vector<Piece> pieces_;
  std::vector<Join> joins_;
};

}  // namespace qkv
