// The processes that share a job. Each is a rank with a number from 0; rank 0 owns files and screen. All ranks make the
// same collective calls in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/check.h"
#include "qkv/ranks/link.h"

namespace QKV_API qkv {

/// Another rank has failed; it has said so itself.
class RankFailed : public Error {
 public:
  RankFailed(int rank, Text message) : Error(std::move(message)), rank_(rank) {}
  int rank() const { return rank_; }

 private:
  int rank_;
};

struct RankOptions {
  double timeout = 120;  // seconds without a message from a rank, after which the job is lost
  /// Called, on any thread, when the job is lost: must end the process. `say`: this rank is the one that reports it.
  std::function<void(const Text& message, bool say)> lost = {};
};

class Ranks {
 public:
  Ranks(std::unique_ptr<Link> link, const RankOptions& options);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const;
  int size() const;
  const std::string& host(int rank) const;
  std::string library() const;
  /// "rank 2 on laptop-b"
  Text name(int rank) const;

  /// What all ranks gave, by rank. Throws RankFailed if one has called fail() instead.
  std::vector<std::string> gather(const std::string& own);
  /// The same number of bytes on all ranks: those of rank 0.
  void broadcast(std::span<std::byte> bytes);
  std::string broadcast(const std::string& text);

  /// Tells the others that this rank cannot continue; returns whether it should report its message, which a lower rank
  /// with the same one does already. Nothing else may be called afterwards.
  bool fail(const std::string& message);

  /// What this rank is doing, for messages about a job that is lost: "step 17".
  void set_place(Text place);
  /// Whether others may be silent for any time while this rank waits for them, as when one waits for a person. Ranks
  /// that die or hang are noticed all the same.
  void set_patient(bool patient);

  // For code that moves bytes itself: messages with a function that is called when they are done, on any thread but
  // one at a time.
  using Done = std::function<void()>;
  void send(const void* data, size_t bytes, int to, int tag, Done done);
  void receive(void* data, size_t bytes, int from, int tag, Done done);
  /// Runs `work` while no other thread uses the link.
  void locked(const std::function<void()>& work);
  /// Moves messages until finished() says so. Ends the job if nothing arrives for too long.
  void wait(const std::function<bool()>& finished);
  /// While one exists, another thread moves messages as well; not any more when its destructor has returned.
  class Background {
   public:
    explicit Background(Ranks& ranks);
    ~Background();
    Background(const Background&) = delete;
    Background& operator=(const Background&) = delete;

   private:
    Ranks& ranks_;
  };

  /// Keeps what messages refer to that a failed call leaves under way.
  void keep(std::shared_ptr<void> memory);

  /// Bytes of all messages that this rank has sent and received so far.
  uint64_t bytes_sent() const;
  uint64_t bytes_received() const;

  /// Tags from here on are free for the caller.
  static constexpr int kFirstTag = 16;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Splits `items` among ranks: neighbouring ones, as equal as possible.
struct RankShare {
  int64_t begin = 0, end = 0;
  static RankShare of(int64_t items, int rank, int ranks) { return {items * rank / ranks, items * (rank + 1) / ranks}; }
};

/// compute(i), a row of `width` numbers, for every i below `items`: each rank computes its share, and all get all rows,
/// in order. Without ranks (null), everything is computed here.
std::vector<double> shared_rows(Ranks* ranks, int64_t items, int64_t width,
                                const std::function<void(int64_t i, double* row)>& compute);
/// The same for texts.
std::vector<std::string> shared_texts(
    Ranks* ranks, int64_t items, const std::function<std::vector<std::string>(int64_t begin, int64_t end)>& compute);

}  // namespace qkv
