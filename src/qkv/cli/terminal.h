// Output other than results: errors, hints and help.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/cli/command.h"

namespace qkv::cli {

/// Cut to a readable length: long values in quotes become "x...", and a long text gets " ... " in its middle.
std::string shortened(std::string_view text);

/// True when the stream is a terminal and neither NO_COLOR nor TERM=dumb is set.
bool wants_color(int descriptor);

/// Columns of the terminal; 100 if the descriptor is not a terminal.
int terminal_columns(int descriptor);

/// "qkv: error: ..." and, if there is a hint, "hint: ...", on standard error.
void print_error(const Text& message, const Text& hint, Language language);

/// zh if LC_ALL, LC_MESSAGES or LANG (the first that is set) begins with "zh".
Language locale_language();

/// The list of commands; the same with the global options and an example of each command; the help of one command.
std::string short_help(const Commands& commands, Language language);
std::string full_help(const Commands& commands, const Options& globals, Language language);
std::string command_help(const Command& command, const Options& own, const Options& globals, Language language);

}  // namespace qkv::cli
