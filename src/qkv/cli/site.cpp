// qkv site: the explorer and the tour as static files.
#include "qkv/serve/site.h"

#include <fmt/format.h>

#include "qkv/cli/command.h"

namespace qkv::cli {
namespace {

class Site : public Command {
 public:
  std::string name() const override { return "site"; }
  Text summary() const override {
    return tr("writes the explorer and the tour as files for a web host or a USB stick");
  }
  std::string example() const override { return "qkv site -o site --report report/index.html runs/transformer"; }

  void bind(Options& options) override {
    options.positionals("MODEL", tr("run folders whose models the benches show"), options_.models);
    options.option("-o,--out DIR", tr("folder for the files"), options_.folder);
    options.option("--report FILE", tr("the index.html of qkv tour, to be a part of it"), options_.report);
  }

  int run(const Global& global) override {
    const auto files = serve::write_site(options_);
    if (!global.quiet)
      for (const std::string& file : files) fmt::print("{}/{}\n", options_.folder, file);
    return 0;
  }

 private:
  serve::SiteOptions options_{.folder = "site", .models = {}, .report = {}};
};

}  // namespace

std::unique_ptr<Command> site_command() { return std::make_unique<Site>(); }

}  // namespace qkv::cli
