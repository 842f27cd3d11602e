// qkv site: the explorer and the tour as static files.
#include "qkv/serve/site.h"

#include <fmt/format.h>

#include <filesystem>

#include "qkv/cli/command.h"
#include "qkv/cli/page_models.h"
#include "qkv/io/atomic_file.h"

namespace qkv::cli {
namespace {

class Site : public Command {
 public:
  std::string name() const override { return "site"; }
  Text summary() const override {
    return tr("writes the explorer and the tour as files for a web host or a USB stick");
  }
  std::string example() const override { return "qkv site -o site runs/transformer"; }

  void bind(Options& options) override {
    options.positionals(
        "MODEL",
        tr("run folders whose models the benches show (default: those of the report, or else small ones "
           "that are trained now)"),
        models_);
    options.option("-o,--out DIR", tr("folder for the files"), options_.folder);
    options.option(
        "--report FILE",
        tr("the report of qkv tour, to be a part of it (default: {file}, if it is there)", "file"_a = kReport),
        report_);
  }

  int run(const Global& global) override {
    options_.report = report_.value_or(std::filesystem::exists(kReport) ? kReport : "");
    for (const std::string& folder : models_) {
      const auto own = serve::model_files(folder, kMostBytes);
      options_.files.insert(options_.files.end(), own.begin(), own.end());
    }
    make_folder(options_.folder);  // before the work, so that a bad path fails at once
    if (models_.empty() && (options_.report.empty() || !serve::has_models(options_.report)))
      options_.files = train_bench_models(global);
    const auto files = serve::write_site(options_);
    if (!global.quiet)
      for (const std::string& file : files) fmt::print("{}/{}\n", options_.folder, file);
    return 0;
  }

 private:
  static constexpr const char* kReport = "report/index.html";
  static constexpr int64_t kMostBytes = int64_t{8} << 20;
  serve::SiteOptions options_{.folder = "site", .report = {}, .files = {}};
  std::vector<std::string> models_;
  std::optional<std::string> report_;
};

}  // namespace

std::unique_ptr<Command> site_command() { return std::make_unique<Site>(); }

}  // namespace qkv::cli
