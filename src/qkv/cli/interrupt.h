// Ctrl-C and SIGTERM: end the program with code 130, at once or, for work that can be kept, at its next stop.
#pragma once

#include <atomic>

namespace qkv::cli {

inline constexpr int kInterrupted = 130;

/// From now on SIGINT or SIGTERM ends the program with code 130. A parent's wish to ignore interrupts (nohup, &) is
/// kept.
void catch_interrupts();

/// While one is alive the first interrupt only sets interrupted(), so that a run can save itself; the second ends the
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
