// qkv train: turns a configuration and data into a run folder with a model, for any task.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <sstream>

#include "qkv/cli/command.h"
#include "qkv/cli/interrupt.h"
#include "qkv/cli/rank_job.h"
#include "qkv/cli/share_bar.h"
#include "qkv/cli/train_task.h"
#include "qkv/report/runs.h"
#include "qkv/run/rank_rows.h"
#include "qkv/tasks/presets.h"
#include "qkv/tasks/run_config.h"
#include "qkv/train/progress.h"

namespace qkv::cli {
namespace {

namespace fs = std::filesystem;

// The heading of a block of settings in the help.
Text block_title(const std::string& block) {
  if (block == "data") return tr("data (the block data of the configuration):");
  if (block == "model") return tr("model (the block model):");
  if (block == "training") return tr("training (the block training):");
  if (block == "decoding") return tr("decoding (the block decoding):");
  return tr("the book's habits (the block book):");
}

/// Draws progress on standard error.
class Screen : public Observer {
 public:
  explicit Screen(const Global& global) : global_(global), format_(global.log_format) {}

  void note(const Text& text) override { global_.note(text); }
  void started(const Progress& p) override {
    if (p.step > 0 && p.step < p.steps && format_ != LogFormat::none && format_ != LogFormat::json)
      print(tr("resumed at epoch {epoch}, step {step}", "epoch"_a = p.epoch, "step"_a = p.step));
  }
  void step(const Progress& p) override {
    if (format_ == LogFormat::bar && p.seconds - drawn_ >= 0.1) draw(p);
    if (format_ == LogFormat::plain && log_.due(p.seconds)) print(progress_line(p));
    if (format_ == LogFormat::json && log_.due(p.seconds)) fmt::print(stderr, "{}\n", progress_json(p));
  }
  void epoch(const Progress& p) override {
    last_ = p;
    // A log gets a few dozen lines per run, for any number of epochs.
    const int64_t every = std::max<int64_t>(1, p.epochs / 50);
    const bool due = p.epoch % every == 0 || p.epoch == p.epochs;
    if (format_ == LogFormat::bar && p.valid_loss) {
      fmt::print(stderr, "\r\x1b[K");
      print(progress_line(p));
    } else if (format_ == LogFormat::plain && due) {
      print(progress_line(p));
      log_.written(p.seconds);
    } else if (format_ == LogFormat::json) {
      fmt::print(stderr, "{}\n", progress_json(p));
      log_.written(p.seconds);
    }
  }
  void finished(const Progress& p) override {
    if (format_ != LogFormat::bar || p.steps_here == 0) return;
    draw(p);  // full, unless the training was stopped
    fmt::print(stderr, "\n");
  }
  /// The last epoch that was trained here.
  const Progress& last() const { return last_; }

 private:
  void draw(const Progress& p) {
    drawn_ = p.seconds;
    const double share = p.steps > 0 ? static_cast<double>(p.step) / static_cast<double>(p.steps) : 0;
    draw_bar(share, progress_head(p), progress_tail(p), global_.language);
  }
  void print(const Text& line) const { fmt::print(stderr, "{}\n", line.in(global_.language)); }
  const Global& global_;
  LogFormat format_;
  LogPace log_;
  Progress last_;
  double drawn_ = 0;
};

class Train : public Command {
 public:
  std::string name() const override { return "train"; }
  Text summary() const override { return tr("trains a model; repeating the command resumes where it stopped"); }
  std::string example() const override {
    return "qkv train --preset transformer\n"
           "  qkv train --preset d2l-transformer --data fra.txt\n"
           "  qkv train --preset transformer-tiny --data pairs.tsv --valid-share 0.02 -o runs/mine\n"
           "  qkv train --preset lm --text book.txt\n"
           "  qkv train --init opus-mt-zh-en --data pairs.tsv -o runs/tuned";
  }

  void bind(Options& options) override {
    options.option("-c,--config FILE", tr("a YAML file with the blocks data, model, training, book and decoding"),
                   config_file_);
    options.option("--preset NAME", tr("predefined settings, which the file and the options below override"), preset_,
                   preset_names());
    options.option("--data FILE",
                   tr("data, .gz or not: tab-separated sentence pairs (data.pairs; en-fr is the built-in corpus), or "
                      "the text of a language model (data.text)"),
                   data_);
    options.option("-o,--output DIR",
                   tr("folder of the run (default: runs/NAME with the name of the preset or file, else of the task)"),
                   output_);
    options.flag("--restart", tr("start over: remove an earlier run from the folder"), restart_);
    ranks_.bind(options);
    options.flag("--dump-config", tr("print the whole configuration as YAML and exit"), dump_);
    std::string block;
    for (const Setting& s : offered_settings()) {
      if (s.name() == "data.pairs" || s.name() == "training.seed") continue;
      if (std::exchange(block, s.block) != s.block) options.group(block_title(s.block));
      overrides_.emplace_back(s.name(), std::nullopt);
      options.option(s.flag + " " + s.value_name, s.help, overrides_.back().second, s.choices);
      const bool has_default = s.get() != "\"\"" && s.name() != "model.kind";  // no file; and a kind follows from data
      if (has_default) options.set_default(s.get());
    }
  }

  int run(const Global& global) override;

 private:
  int prepared(Ranks* ranks, const Global& global);
  int train(RunConfig config, Ranks* ranks, const Global& global) const;
  std::optional<std::string> given(const std::string& name) const;
  bool has_own_data(const RunConfig& config) const;
  std::string kind_of_data() const;
  std::optional<std::string> start() const;
  RunConfig configuration_of(const std::string& start) const;
  RunConfig base_configuration() const;
  RunConfig configuration(const Global& global) const;
  std::string folder(const RunConfig& config) const;

  std::string config_file_, preset_, output_;
  std::optional<std::string> data_;
  bool restart_ = false, dump_ = false;
  RankChoice ranks_;
  using Override = std::pair<std::string, std::optional<std::string>>;
  std::deque<Override> overrides_;
};

std::optional<std::string> Train::given(const std::string& name) const {
  const auto found = std::ranges::find(overrides_, name, &Override::first);
  return found == overrides_.end() ? std::nullopt : found->second;
}

// Your own data, by option or file, replaces all files that a preset names.
bool Train::has_own_data(const RunConfig& config) const {
  if (data_) return true;
  const std::string yaml = config_file_.empty() ? "" : read_settings_text(config_file_);
  return std::ranges::any_of(config.sources(), [&](const std::string& source) {
    return given(source) || (!yaml.empty() && find_setting(yaml, config_file_, source));
  });
}

// Without a preset, a file or --kind, the data that is given selects the task: the first kind that has these settings.
std::string Train::kind_of_data() const {
  for (const std::string& kind : all_kinds()) {
    RunConfig config = RunConfig::of_kind(kind, "--kind");
    const Settings settings = config.settings();
    if (std::ranges::all_of(overrides_, [&](const Override& o) {
          return !o.second || !o.first.starts_with("data.") || settings.has(o.first);
        }))
      return kind;
  }
  return all_kinds().front();
}

// The folder that the training starts from, by option or file; nothing with a preset, whose settings stand.
std::optional<std::string> Train::start() const {
  if (!preset_.empty()) return {};
  if (const auto folder = given("training.init")) return folder;
  if (config_file_.empty()) return {};
  const auto found = find_setting(read_settings_text(config_file_), config_file_, "training.init");
  return found && !found->value.empty() ? std::optional(found->value) : std::nullopt;
}

// What that folder says of its model, which the file overrides. A run that resumes has it in its own configuration: the
// folder may be gone.
RunConfig Train::configuration_of(const std::string& start) const {
  const bool resumes = !restart_ && !output_.empty() && fs::exists(output_ + "/checkpoints/last.safetensors") &&
                       report::is_run_folder(output_);
  if (resumes) {
    RunConfig config = read_folder_config(output_);
    if (config.training().init == start) return config;
  }
  run_task(start);  // refuses what is not a model
  RunConfig config = read_folder_config(start);
  if (has_own_data(config)) config.clear_files();
  std::visit([](auto& c) { c.preset.clear(); }, config.of);
  if (!config_file_.empty()) config.read(config_file_);
  return config;
}

RunConfig Train::base_configuration() const {
  const std::optional<std::string> kind = given("model.kind");
  if (const auto folder = start()) {
    RunConfig config = configuration_of(*folder);
    if (kind && *kind != config.kind())
      throw UsageError(tr("--kind {wanted}: {folder} is a {kind}", "wanted"_a = *kind, "folder"_a = *folder,
                          "kind"_a = config.kind()));
    return config;
  }
  RunConfig config = !preset_.empty()       ? RunConfig::preset(preset_)
                     : kind                 ? RunConfig::of_kind(*kind, "--kind")
                     : config_file_.empty() ? RunConfig::of_kind(kind_of_data(), "--kind")
                                            : RunConfig{};
  if (!preset_.empty() && has_own_data(config)) config.clear_files();
  const std::string wanted = kind.value_or(config.kind());
  if (wanted != config.kind())
    throw UsageError(tr("--kind {wanted}: the preset {preset} is a {kind}", "wanted"_a = wanted, "preset"_a = preset_,
                        "kind"_a = config.kind()));
  if (config_file_.empty()) return config;
  config.read(config_file_);
  if (!preset_.empty() && config.kind() != wanted)
    throw Error(tr("{config_file}: model.kind is {kind}, but the preset {preset} is a {wanted}",
                   "config_file"_a = config_file_, "kind"_a = config.kind(), "preset"_a = preset_, "wanted"_a = wanted),
                tr("use the file without --preset"));
  if (kind && config.kind() != wanted)
    throw UsageError(tr("--kind {wanted}: {config_file} is a {kind}", "wanted"_a = wanted,
                        "config_file"_a = config_file_, "kind"_a = config.kind()));
  return config;
}

RunConfig Train::configuration(const Global& global) const {
  RunConfig config = base_configuration();
  try {
    const std::vector<std::string> sources = config.sources();
    const auto source =
        std::ranges::find_if(sources, [&](const std::string& s) { return (s == sources[0] && data_) || given(s); });
    if (source != sources.end()) config.use_source(*source);
    const Settings settings = config.settings();
    if (data_) settings.find(sources[0]).set(*data_, "--data");
    for (const auto& [name, value] : overrides_)
      if (value) settings.find(name).set(*value, settings.find(name).flag);
    if (global.seed_given) config.training().seed = static_cast<int64_t>(global.seed);
  } catch (const Error& e) {
    throw UsageError(e.message(), e.hint());
  }
  return config;
}

std::string Train::folder(const RunConfig& config) const {
  if (!output_.empty()) return output_;
  if (!preset_.empty()) return "runs/" + preset_;
  if (!config_file_.empty()) return "runs/" + fs::path(config_file_).stem().string();
  return "runs/" + facts_of(config.task()).name;
}

void say_kept(const std::string& folder, const TrainResult& result, const Global& global) {
  const Text weights[] = {tr("the last weights"), tr("the best weights"), tr("the mean of the last weights"),
                          tr("the running mean of the weights")};
  const Text kept =
      tr("trained in {time}: {folder}/model.safetensors has {weights}", "time"_a = duration(result.progress.seconds),
         "folder"_a = folder, "weights"_a = weights[static_cast<size_t>(result.kept)]);
  say_line(
      result.kept_loss ? tr("{kept}, validation loss {loss:.4f}", "kept"_a = kept, "loss"_a = *result.kept_loss) : kept,
      global);
}

// Where several processes share the work, each reads the configuration inside the job, so that one of them says what is
// wrong with it.
int Train::run(const Global& global) {
  if (dump_ || !ranks_.in_job()) return prepared(nullptr, global);
  return on_ranks(ranks_, global, [&](Ranks* ranks, const Global& own) { return prepared(ranks, own); });
}

int Train::prepared(Ranks* ranks, const Global& global) {
  RunConfig config = configuration(global);
  if (preset_.empty() && config_file_.empty() && !config.has_data())
    throw UsageError(tr("nothing to train: give --preset NAME, -c config.yaml or --data FILE"),
                     tr("qkv train --preset transformer needs no file"));
  std::visit([](const auto& c) { check_train_options(c); }, config.of);
  if (dump_) {
    fmt::print("{}", config.settings().dump());
    return 0;
  }
  const InterruptScope scope;
  return train(std::move(config), ranks, global);
}

// The first setting that differs between two configurations.
Text setting_difference(const std::string& theirs, const std::string& first, const Text& rank) {
  std::istringstream a(theirs), b(first);
  std::string x, y;
  while (std::getline(a, x) && std::getline(b, y) && x == y) {
  }
  const auto trimmed = [](const std::string& line) {
    const std::string_view setting = std::string_view(line).substr(0, line.find(" #"));
    const size_t begin = setting.find_first_not_of(' ');
    return begin == std::string_view::npos
               ? std::string()
               : std::string(setting.substr(begin, setting.find_last_not_of(' ') + 1 - begin));
  };
  return tr(
      "{rank} was started with the setting \"{theirs}\", but rank 0 with \"{first}\": all must have the same "
      "configuration",
      "rank"_a = rank, "theirs"_a = trimmed(x), "first"_a = trimmed(y));
}

int Train::train(RunConfig config, Ranks* ranks, const Global& global) const {
  const bool follows = ranks && ranks->rank() > 0;  // another process has folder and screen
  if (ranks) {
    agree(*ranks, config.settings().dump(), setting_difference);
    check_rank_rows(ranks->size(), config.training().batch_rows, config.training());
  }
  TrainRequest request{follows ? "" : folder(config), restart_ ? ExistingRun::discard : ExistingRun::resume, {}, ranks};
  for (const auto& [name, value] : overrides_)
    if (value) request.given.insert(name);
  const std::unique_ptr<TrainTask> task = std::visit([&](const auto& c) { return train_task(c, request); }, config.of);
  const bool lines = global.log_format != LogFormat::json;  // else standard error contains only JSON
  const bool prints_text = lines && global.log_format != LogFormat::none;
  if (prints_text) task->say_start(global);
  Screen screen(global);
  Observer* observers[] = {&screen};
  const TrainResult result = task->train(observers, &interrupted());
  if (follows) return result.interrupted ? kInterrupted : 0;
  if (result.interrupted) {
    if (lines)
      say_line(tr("stopped after step {step} of {steps}; repeat the command to resume", "step"_a = result.progress.step,
                  "steps"_a = result.progress.steps),
               global);
    return kInterrupted;
  }
  if (prints_text && result.progress.steps_here == 0)
    say_line(tr("{folder}: already finished; nothing was trained (--restart starts over)", "folder"_a = request.folder),
             global);
  else if (prints_text && result.ended_early)
    say_line(tr("ended after epoch {epoch}: the validation loss stopped improving", "epoch"_a = result.progress.epoch),
             global);
  const bool trained = prints_text && result.progress.steps_here > 0;
  if (trained) say_kept(request.folder, result, global);
  task->say_end(screen.last(), trained, global);
  return 0;
}

}  // namespace

std::unique_ptr<Command> train_command() { return std::make_unique<Train>(); }

}  // namespace qkv::cli
