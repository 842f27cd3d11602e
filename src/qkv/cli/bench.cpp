// qkv bench: the speed table of this machine. bench/peers compares with other libraries.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qkv/cli/bench.h"
#include "qkv/cli/command.h"
#include "qkv/cli/rank_job.h"
#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/kernels/target.h"
#include "qkv/labs/wrap.h"
#include "qkv/plot/save.h"

namespace qkv::cli {
namespace {

// Filters know the English name too, in any language.
bool contains(const Text& name, const std::string& filter, Language language) {
  const auto found = [&](Language spoken) {
    return lowercase(name.in(spoken)).find(lowercase(filter)) != std::string::npos;
  };
  return found(Language::en) || found(language);
}

std::string time_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.1f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return fmt::format("{:.3f} ms", seconds * 1e3);
}

// In columns: a Chinese character takes two.
std::string row(const std::string& name, const Speed& speed) {
  const auto blanks = static_cast<size_t>(std::max(0, 60 - labs::columns_of(name)));
  std::string out = fmt::format("{}{} {:>11}", name, std::string(blanks, ' '), time_text(speed.seconds));
  if (!speed.unit.empty()) out += fmt::format(" {:>12.1f} {}", speed.work / speed.seconds, speed.unit);
  return out;
}

class BenchCommand : public Command {
 public:
  std::string name() const override { return "bench"; }
  Text summary() const override { return tr("how fast the engine is on this machine"); }
  std::string example() const override { return "qkv bench --filter product"; }
  void bind(Options& options) override {
    options.option("--filter TEXT", tr("only lines whose name contains this text (case is ignored)"), filter_);
    options.option("--model DIR", tr("the speed of this model instead: a run or a pretrained folder"), model_);
    options.flag("--json", tr("print one JSON object"), json_);
    options.flag("--distributed", tr("measure messages and training steps of the MPI job that this process belongs to"),
                 distributed_);
    options.flag("--large", tr("with --distributed: also a model of 60 million parameters"), large_);
    options.option("--plot FILE",
                   tr("with --distributed: draw what more machines and other networks would cost; .svg, .png or .txt"),
                   plot_);
  }

  int run(const Global& global) override {
    if (distributed_) return run_distributed(global);
    if (large_ || plot_) throw UsageError(tr("--large and --plot need --distributed"));
    std::vector<BenchLine> lines = model_.empty() ? engine_lines() : model_lines(model_);
    nlohmann::ordered_json all = {
        {"threads", threads()}, {"target", kernels::running_target()}, {"lines", nlohmann::ordered_json::array()}};
    int shown = 0;
    for (const BenchLine& line : lines) {
      if (!contains(line.name, filter_, global.language)) continue;
      const Speed speed = line.measure();
      ++shown;
      if (json_)
        all["lines"].push_back({{"name", line.name.in(Language::en)},
                                {"seconds", speed.seconds},
                                {"rate", speed.work / speed.seconds},
                                {"unit", speed.unit}});
      else
        fmt::print("{}\n", row(line.name.in(global.language), speed));
      std::fflush(stdout);
    }
    if (shown == 0)
      throw UsageError(tr("--filter: no line of the table contains \"{filter}\"", "filter"_a = filter_),
                       tr("qkv bench without --filter shows all lines"));
    if (json_) fmt::print("{}\n", all.dump(2));
    return 0;
  }

 private:
  int run_distributed(const Global& global) const {
    if (plot_) check_figure_path(*plot_);
    return on_ranks({.distributed = Distributed::mpi}, global, [&](Ranks* ranks, const Global& own) {
      const report::RankMeasurements measured = measure_ranks(*ranks, large_);
      if (ranks->rank() > 0) return 0;
      if (plot_ && ranks->size() == 1) throw UsageError(tr("--plot needs at least two ranks: mpirun -n 2"));
      if (plot_) save(report::scaling_figure(measured), *plot_, own.language);
      fmt::print("{}", json_ ? report::to_json(measured) + "\n" : report::to_text(measured, own.language));
      return 0;
    });
  }

  std::string filter_, model_;
  bool json_ = false, distributed_ = false, large_ = false;
  std::optional<std::string> plot_;
};

}  // namespace

std::unique_ptr<Command> bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace qkv::cli
