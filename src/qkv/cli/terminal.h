// What the program says outside of results: errors, hints and help.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// With values in quotes and the whole cut to what one reads: "x..." for a long value, " ... " in the middle of a long
/// text.
std::string shortened(std::string_view text);

/// True when the stream is a terminal and neither NO_COLOR nor TERM=dumb is set.
bool wants_color(int descriptor);

/// Columns of the terminal behind the descriptor, or of a usual one when it is none.
int terminal_columns(int descriptor);

/// "qkv: error: ..." and, when there is one, "hint: ...", on standard error.
void print_error(std::string_view message, std::string_view hint = "");

/// zh when LC_ALL, LC_MESSAGES or LANG (the first that is set) begins with "zh".
Language locale_language();

using Commands = std::vector<std::unique_ptr<Command>>;
/// The commands in a few lines; all of it, with the options that work everywhere and an example for each command; one
/// command.
std::string short_help(const Commands& commands, Language language);
std::string full_help(const Commands& commands, const Options& globals, Language language);
std::string command_help(const Command& command, const Options& own, const Options& globals, Language language);

}  // namespace qkv::cli
