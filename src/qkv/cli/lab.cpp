// qkv lab: lists the labs, or runs some and writes their figures.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "qkv/cli/named_lab.h"
#include "qkv/cli/status_line.h"
#include "qkv/cli/terminal.h"
#include "qkv/core/counts.h"
#include "qkv/io/atomic_file.h"
#include "qkv/labs/render.h"
#include "qkv/plot/text.h"

namespace qkv::cli {
namespace {

class LabCommand : public Command {
 public:
  std::string name() const override { return "lab"; }
  Text summary() const override {
    return tr("a section of the chapter as an experiment, with figures and checked claims");
  }
  std::string example() const override { return "qkv lab 10.2\n  qkv lab scoring --out lab --format md"; }

  void bind(Options& options) override {
    options.positionals("NAME", tr("name, section or exercise of a lab, or all; without it the labs are listed"),
                        names_);
    options.option("-o,--out DIR",
                   tr("folder for the figures, each as .svg and .png (default: out/NAME); for several labs, DIR/NAME"),
                   out_);
    options.option("--format FORMAT", tr("text on the screen, or a Markdown note NAME.md next to the figures"), format_,
                   {"text", "md"});
    options.flag("--list", tr("list every exercise: section, number, kind, time and title"), list_);
    options.flag("--no-figures", tr("on a terminal: name the figures instead of drawing them"), no_figures_);
    options.option(
        "--data FILE",
        tr("labs 10.4 and 10.7: run the book's full experiment on its fra.txt instead of the built-in corpus"), data_);
  }

  std::vector<std::pair<std::string, Text>> topics() const override {
    std::vector<std::pair<std::string, Text>> out;
    for (const labs::Lab& lab : labs::all_labs())
      out.emplace_back(fmt::format("{:<5} {}", lab.section, lab.name), lab.title);
    return out;
  }

  int run(const Global& global) override {
    if (list_ && !names_.empty()) throw UsageError(tr("--list takes no names"), verbatim("qkv lab --list"));
    if (list_) return list_exercises(global.language);
    if (names_.empty()) return list(global.language);
    const auto wanted = named_labs(names_, global);  // all of them, before the first one runs
    check_lab_data(data_, wanted);
    std::signal(SIGPIPE, SIG_IGN);  // qkv lab 10.2 | head: the reader is gone, but the figures are still wanted
    int64_t failed = 0;
    for (const labs::Lab* lab : wanted) failed += run_one(*lab, wanted.size() > 1, global);
    return failed ? 1 : 0;
  }

 private:
  static int list(Language language) {
    size_t widest = 0;
    for (const labs::Lab& lab : labs::all_labs())
      widest = std::max<size_t>(widest, plotting::display_width(lab.title.in(language)));
    for (const labs::Lab& lab : labs::all_labs()) {
      const std::string& title = lab.title.in(language);
      const std::string took = tr("{seconds:3} s", "seconds"_a = lab.seconds).in(language);
      fmt::print("{:<6} {:<18} {}{}  {}\n", lab.section, lab.name, title,
                 std::string(widest - plotting::display_width(title), ' '), took);
    }
    return 0;
  }

  static int list_exercises(Language language) {
    size_t numbers = 0, kinds = 0;
    const auto joined = [](const labs::Exercise& exercise) {
      std::string out;
      for (const std::string& number : exercise.numbers) out += (out.empty() ? "" : ", ") + number;
      return out;
    };
    const auto kind = [&](const labs::Exercise& exercise) { return labs::kind_name(exercise.kind).in(language); };
    for (const labs::Exercise& exercise : labs::all_exercises()) {
      numbers = std::max(numbers, joined(exercise).size());
      kinds = std::max<size_t>(kinds, plotting::display_width(kind(exercise)));
    }
    for (const labs::Exercise& exercise : labs::all_exercises()) {
      const std::string took = tr("{seconds:3} s", "seconds"_a = exercise.seconds).in(language);
      fmt::print("{:<6} {:<{}} {}{} {} {}\n", labs::find_lab(exercise.lab)->section, joined(exercise), numbers,
                 kind(exercise), std::string(kinds - plotting::display_width(kind(exercise)), ' '), took,
                 exercise.title(language));
    }
    return 0;
  }

  // To standard output, or nowhere once its reader is gone.
  static void show(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return;
    if (errno == EPIPE) (void)!std::freopen("/dev/null", "w", stdout);
  }

  labs::PlainStyle style(const Global& global, const std::string& folder) const {
    if (!::isatty(STDOUT_FILENO)) return {.folder = out_.empty() ? "" : folder};
    return {.columns = terminal_columns(STDOUT_FILENO),
            .colour = global.color,
            .figures = !no_figures_,
            .folder = out_.empty() ? "" : folder};
  }

  int64_t run_one(const labs::Lab& lab, bool several, const Global& global) const {
    const std::string folder = out_.empty() ? "out/" + lab.name : several ? out_ + "/" + lab.name : out_;
    make_folder(folder);  // before the work, so that a bad path fails at once
    const bool to_screen = format_ == "text" && !global.quiet;
    const labs::PlainStyle how = style(global, folder);
    StatusLine status(global);
    int64_t files = 0;
    if (to_screen) show(labs::plain_title(lab, global.language, how));
    const auto block_done = [&](const labs::Block& block) {
      if (const auto* picture = std::get_if<labs::Picture>(&block))
        files += labs::save_figure(*picture, folder, global.language);
      if (const auto* sketch = std::get_if<labs::Sketch>(&block))
        files += labs::save_sketch(*sketch, folder, global.language);
      if (!to_screen) return;
      status.clear();
      show(labs::plain(block, global.language, how));
    };
    const auto at_work = [&](const Text& what, double done) {
      if (done < 1)
        status.share(what.in(global.language), done, global.language);
      else
        status.clear();
    };
    const labs::LabOptions options{.seed = global.seed, .data = lab.takes_data ? data_ : ""};
    const labs::Page page = labs::run(lab, options, block_done, at_work);
    status.clear();
    if (format_ == "md") write_file(folder + "/" + lab.name + ".md", labs::markdown(lab, page, global.language));
    if (!global.quiet) {
      const Text counts =
          tr("{claims}, {failed} failed; {files} figure files in {folder}", "claims"_a = claim_count(page.claims()),
             "failed"_a = page.failed_claims(), "files"_a = files, "folder"_a = folder);
      show((to_screen ? "\n" : "") + counts.in(global.language) + "\n");
      if (format_ == "md")
        show(fmt::format("{}/{}.md\n", folder, lab.name));
      else if (several)
        show("\n");
    }
    if (page.failed_claims())
      print_error(tr("lab {name}: {failed} of {claims} claims failed", "name"_a = lab.name,
                     "failed"_a = page.failed_claims(), "claims"_a = page.claims()),
                  {}, global.language);
    return page.failed_claims();
  }

  std::vector<std::string> names_;
  std::string out_, format_ = "text", data_;
  bool no_figures_ = false, list_ = false;
};

}  // namespace

std::unique_ptr<Command> lab_command() { return std::make_unique<LabCommand>(); }

}  // namespace qkv::cli
