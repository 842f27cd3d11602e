// Ctrl-C and SIGTERM: end the program with code 130, at once or, if the work can be saved, at the next safe point.
#pragma once

#include <atomic>

namespace qkv::cli {

inline constexpr int kInterrupted = 130;

/// From now on SIGINT or SIGTERM ends the program with code 130. A signal that the parent ignores (nohup, &) stays
/// ignored.
void catch_interrupts();

/// While one exists, the first interrupt only sets interrupted(), so that a run can save itself; the second ends the
/// program.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;
};
const std::atomic<bool>& interrupted();

}  // namespace qkv::cli
