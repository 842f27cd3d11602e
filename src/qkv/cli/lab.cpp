// qkv lab: lists the labs, or runs one and writes its figures.
#include <fmt/format.h>

#include <cstdio>

#include "qkv/cli/named_lab.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/file.h"
#include "qkv/labs/render.h"

namespace qkv::cli {
namespace {

class LabCommand : public Command {
 public:
  std::string name() const override { return "lab"; }
  Text summary() const override { return {"a section of the chapter as an experiment, with figures and checked claims", "把一节内容作为实验运行：图、数字和经过检验的论断"}; }
  std::string example() const override { return "qkv lab engine --out lab"; }

  void bind(Options& options) override {
    options.positionals("NAME", {"name or section of a lab; without one the labs are listed", "实验的名称或节号；不写则列出全部实验"}, names_);
    options.option("-o,--out DIR", {"folder for the figures, each as .svg and .png (default: out/NAME)", "图的输出文件夹，每幅图存为 .svg 和 .png（默认 out/NAME）"}, out_);
    options.option("--format FORMAT", {"text on the screen, or a Markdown note NAME.md beside the figures", "屏幕文本，或在图旁边写 Markdown 笔记 NAME.md"}, format_,
                   {"text", "md"});
    options.option("--data FILE", {"labs 10.4 and 10.7: the book's fra.txt, and its experiment at full size, instead of the built-in corpus", "10.4 与 10.7 节：用书中的 fra.txt 做书中的完整实验，而不用内置语料"}, data_);
  }

  int run(const Global& global) override {
    if (names_.empty()) return list(global.language);
    int64_t failed = 0;
    std::vector<const labs::Lab*> wanted;  // all of them, before the first is run
    for (const std::string& name : names_) {
      wanted.push_back(&named_lab(name, global.language));
      if (!data_.empty() && !wanted.back()->takes_data) throw UsageError(fmt::format("--data: lab {} takes no data", wanted.back()->name));
    }
    if (!data_.empty()) InputFile{data_};
    for (const labs::Lab* lab : wanted) failed += run_one(*lab, global);
    return failed ? 1 : 0;
  }

 private:
  static int list(Language language) {
    for (const labs::Lab& lab : labs::all_labs()) fmt::print("{:<6} {:<20} {}\n", lab.section, lab.name, lab.title.in(language));
    return 0;
  }

  int64_t run_one(const labs::Lab& lab, const Global& global) const {
    const std::string folder = out_.empty() ? "out/" + lab.name : out_;
    make_folder(folder);  // before the work: a bad path is known at once
    const bool to_screen = format_ == "text" && !global.quiet;
    if (to_screen) fmt::print("{} {}\n", lab.section, lab.title.in(global.language));
    const labs::Page page = labs::run(lab, {.seed = global.seed, .data = data_}, [&](const labs::Block& block) {
      if (!to_screen) return;
      fmt::print("{}", labs::plain(block, global.language));
      std::fflush(stdout);
    });
    const auto files = labs::save_figures(page, folder);
    if (format_ == "md") write_file(folder + "/" + lab.name + ".md", labs::markdown(lab, page, global.language));
    if (!global.quiet) {
      fmt::print(fmt::runtime(global.language == Language::zh ? "\n{} 条论断，{} 条不成立；{} 个图文件在 {}\n" : "\n{} claims, {} failed; {} figure files in {}\n"), page.claims(),
                 page.failed_claims(), files.size(), folder);
      if (format_ == "md") fmt::print("{}/{}.md\n", folder, lab.name);
    }
    if (page.failed_claims()) fmt::print(stderr, "qkv: error: lab {}: {} of {} claims failed\n", lab.name, page.failed_claims(), page.claims());
    return page.failed_claims();
  }

  std::vector<std::string> names_;
  std::string out_, format_ = "text", data_;
};

}  // namespace

std::unique_ptr<Command> lab_command() { return std::make_unique<LabCommand>(); }

}  // namespace qkv::cli
