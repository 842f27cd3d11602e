// Errors, hints and help texts.
#include "qkv/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "qkv/core/limits.h"
#include "qkv/core/version.h"
#include "qkv/data/text.h"
#include "qkv/labs/wrap.h"

namespace qkv::cli {
namespace {

struct Row {
  std::string left, right, heading = {};
};

constexpr int kHelpColumns = 80;
constexpr size_t kLeftColumns = 24, kMostChoices = 30;

// Two columns; a row with a heading starts a group.
std::string table(const std::vector<Row>& rows) {
  size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.left.size());
  width = std::min(width, kLeftColumns);
  const std::string indent(width + 4, ' ');
  std::string out;
  for (const Row& row : rows) {
    if (!row.heading.empty()) out += (out.empty() ? "" : "\n") + row.heading + "\n";
    out += "  " + row.left;
    out += row.left.size() > width ? "\n" + indent : std::string(width - row.left.size() + 2, ' ');
    const auto lines = labs::wrapped_lines(row.right, kHelpColumns - static_cast<int>(indent.size()));
    for (size_t i = 0; i < lines.size(); ++i) out += (i > 0 ? indent : "") + lines[i] + "\n";
  }
  return out;
}

// Command lines, the long ones continued on a second line.
std::string example_lines(const std::string& example) {
  std::string out;
  for (std::string line : split(example, '\n')) {
    line = "  " + line.substr(line.find_first_not_of(' '));
    while (line.size() > kHelpColumns) {
      const size_t at = line.rfind(" -", kHelpColumns - 3);
      out += line.substr(0, at) + " \\\n";
      line = "     " + line.substr(at);
    }
    out += line + "\n";
  }
  return out;
}

std::string wrapped(const std::string& text) { return labs::wrapped(text, kHelpColumns, 2); }

bool is_positional(const OptionSpec& spec) {
  return spec.kind == OptionKind::positional || spec.kind == OptionKind::positionals;
}

std::string option_table(const Options& options, Language language) {
  std::vector<Row> rows;
  for (const OptionSpec& spec : options.specs()) {
    Row row{"", spec.help.in(language), spec.group.in(language)};
    for (const std::string& name : spec.names) row.left += (row.left.empty() ? "" : ", ") + name;
    const std::string choices = listed(spec.choices, "|");
    const bool few = !choices.empty() && choices.size() <= kMostChoices;
    if (few || !spec.value_name.empty()) row.left += " " + (few ? choices : spec.value_name);
    if (spec.kind == OptionKind::positionals) row.left += "...";
    if (!few && !choices.empty())
      row.right += tr("; one of {choices}", "choices"_a = listed(spec.choices)).in(language);
    const std::string& value = spec.default_text;
    if (!value.empty()) row.right += tr(" (default {value})", "value"_a = value).in(language);
    rows.push_back(std::move(row));
  }
  return table(rows);
}

std::string command_table(const Commands& commands, Language language) {
  std::vector<Row> rows;
  for (const auto& command : commands)
    rows.push_back({command->name().substr(command->name().find(' ') + 1), command->summary().in(language)});
  return table(rows);
}

}  // namespace

std::string shortened(std::string_view text) {
  const auto is_inside = [&](size_t at) {
    return at < text.size() && (text[at] & 0xC0) == 0x80;
  };  // inside a character
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t open = std::min(text.find('"', at), text.size()), begin = std::min(open + 1, text.size());
    const size_t close = std::min(text.find('"', begin), text.size());
    size_t end = close;
    if (close - begin > limits::kQuotedBytes)
      for (end = begin + limits::kQuotedBytes; is_inside(end);) --end;
    out.append(text.substr(at, end - at));
    if (end < close) out += "...";
    if (close < text.size()) out += '"';
    at = close + 1;
  }
  if (out.size() <= limits::kMessageBytes) return out;
  text = out;
  size_t head = limits::kMessageBytes * 2 / 3,
         tail = text.size() - limits::kMessageBytes / 3;  // the end says what was expected
  while (is_inside(head)) --head;
  while (is_inside(tail)) ++tail;
  return std::string(text.substr(0, head)).append(" ... ").append(text.substr(tail));
}

int terminal_columns(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

bool wants_color(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return ::isatty(descriptor) && !(no_color && *no_color) && !(term && std::string_view(term) == "dumb");
}

void print_error(const Text& message, const Text& hint, Language language) {
  std::fflush(stdout);
  const auto cut = [&](const Text& words) { return shortened(printable(words.in(language))); };
  const std::string mark = tr("qkv: error: ").in(language);
  std::string out = (wants_color(STDERR_FILENO) ? "\x1b[31m" + mark + "\x1b[0m" : mark) + cut(message) + "\n";
  if (!hint.empty()) out += tr("hint: {hint}", "hint"_a = cut(hint)).in(language) + "\n";
  std::fwrite(out.data(), 1, out.size(), stderr);
}

void Global::note(const Text& text) const {
  if (!quiet) std::fprintf(stderr, "%s\n", tr("qkv: note: {note}", "note"_a = text).in(language).c_str());
}

void Global::say(const Text& text) const {
  if (!quiet) std::printf("%s\n", text.in(language).c_str());
}

Language locale_language() {
  for (const char* name : {"LC_ALL", "LC_MESSAGES", "LANG"})
    if (const char* value = std::getenv(name); value && *value)
      return std::string_view(value).starts_with("zh") ? Language::zh : Language::en;
  return Language::en;
}

namespace {

std::string commands_help(const Commands& commands, const Text& more, Language language) {
  const Text head = tr("attention, from kernel regression to the Transformer");
  const Text usage = tr("usage: qkv COMMAND [OPTIONS]\n\ncommands:\n");
  const std::string list = command_table(commands, language);
  return text("qkv ", version(), ": ", head.in(language), "\n\n", usage.in(language), list, wrapped(more.in(language)));
}

}  // namespace

std::string short_help(const Commands& commands, Language language) {
  return commands_help(
      commands, tr("\nqkv --help shows the common options, qkv COMMAND --help explains one command.\n"), language);
}

std::string full_help(const Commands& commands, const Options& globals, Language language) {
  std::string out = commands_help(commands, tr("\nqkv COMMAND --help explains one command.\n"), language);
  out += tr("\noptions of all commands:\n").in(language) + option_table(globals, language);
  out += tr("\nexamples:\n").in(language);
  for (const auto& command : commands) out += example_lines(command->example());
  return out;
}

std::string command_help(const Command& command, const Options& own, const Options& globals, Language language) {
  std::string usage = tr("usage: qkv ").in(language) + command.name();
  usage += tr(" [OPTIONS]").in(language);
  for (const OptionSpec& spec : own.specs())
    if (is_positional(spec)) {
      const std::string name = spec.long_name() + (spec.kind == OptionKind::positionals ? "..." : "");
      usage += spec.least > 0 ? " " + name : " [" + name + "]";
    }
  const Commands subcommands = command.subcommands();
  if (!subcommands.empty())
    usage = tr("usage: qkv {command} NAME [OPTIONS]", "command"_a = command.name()).in(language);
  std::string out = wrapped("qkv " + command.name() + ": " + command.summary().in(language)) + "\n\n" + usage + "\n";
  if (!subcommands.empty())
    out += tr("\nNAME is one of these; qkv {command} NAME --help explains it:\n", "command"_a = command.name())
               .in(language) +
           command_table(subcommands, language);
  if (!own.specs().empty()) out += "\n" + option_table(own, language);
  out += tr("\noptions of all commands:\n").in(language) + option_table(globals, language);
  std::vector<Row> topics;
  for (const auto& [name, title] : command.topics()) topics.push_back({name, title.in(language)});
  if (!topics.empty()) out += tr("\nNAME is one of:\n").in(language) + table(topics);
  return out + tr("\nexample:\n").in(language) + example_lines(command.example());
}

}  // namespace qkv::cli
