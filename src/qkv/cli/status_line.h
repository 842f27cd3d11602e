// A line on a terminal that is redrawn during long work.
#pragma once

#include <chrono>
#include <string>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// "[#####-----]"; `share` is from 0 to 1.
std::string bar(double share, int width);

/// On standard error, and only if progress is shown as a bar. The destructor clears the line.
class StatusLine {
 public:
  explicit StatusLine(const Global& global) : on_(global.log_format == LogFormat::bar) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  /// "[####------]  42 %  0:07 left  training ...". The time is estimated from that since the last clear(). Drawn at
  /// most
  /// ten times per second.
  void share(const std::string& what, double done, Language language);
  /// Any text, cut to the width of the terminal.
  void show(const std::string& text);
  /// Clears the line, before something else is printed.
  void clear();
  bool on() const { return on_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool on_, drawn_ = false, started_ = false;
  Clock::time_point begin_, last_;
};

}  // namespace qkv::cli
