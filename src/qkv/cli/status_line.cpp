// Redraws one line of standard error.
#include "qkv/cli/status_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/terminal.h"
#include "qkv/plot/text_canvas.h"
#include "qkv/train/progress.h"

namespace qkv::cli {
namespace {

void write(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

std::string bar(double share, int width) {
  const auto done = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * width);
  return "[" + std::string(done, '#') + std::string(static_cast<size_t>(width) - done, '-') + "]";
}

void StatusLine::share(const std::string& what, double done, Language language) {
  if (!on_) return;
  const auto now = Clock::now();
  if (!started_) {
    begin_ = now;
    started_ = true;
  }
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const bool known = done > 0.01 && seconds > 0.5;  // before that a guess is worse than none
  const std::string left = known ? duration(seconds / done * (1 - done)) : "-:--";
  show(fmt::format("{} {:3.0f} %  {}  {}", bar(done, 20), 100 * done, tr("{time} left", "time"_a = left).in(language),
                   what));
}

void StatusLine::show(const std::string& text) {
  const auto now = Clock::now();
  if (!on_ || (drawn_ && now - last_ < std::chrono::milliseconds(100))) return;
  last_ = now;
  drawn_ = true;
  write("\r" + plotting::cut_to(text, std::max(terminal_columns(STDERR_FILENO) - 1, 1), "…") + "\x1b[K");
}

void StatusLine::clear() {
  if (drawn_) write("\r\x1b[K");
  drawn_ = started_ = false;
}

}  // namespace qkv::cli
