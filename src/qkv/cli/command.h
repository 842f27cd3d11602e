// The interface of a command. A command is one file that includes this header and no option library.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "qkv/cli/options.h"
#include "qkv/core/check.h"

namespace qkv::cli {

enum class LogFormat { bar, plain, json, none };

/// The options that every command has, after they were checked and applied (threads, kernel target).
struct Global {
  int threads = 1;
  bool threads_given = false;
  uint64_t seed = 0;
  bool seed_given = false;
  bool quiet = false;
  LogFormat log_format = LogFormat::plain;  // bar when standard error is a terminal; none when quiet
  Language language = Language::en;
  bool color = false;  // standard output is a terminal that wants colours

  /// Unless quiet, note() prints "qkv: note: ..." on standard error, and say() a line on standard output.
  void note(const Text& text) const;
  void say(const Text& text) const;
};

/// The command line itself is wrong: exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

class Command;
using Commands = std::vector<std::unique_ptr<Command>>;

class Command {
 public:
  virtual ~Command() = default;
  virtual std::string name() const = 0;
  virtual Text summary() const = 0;
  /// A command line that works, without the leading "$".
  virtual std::string example() const = 0;
  /// What NAME may be, for the help: a lab and its title.
  virtual std::vector<std::pair<std::string, Text>> topics() const { return {}; }
  /// Commands of its own, such as "data en-fr": then this command is only their common name.
  virtual Commands subcommands() const { return {}; }
  /// Declares the options; their values are fields of the command.
  virtual void bind(Options& options) = 0;
  /// Runs the command and returns the exit code. Errors are thrown.
  virtual int run(const Global& global) = 0;
};

/// Every command, in the order of the help text (commands.cpp).
Commands all_commands();

/// "CLI11 2.1.2" (main.cpp is the one file that knows it).
std::string option_library();

}  // namespace qkv::cli
