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
#include "qkv/io/atomic_file.h"
#include "qkv/labs/render.h"
#include "qkv/plot/text.h"

namespace qkv::cli {
namespace {

class LabCommand : public Command {
 public:
  std::string name() const override { return "lab"; }
  Text summary() const override {
    return {"a section of the chapter as an experiment, with figures and checked claims",
            "把一节内容作为实验运行：图、数字和经过检验的论断"};
  }
  std::string example() const override { return "qkv lab 10.2\n  qkv lab scoring --out lab --format md"; }

  void bind(Options& options) override {
    options.positionals("NAME",
                        {"name, section or exercise of a lab, or all; without one the labs are listed",
                         "实验的名称、节号或练习号，或 all；不写则列出全部实验"},
                        names_);
    options.option("-o,--out DIR",
                   {"folder for the figures, each as .svg and .png (default: out/NAME); of several labs DIR/NAME",
                    "图的输出文件夹，每幅图存为 .svg 和 .png（默认 out/NAME）；多个实验则为 DIR/NAME"},
                   out_);
    options.option("--format FORMAT",
                   {"text on the screen, or a Markdown note NAME.md beside the figures",
                    "屏幕文本，或在图旁边写 Markdown 笔记 NAME.md"},
                   format_, {"text", "md"});
    options.flag("--no-figures", {"on a terminal: name the figures, do not draw them", "在终端上只写图名，不画图"},
                 no_figures_);
    options.option(
        "--data FILE",
        {"labs 10.4 and 10.7: the book's fra.txt, and its experiment at full size, instead of the built-in corpus",
         "10.4 与 10.7 节：用书中的 fra.txt 做书中的完整实验，而不用内置语料"},
        data_);
  }

  int run(const Global& global) override {
    if (names_.empty()) return list(global.language);
    const auto wanted = named_labs(names_, global);  // all of them, before the first is run
    check_lab_data(data_, wanted);
    std::signal(SIGPIPE, SIG_IGN);  // qkv lab 10.2 | head: nobody reads on, but the figures are still wanted
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
      const std::string took =
          Text{fmt::format("{:3} s", lab.seconds), fmt::format("{:3} 秒", lab.seconds)}.in(language);
      fmt::print("{:<6} {:<18} {}{}  {}\n", lab.section, lab.name, title,
                 std::string(widest - plotting::display_width(title), ' '), took);
    }
    return 0;
  }

  // To standard output; once its reader is gone, nowhere.
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
    make_folder(folder);  // before the work: a bad path is known at once
    const bool to_screen = format_ == "text" && !global.quiet;
    const labs::PlainStyle how = style(global, folder);
    StatusLine status(global);
    int64_t files = 0;
    if (to_screen) show(labs::plain_title(lab, global.language, how));
    const auto block_done = [&](const labs::Block& block) {
      if (const auto* picture = std::get_if<labs::Picture>(&block)) files += labs::save_figure(*picture, folder);
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
      const char* counts = global.language == Language::zh ? "{}{} 条论断，{} 条不成立；{} 个图文件在 {}\n"
                                                           : "{}{} claims, {} failed; {} figure files in {}\n";
      show(
          fmt::format(fmt::runtime(counts), to_screen ? "\n" : "", page.claims(), page.failed_claims(), files, folder));
      if (format_ == "md")
        show(fmt::format("{}/{}.md\n", folder, lab.name));
      else if (several)
        show("\n");
    }
    if (page.failed_claims())
      fmt::print(stderr, "qkv: error: lab {}: {} of {} claims failed\n", lab.name, page.failed_claims(), page.claims());
    return page.failed_claims();
  }

  std::vector<std::string> names_;
  std::string out_, format_ = "text", data_;
  bool no_figures_ = false;
};

}  // namespace

std::unique_ptr<Command> lab_command() { return std::make_unique<LabCommand>(); }

}  // namespace qkv::cli
