// A bar on the terminal for work whose progress is known.
#pragma once

#include <chrono>
#include <string>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// Draws on standard error, at most ten times per second, and only if progress is shown as a bar. Short work shows no
/// bar.
class ShareBar {
 public:
  explicit ShareBar(LogFormat format) : shown_(format == LogFormat::bar) {}
  /// "what [#####-----] note", as wide as the terminal.
  void draw(double share, const std::string& what, const std::string& note);
  /// If a bar was drawn: draws it full and ends the line.
  void finish();

 private:
  void write(double share);
  using Clock = std::chrono::steady_clock;
  bool shown_, drawn_ = false;
  Clock::time_point last_ = Clock::now();
  std::string what_, note_;
};

}  // namespace qkv::cli
