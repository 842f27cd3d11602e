// qkv tour: every lab, or those asked for, in one report.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>

#include "qkv/cli/named_lab.h"
#include "qkv/io/atomic_file.h"
#include "qkv/labs/render.h"

namespace qkv::cli {
namespace {

class TourCommand : public Command {
 public:
  std::string name() const override { return "tour"; }
  Text summary() const override { return {"runs every lab and writes one report, report/index.html", "运行全部实验，写出一份报告 report/index.html"}; }
  std::string example() const override { return "qkv tour --out report"; }

  void bind(Options& options) override {
    options.positionals("NAME", {"labs of the report, by name or section; without one all of them", "报告中的实验，按名称或节号；不写则为全部"}, names_);
    options.option("-o,--out DIR", {"folder of the report", "报告所在的文件夹"}, out_);
  }

  int run(const Global& global) override {
    const bool zh = global.language == Language::zh;
    std::vector<const labs::Lab*> chosen;
    for (const std::string& name : names_) chosen.push_back(&named_lab(name, global.language));
    if (names_.empty())
      for (const labs::Lab& lab : labs::all_labs()) chosen.push_back(&lab);
    make_folder(out_);  // before the work: a bad path is known at once
    std::vector<labs::Finished> finished;
    int64_t failed = 0;
    for (const labs::Lab* lab : chosen) {
      const auto start = std::chrono::steady_clock::now();
      if (!global.quiet) {
        fmt::print("{:<6} {} ", lab->section, lab->title.in(global.language));
        std::fflush(stdout);
      }
      labs::Page page = labs::run(*lab, {.seed = global.seed});
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (!global.quiet)
        fmt::print(fmt::runtime(zh ? "· {} 条论断，{} 条不成立，{:.1f} 秒\n" : "· {} claims, {} failed, {:.1f} s\n"), page.claims(), page.failed_claims(), seconds);
      failed += page.failed_claims();
      finished.push_back({lab, std::move(page), seconds});
    }
    const std::string file = out_ + "/index.html";
    write_file(file, labs::html_report(finished, global.language));
    if (!global.quiet) fmt::print(fmt::runtime(zh ? "报告：{}\n" : "report: {}\n"), file);
    if (failed) fmt::print(stderr, "qkv: error: {} claims failed; the report shows which\n", failed);
    return failed ? 1 : 0;
  }

 private:
  std::vector<std::string> names_;
  std::string out_ = "report";
};

}  // namespace

std::unique_ptr<Command> tour_command() { return std::make_unique<TourCommand>(); }

}  // namespace qkv::cli
