// A figure as lines of text for a terminal.
#pragma once

#include <string>

#include "qkv/core/api.h"
#include "qkv/plot/figure.h"

namespace QKV_API qkv {

/// truecolor: 24-bit colours, half blocks and Braille dots. ascii: no escape codes, and only ASCII apart from the
/// figure's own texts.
enum class TerminalColour { truecolor, ascii };

struct TerminalOptions {
  int columns = 80;
  TerminalColour colour = TerminalColour::truecolor;
  Language language = Language::en;
};

/// The figure in lines of equal display width (at most options.columns, wide characters count as two), each ending in a
/// newline. Panels that do not fit beside each other go below each other; large heat maps are averaged down.
std::string terminal(const Figure& figure, const TerminalOptions& options = {});

}  // namespace qkv
