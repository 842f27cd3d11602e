// A bar on the terminal for work of which the share done is known.
#pragma once

#include <chrono>
#include <string>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// Draws on standard error, ten times a second at most, and only where progress is shown as a bar. Work of a moment
/// shows none.
class ShareBar {
 public:
  explicit ShareBar(LogFormat format) : shown_(format == LogFormat::bar) {}
  /// "what [#####-----] note", as wide as the terminal.
  void draw(double share, const std::string& what, const std::string& note);
  /// The last one drawn, full, and the end of its line.
  void finish();

 private:
  void write(double share);
  using Clock = std::chrono::steady_clock;
  bool shown_, drawn_ = false;
  Clock::time_point last_ = Clock::now();
  std::string what_, note_;
};

}  // namespace qkv::cli
