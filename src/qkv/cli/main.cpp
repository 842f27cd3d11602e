// The program: finds the command, reads its options with CLI11 (here and nowhere else) and turns errors into exit
// codes.
#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "qkv/cli/command.h"
#include "qkv/cli/interrupt.h"
#include "qkv/cli/rank_job.h"
#include "qkv/cli/streams.h"
#include "qkv/cli/terminal.h"
#include "qkv/core/catalogue.h"
#include "qkv/core/chinese.h"
#include "qkv/core/parallel.h"
#include "qkv/core/suggest.h"
#include "qkv/core/system_reason.h"
#include "qkv/core/version.h"
#include "qkv/data/images.h"
#include "qkv/kernels/target.h"

namespace qkv::cli {

std::string option_library() { return "CLI11 " CLI11_VERSION; }

namespace {

using Arguments = std::vector<std::string>;

// The values of the options that every command has.
struct GlobalValues {
  std::optional<int64_t> threads;
  std::optional<int64_t> seed;
  bool quiet = false, version = false, help = false;
  std::optional<std::string> log_format, language, kernel_target;

  void bind(Options& options) {
    options.option("--threads N", tr("number of threads (default: the CPUs of this machine)"), threads, 1, 1024);
    options.option(
        "--seed N",
        tr("seed of all random numbers (default 0; train: from the configuration; data en-fr: 1; score: 12345)"), seed,
        0);
    options.flag("-q,--quiet", tr("no progress, only results"), quiet);
    options.option("--log-format F", tr("how to show progress (default: bar on a terminal, else plain)"), log_format,
                   {"bar", "plain", "json", "none"});
    options.option("--lang L", tr("language of help, reports and hints (default: from the locale)"), language,
                   {"en", "zh"});
    options.option("--kernel-target NAME", tr("use the kernels of this instruction set (qkv info lists them)"),
                   kernel_target);
    options.flag("--version", tr("print the version"), version);
    options.flag("-h,--help", tr("print this text"), help);
  }
};

// Other common names of the two languages.
std::string language_word(const std::string& word) {
  for (const char* name : {"cn", "zh-cn", "zh_cn", "zh-CN", "zh_CN", "zh-hans", "zh-Hans", "chinese", "中文"})
    if (word == name) return "zh";
  for (const char* name : {"en-us", "en-US", "en_US", "en-gb", "en-GB", "en_GB", "english"})
    if (word == name) return "en";
  return word;
}

// "--lang cn" as "--lang zh".
Arguments with_language_words(Arguments words) {
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i].starts_with("--lang="))
      words[i] = "--lang=" + language_word(words[i].substr(7));
    else if (i > 0 && words[i - 1] == "--lang")
      words[i] = language_word(words[i]);
  }
  return words;
}

// The language is needed for help and errors, so it is found before the command line is parsed.
Language language_of(const Arguments& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool apart = arguments[i] == "--lang" && i + 1 < arguments.size();
    const std::string value = apart                                 ? arguments[i + 1]
                              : arguments[i].starts_with("--lang=") ? arguments[i].substr(7)
                                                                    : "";
    if (value == "zh") return Language::zh;
    if (value == "en") return Language::en;
  }
  return locale_language();
}

// Index of the first word that is neither an option nor its value, or the number of words.
size_t command_index(const Arguments& arguments, const Options& globals) {
  size_t i = 0;
  for (; i < arguments.size() && arguments[i].starts_with('-'); ++i)
    for (const OptionSpec& spec : globals.specs())
      if (spec.kind == OptionKind::value && arguments[i] == spec.long_name()) {
        ++i;
        break;
      }
  return std::min(i, arguments.size());
}

using Specs = std::vector<const OptionSpec*>;

// Fails if one of the words is an undeclared option.
void refuse_unknown_options(const Arguments& words, const Specs& specs) {
  Arguments known, long_names;
  for (const OptionSpec* spec : specs)
    for (const std::string& name : spec->names) {
      known.push_back(name);
      if (name.starts_with("--")) long_names.push_back(name);
    }
  for (const std::string& word : words) {
    if (word == "--") return;  // only arguments follow
    const std::string name = word.substr(0, word.find('='));
    if (word.size() < 2 || word[0] != '-' || std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UsageError(tr("unknown option \"{name}\"", "name"_a = name),
                     name.starts_with("--") ? did_you_mean(name, long_names) : Text());
  }
}

// "--sample" without a number after it becomes "--sample=1".
Arguments with_bare_values(Arguments words, const Specs& specs) {
  const auto is_number = [](const std::string& word) {
    const size_t sign = word.starts_with('-') ? 1 : 0;
    return word.size() > sign && word[sign] >= '0' && word[sign] <= '9';
  };
  for (size_t i = 0; i < words.size() && words[i] != "--"; ++i)
    for (const OptionSpec* spec : specs)
      if (!spec->bare.empty() && words[i] == spec->long_name()) {
        const bool has_value = i + 1 < words.size() && is_number(words[i + 1]);
        words[i] += "=" + (has_value ? words[i + 1] : spec->bare);
        if (has_value) words.erase(words.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      }
  return words;
}

// Declares every option to CLI11 as plain text, parses, and passes the texts to the options' own conversions.
// Returns the name of a missing required argument, or "": --help works without it.
std::string parse(const Arguments& given_words, const Specs& specs) {
  const Arguments arguments = with_bare_values(given_words, specs);
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::vector<CLI::Option*> declared;
  std::vector<Arguments> texts(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const OptionSpec& spec = *specs[i];
    std::string names;
    for (const std::string& name : spec.names) names += (names.empty() ? "" : ",") + name;
    if (spec.kind == OptionKind::flag) {
      declared.push_back(app.add_flag(names));
      continue;
    }
    CLI::Option* option = app.add_option(names, texts[i]);
    if (spec.kind != OptionKind::positionals)
      option->expected(1)->allow_extra_args(false);  // else --seed 1 FILE takes both
    if (spec.kind == OptionKind::value || spec.kind == OptionKind::repeated)
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    declared.push_back(option);
  }
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes them in reverse order
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();  // "--threads: 1 required TEXT missing"
    throw UsageError(tr("{option} needs a value", "option"_a = message.substr(0, message.find(':'))));
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()));
  }
  Arguments left = app.remaining();
  refuse_unknown_options(left, specs);
  std::erase(left, "--");
  if (!left.empty()) throw UsageError(tr("unexpected argument \"{left}\"", "left"_a = left.front()));
  std::string missing;
  for (size_t i = 0; i < specs.size(); ++i) {
    const OptionSpec& spec = *specs[i];
    const Arguments given = declared[i]->results();
    if (spec.kind == OptionKind::flag)
      for (const std::string& value : given)
        if (value != "true")
          throw UsageError(
              tr("{long_name} takes no value, got \"{value}\"", "long_name"_a = spec.long_name(), "value"_a = value));
    if (spec.kind == OptionKind::value && given.size() > 1)
      throw UsageError(tr("{long_name} is given twice", "long_name"_a = spec.long_name()));
    if (!given.empty()) spec.set(given);
    if (given.size() < spec.least && missing.empty()) missing = spec.long_name();
  }
  return missing;
}

Global applied(const GlobalValues& values, Language language) {
  Global global;
  if (values.threads) set_threads(static_cast<int>(*values.threads));
  global.threads = threads();
  global.threads_given = values.threads.has_value();
  if (values.kernel_target) {
    try {
      kernels::force_target(*values.kernel_target);
    } catch (const Error& error) {
      throw UsageError(tr("--kernel-target: {problem}", "problem"_a = error.message()));
    }
  }
  global.seed = static_cast<uint64_t>(values.seed.value_or(0));
  global.seed_given = values.seed.has_value();
  global.quiet = values.quiet;
  global.log_format = values.quiet ? LogFormat::none : ::isatty(STDERR_FILENO) ? LogFormat::bar : LogFormat::plain;
  if (values.log_format) {
    const std::string& f = *values.log_format;
    global.log_format = f == "bar"     ? LogFormat::bar
                        : f == "plain" ? LogFormat::plain
                        : f == "json"  ? LogFormat::json
                                       : LogFormat::none;
  }
  global.language = language;
  global.color = wants_color(STDOUT_FILENO);
  return global;
}

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// An option of a sibling is refused by the names of its owners.
void refuse_foreign_options(const Arguments& words, const Specs& specs, const Commands& siblings,
                            const Command& chosen) {
  const auto knows = [](const auto& all, const std::string& name) {
    return std::ranges::any_of(all, [&](const OptionSpec& spec) { return std::ranges::count(spec.names, name) > 0; });
  };
  const auto last_word = [](const std::string& name) { return name.substr(name.find(' ') + 1); };
  for (const std::string& word : words) {
    const std::string option = word.substr(0, word.find('='));
    if (!option.starts_with("--") ||
        std::ranges::any_of(specs, [&](const OptionSpec* spec) { return std::ranges::count(spec->names, option) > 0; }))
      continue;
    Arguments owners;
    for (const auto& sibling : siblings) {
      Options own;
      sibling->bind(own);
      if (knows(own.specs(), option)) owners.push_back(last_word(sibling->name()));
    }
    if (!owners.empty())
      throw UsageError(tr("{option} belongs to {owners}, not to \"{name}\"", "option"_a = option,
                          "owners"_a = listed(owners), "name"_a = last_word(chosen.name())));
  }
}

// The subcommand that the next word names; the word is removed. Nothing, if there is no such word.
Command* subcommand(const Command& command, const Commands& all, Arguments& arguments, const Options& globals) {
  const size_t at = command_index(arguments, globals);
  if (at == arguments.size()) return nullptr;
  const std::string name = arguments[at];
  Arguments known;
  for (const auto& one : all) {
    known.push_back(one->name().substr(command.name().size() + 1));
    if (known.back() != name) continue;
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at));
    return one.get();
  }
  throw UsageError(
      tr("unknown data set \"{name}\": expected one of {known}", "name"_a = name, "known"_a = listed(known)),
      did_you_mean(name, known));
}

int run_command(Command& command, Arguments arguments, Specs specs, const Options& globals, GlobalValues& values,
                Language language) {
  const Commands subcommands = command.subcommands();
  Command* const chosen = subcommands.empty() ? &command : subcommand(command, subcommands, arguments, globals);
  Options own;
  if (chosen) chosen->bind(own);
  for (const OptionSpec& spec : own.specs()) specs.push_back(&spec);
  if (chosen && chosen != &command) refuse_foreign_options(arguments, specs, subcommands, *chosen);
  const std::string missing = parse(arguments, specs);
  const Command& explained = chosen ? *chosen : command;
  if (values.help || values.version) {
    print(values.help ? command_help(explained, own, globals, language) : text("qkv ", version(), "\n"));
    return 0;
  }
  if (!chosen || !missing.empty())
    throw UsageError(tr("the argument {missing} is missing", "missing"_a = chosen ? missing : "NAME"),
                     tr("qkv {name} --help explains it", "name"_a = explained.name()));
  return chosen->run(applied(values, language));
}

int run(Arguments arguments, Language language) {
  const Commands commands = all_commands();
  GlobalValues values;
  Options globals;
  values.bind(globals);
  Specs specs;
  for (const OptionSpec& spec : globals.specs()) specs.push_back(&spec);

  size_t at = command_index(arguments, globals);
  if (at < arguments.size() && arguments[at] == "help") {  // qkv help info = qkv info --help
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at));
    arguments.push_back("--help");
    at = command_index(arguments, globals);
  }
  if (at == arguments.size()) {
    parse(arguments, specs);
    if (values.version)
      print(text("qkv ", version(), "\n"));
    else
      print(values.help ? full_help(commands, globals, language) : short_help(commands, language));
    return 0;
  }

  const std::string name = arguments[at];
  const auto command = std::find_if(commands.begin(), commands.end(), [&](const auto& c) { return c->name() == name; });
  if (command == commands.end()) {
    refuse_unknown_options({arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(at)}, specs);
    Arguments names;
    for (const auto& c : commands) names.push_back(c->name());
    const Text near = did_you_mean(name, names);
    throw UsageError(tr("unknown command \"{name}\"", "name"_a = name),
                     near.empty() ? tr("qkv --help lists the commands") : near);
  }
  arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at));
  return run_command(**command, arguments, specs, globals, values, language);
}

// Data of a Debian package is missing: the launcher, if that is how the program was started, installs it and starts the
// program again. Returns if it cannot.
void ask_launcher(char** argv) {
  const char* launcher = std::getenv("QKV_LAUNCHER");
  if (!launcher || std::getenv("QKV_NEEDS_DATA")) return;  // it has tried already
  ::setenv("QKV_NEEDS_DATA", "1", 1);
  std::vector<char*> words(1, const_cast<char*>(launcher));
  for (char** word = argv + 1; argv[0] && *word; ++word) words.push_back(*word);
  words.push_back(nullptr);
  ::execv(launcher, words.data());
}

int guarded(const Arguments& arguments, Language language, char** argv) {
  try {
    return run(arguments, language);
  } catch (const NotInstalled& error) {
    ask_launcher(argv);
    print_error(error.message(), error.hint(), language);
  } catch (const UsageError& error) {
    if (!left_to_rank_0()) print_error(error.message(), error.hint(), language);
    return 2;
  } catch (const Error& error) {
    print_error(error.message(), error.hint(), language);
  } catch (const std::bad_alloc&) {
    print_error(tr("out of memory"), {}, language);
  } catch (const std::exception& error) {
    if (!std::ferror(stdout)) print_error(std::string(error.what()), {}, language);  // else main() reports it
  }
  return 1;
}

}  // namespace
}  // namespace qkv::cli

int main(int argc, char** argv) {
  qkv::cli::secure_streams();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit becomes an error that names the file
  std::signal(SIGPIPE, SIG_DFL);  // qkv info | head ends quietly, even if the parent ignores SIGPIPE
  qkv::cli::catch_interrupts();
  const auto arguments = qkv::cli::with_language_words({argv + std::min(argc, 1), argv + argc});
  const qkv::Language language = qkv::cli::language_of(arguments);
  qkv::add_catalogue(qkv::Language::zh, std::string(qkv::chinese_catalogue()));
  const int code = qkv::cli::guarded(arguments, language, argv);
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    using namespace qkv;
    const int reason = errno;  // 0 if an earlier write failed
    cli::print_error(reason ? tr("cannot write to standard output: {reason}", "reason"_a = system_reason(reason))
                            : tr("cannot write to standard output"),
                     {}, language);
    return 1;
  }
  return code;
}
