// The sum of a gradient over ranks: in chunks, each summed by one rank in the order of the tree and sent to all others
// (reduce-scatter and all-gather). A chunk leaves as soon as it is ready, while the backward pass computes the others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/ranks/ranks.h"
#include "qkv/tensor/tape.h"
#include "qkv/train/update_plan.h"

namespace QKV_API qkv {

class GradientExchange : public GradListener {
 public:
  static constexpr int64_t kChunk = 131072;  // floats, at most

  GradientExchange(Ranks& ranks, int64_t floats);

  /// Begins a sum. `pieces` are the gradients of this rank's pieces; `result` is where the sum goes, which may be one
  /// of them. Both are changed until wait() returns.
  void begin(const UpdatePlan& plan, std::vector<float*> pieces, float* result);
  /// Floats [begin, end) of all pieces of this rank have their values. On any thread; each float once.
  void ready(int64_t begin, int64_t end) override;
  /// All of them.
  void all_ready();
  /// Returns when `result` has the sum and nothing is under way.
  void wait();

  /// Floats that this rank sends for a plan: what theory says of bytes_sent().
  int64_t floats_sent(const UpdatePlan& plan) const;
  int64_t chunk() const { return chunk_; }

 private:
  struct Chunk {
    int64_t unready = 0;  // floats
    int arriving = 0;     // messages that its owner waits for
    int leaving = 0;      // messages that have not left this rank
    bool done = false;
  };
  int64_t begin_of(int64_t chunk) const { return chunk * chunk_; }
  int64_t length_of(int64_t chunk) const;
  int owner_of(int64_t chunk) const { return static_cast<int>(chunk % ranks_.size()); }
  void post_arriving(int64_t chunk);
  void send_to_owner(int64_t chunk);
  void receive_sum(int64_t chunk);
  void sum_if_complete(int64_t chunk);
  void finish(int64_t chunk);

  Ranks& ranks_;
  int64_t floats_, chunk_;
  UpdatePlan plan_;
  std::vector<float*> own_;
  float* result_ = nullptr;
  std::vector<Chunk> chunks_;
  int64_t left_ = 0;            // chunks that are not done
  std::vector<float> arrived_;  // pieces of other ranks, of the chunks that are summed here
  int64_t arrived_at_ = 0;
  std::vector<std::vector<float*>> operands_;  // of every chunk summed here, by piece
};

}  // namespace qkv
