// One line on a terminal that is drawn over while something long is under way.
#pragma once

#include <chrono>
#include <string>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// "[#####-----]", the share from 0 to 1.
std::string bar(double share, int width);

/// On standard error, and only where progress is shown as a bar. Its end leaves an empty line.
class StatusLine {
 public:
  explicit StatusLine(const Global& global) : on_(global.log_format == LogFormat::bar) {}
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  /// "[####------]  42 %  0:07 left  training ...", the time by what the share took since the last clear(); at most ten
  /// times per second.
  void share(const std::string& what, double done, Language language);
  /// A text of one's own, cut to the terminal.
  void show(const std::string& text);
  /// Removes it, before something else is printed.
  void clear();
  bool on() const { return on_; }

 private:
  using Clock = std::chrono::steady_clock;
  bool on_, drawn_ = false, started_ = false;
  Clock::time_point begin_, last_;
};

}  // namespace qkv::cli
