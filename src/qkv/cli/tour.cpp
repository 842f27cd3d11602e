// qkv tour: all labs, or the requested ones, in one report.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "qkv/cli/machine.h"
#include "qkv/cli/named_lab.h"
#include "qkv/cli/page_models.h"
#include "qkv/cli/status_line.h"
#include "qkv/cli/terminal.h"
#include "qkv/core/counts.h"
#include "qkv/core/parallel.h"
#include "qkv/data/text.h"
#include "qkv/io/atomic_file.h"
#include "qkv/labs/render.h"
#include "qkv/serve/page.h"
#include "qkv/serve/page_file.h"
#include "qkv/train/progress.h"

namespace qkv::cli {
namespace {

// Estimates how long a tour takes, from the expected times of its labs and the pace of this machine so far.
class Clock {
 public:
  Clock(const std::vector<const labs::Lab*>& labs, bool quick) {
    for (const labs::Lab* lab : labs)
      expected_.push_back(static_cast<double>(quick ? lab->quick_seconds() : lab->seconds));
  }
  void finished_lab(double seconds) {
    done_expected_ += expected_.at(next_++);
    done_seconds_ += seconds;
    lab_start_ = Steady::now();
  }
  double elapsed() const { return since(start_); }
  double left() const {
    const double pace = done_expected_ > 5 ? done_seconds_ / done_expected_ : 1;
    double left = next_ < expected_.size() ? std::max(pace * expected_[next_] - since(lab_start_), 1.0) : 0;
    for (size_t i = next_ + 1; i < expected_.size(); ++i) left += pace * expected_[i];
    return left;
  }

 private:
  using Steady = std::chrono::steady_clock;
  static double since(Steady::time_point t) { return std::chrono::duration<double>(Steady::now() - t).count(); }
  std::vector<double> expected_;
  size_t next_ = 0;
  double done_expected_ = 0, done_seconds_ = 0;
  Steady::time_point start_ = Steady::now(), lab_start_ = start_;
};

class TourCommand : public Command {
 public:
  std::string name() const override { return "tour"; }
  Text summary() const override { return tr("runs every lab and writes one report, report/index.html"); }
  std::string example() const override { return "qkv tour --out report"; }

  void bind(Options& options) override {
    options.positionals("NAME", tr("labs of the report, by name or section (default: all)"), names_);
    options.option("-o,--out DIR", tr("folder for the report"), out_);
    options.option(
        "--data FILE",
        tr("labs 10.4 and 10.7: run the book's full experiment on its fra.txt instead of the built-in corpus"), data_);
    if (serve::page_engine())
      options.option("--model DIR",
                     tr("run folders whose models the benches inside the report show (default: small ones, "
                        "trained for a report with all labs)"),
                     models_);
    options.flag("--quick", tr("leave out what trains for long; the report says where"), quick_);
  }

  int run(const Global& global) override {
    auto chosen = named_labs(names_.empty() ? std::vector<std::string>{"all"} : names_, global);
    if (names_.empty()) std::rotate(chosen.begin(), chosen.begin() + 1, chosen.end());  // the engine last
    check_lab_data(data_, chosen);
    make_folder(out_);  // before the work, so that a bad path fails at once
    std::vector<labs::Finished> finished;
    int64_t failed = 0;
    Clock clock(chosen, quick_);
    for (const labs::Lab* lab : chosen) {
      finished.push_back(run_one(*lab, finished.size() + 1, chosen.size(), clock, global));
      clock.finished_lab(finished.back().seconds);
      failed += finished.back().page.failed_claims() + !finished.back().error.empty();
    }
    const std::string file = out_ + "/index.html";
    const auto inside = serve::page_engine() ? engine_files(global) : std::vector<serve::EngineFile>();
    write_file(file, serve::with_benches(labs::html_report(finished, global.language, facts(global)), inside));
    if (!global.quiet) global.say(tr("report: {file} ({time})", "file"_a = file, "time"_a = duration(clock.elapsed())));
    if (failed)
      print_error(tr("{claims} failed; the report shows which", "claims"_a = claim_count(failed)), {}, global.language);
    return failed ? 1 : 0;
  }

 private:
  // What the benches of the report start with: models, and the book's pairs if there is a file of them.
  std::vector<serve::EngineFile> engine_files(const Global& global) const {
    std::vector<serve::EngineFile> out;
    if (models_.empty() && names_.empty()) out = train_bench_models(global);
    for (const std::string& folder : models_) {
      const auto own = serve::model_files(folder, kMostWeightBytes);
      out.insert(out.end(), own.begin(), own.end());
    }
    if (data_.empty()) return out;
    std::string pairs;
    std::ifstream in(data_);
    int64_t count = 0;
    for (std::string line; count++ < kBookPairs && std::getline(in, line);) pairs += line + "\n";
    out.push_back(serve::engine_file("/training/book.tsv", pairs));
    return out;
  }

  labs::TourFacts facts(const Global& global) const {
    std::string command = "qkv tour";
    for (const std::string& name : names_) command += " " + name;
    if (quick_) command += " --quick";
    if (!data_.empty()) command += " --data " + data_;
    if (global.seed) command += fmt::format(" --seed {}", global.seed);
    const Text machine = threads() == 1
                             ? tr("{cpu}, 1 thread", "cpu"_a = printable(cpu_name()))
                             : tr("{cpu}, {threads} threads", "cpu"_a = printable(cpu_name()), "threads"_a = threads());
    return {.machine = machine, .command = command, .seed = global.seed, .quick = quick_, .whole = names_.empty()};
  }

  // While it runs: "3/8 [####------] 0:21, about 1:40 left  10.2 Kernel regression: training ...".
  labs::Finished run_one(const labs::Lab& lab, size_t number, size_t count, const Clock& clock,
                         const Global& global) const {
    const auto start = std::chrono::steady_clock::now();
    StatusLine status(global);
    std::string doing;
    const auto draw = [&] {
      const double elapsed = clock.elapsed(), left = clock.left();
      const Text times = tr("{elapsed}, about {left} left", "elapsed"_a = duration(elapsed), "left"_a = duration(left));
      status.show(fmt::format("{}/{} {} {}  {} {}{}", number, count, bar(elapsed / (elapsed + left), 20),
                              times.in(global.language), lab.section, lab.title.in(global.language), doing));
    };
    draw();
    const auto at_work = [&](const Text& what, double done) {
      doing = done < 1 ? tr(": {what}", "what"_a = what).in(global.language) : "";
      draw();
    };
    const labs::LabOptions options{.seed = global.seed, .data = lab.takes_data ? data_ : "", .quick = quick_};
    labs::Page page(options);
    Text error;
    try {
      labs::run(
          lab, page, [&](const labs::Block&) { draw(); }, at_work);
    } catch (const Error& e) {  // the other labs still run; the report shows which one failed, and where
      error = e.message();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    status.clear();
    if (!global.quiet) {
      global.say(tr("{number} of {count}  {section:<5} {title} · {claims}, {failed} failed, {seconds:.1f} s",
                    "number"_a = number, "count"_a = count, "section"_a = lab.section, "title"_a = lab.title,
                    "claims"_a = claim_count(page.claims()), "failed"_a = page.failed_claims(), "seconds"_a = seconds));
      std::fflush(stdout);
    }
    if (!error.empty())
      print_error(tr("lab {name} failed: {error}", "name"_a = lab.name, "error"_a = error), {}, global.language);
    return {&lab, std::move(page), seconds, error};
  }

  std::vector<std::string> names_;
  static constexpr int64_t kMostWeightBytes = int64_t{3} << 20, kBookPairs = 601;
  std::string out_ = "report", data_;
  std::vector<std::string> models_;
  bool quick_ = false;
};

}  // namespace

std::unique_ptr<Command> tour_command() { return std::make_unique<TourCommand>(); }

}  // namespace qkv::cli
