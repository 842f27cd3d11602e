// A bar on the terminal for work whose progress is known.
#pragma once

#include <chrono>
#include <string>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// Redraws the last line of standard error: "what [#####-----] note", as wide as the terminal.
void draw_bar(double share, const Text& what, const Text& note, Language language);

/// Draws on standard error, at most ten times per second, and only if progress is shown as a bar. Short work shows no
/// bar.
class ShareBar {
 public:
  explicit ShareBar(const Global& global) : global_(global) {}
  void draw(double share, const Text& what, const Text& note);
  /// If a bar was drawn: draws it full and ends the line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  const Global& global_;
  bool drawn_ = false;
  Clock::time_point last_ = Clock::now();
  Text what_, note_;
};

}  // namespace qkv::cli
