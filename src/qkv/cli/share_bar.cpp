// Draws the share of work done as a bar.
#include "qkv/cli/share_bar.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/status_line.h"
#include "qkv/cli/terminal.h"
#include "qkv/plot/text.h"
#include "qkv/plot/text_canvas.h"

namespace qkv::cli {

void draw_bar(double share, const Text& what, const Text& note, Language language) {
  const std::string head = what.in(language) + " ", tail = " " + note.in(language);
  const int columns = terminal_columns(STDERR_FILENO);
  const int width = std::clamp(columns - plotting::display_width(head) - plotting::display_width(tail) - 4, 0, 40);
  const std::string line = head + (width < 4 ? "" : bar(share, width)) + tail;
  fmt::print(stderr, "\r{}\x1b[K", plotting::cut_to(line, std::max(columns - 1, 0), "…"));
  std::fflush(stderr);
}

void ShareBar::draw(double share, const Text& what, const Text& note) {
  what_ = what;
  note_ = note;
  const auto now = Clock::now();
  if (global_.log_format != LogFormat::bar || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  drawn_ = true;
  draw_bar(share, what, note, global_.language);
}

void ShareBar::finish() {
  if (!drawn_) return;
  draw_bar(1, what_, note_, global_.language);
  fmt::print(stderr, "\n");
  drawn_ = false;
}

}  // namespace qkv::cli
