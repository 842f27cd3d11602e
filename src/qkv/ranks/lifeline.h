// A plain connection from every rank to rank 0, beside MPI: MPI itself cannot say that a process died, and may block
// when one does. A connection that closes is a rank that died; one that stays silent is a rank that hangs or has lost
// its network.
#pragma once

#include <functional>
#include <memory>

namespace qkv {

class Ranks;

class Lifeline {
 public:
  /// A collective call. `lost(rank, died)` is called once, on a thread of its own, when a rank is lost; `died` is false
  /// if it just stopped answering. `quiet()` is called when rank 0 has already reported it.
  struct Events {
    std::function<void(int rank, bool died)> lost;
    std::function<void()> quiet;
  };
  Lifeline(Ranks& ranks, double timeout, Events events);
  /// All ranks have agreed to end.
  ~Lifeline();
  /// Tells the others that the job is lost and has been reported.
  void end_job();
  /// Tells the others that this rank is about to end on its own account.
  void leave();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qkv
