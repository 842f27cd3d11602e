// Draws the share of work done as a bar.
#include "qkv/cli/share_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/terminal.h"
#include "qkv/plot/text.h"

namespace qkv::cli {

void ShareBar::draw(double share, const std::string& what, const std::string& note) {
  what_ = what;
  note_ = note;
  const auto now = Clock::now();
  if (!shown_ || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  write(share);
}

void ShareBar::finish() {
  if (!drawn_) return;
  write(1);
  fmt::print(stderr, "\n");
  drawn_ = false;
}

void ShareBar::write(double share) {
  const int columns = terminal_columns(STDERR_FILENO),
            taken = plotting::display_width(what_) + plotting::display_width(note_) + 6;
  const int width = std::clamp(columns - taken, 0, 40), done = static_cast<int>(width * std::clamp(share, 0.0, 1.0));
  const std::string bar = width < 4 ? ""
                                    : fmt::format("[{}{}]", std::string(static_cast<size_t>(done), '#'),
                                                  std::string(static_cast<size_t>(width - done), '-'));
  fmt::print(stderr, "\r{} {} {}\x1b[K", what_, bar, note_);
  std::fflush(stderr);
}

}  // namespace qkv::cli
