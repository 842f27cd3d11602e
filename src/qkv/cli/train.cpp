// qkv train: turns a configuration and data into a run folder with a model.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>

#include "qkv/cli/command.h"
#include "qkv/cli/interrupt.h"
#include "qkv/cli/terminal.h"
#include "qkv/cli/train_ending.h"
#include "qkv/core/numbers.h"
#include "qkv/eval/d2l_bleu.h"
#include "qkv/report/runs.h"
#include "qkv/tasks/translation/presets.h"
#include "qkv/tasks/translation/run.h"
#include "qkv/tasks/translation/translator.h"
#include "qkv/train/progress.h"

namespace qkv::cli {
namespace {

namespace fs = std::filesystem;

/// Draws progress on standard error.
class Screen : public Observer {
 public:
  explicit Screen(LogFormat format) : format_(format) {}

  void started(const Progress& p) override {
    if (p.step > 0 && p.step < p.steps && format_ != LogFormat::none && format_ != LogFormat::json)
      fmt::print(stderr, "resumed at epoch {}, step {}\n", p.epoch, p.step);
  }
  void step(const Progress& p) override {
    if (format_ == LogFormat::bar && p.seconds - drawn_ >= 0.1) draw(p);
    if (format_ == LogFormat::plain && log_.due(p.seconds)) fmt::print(stderr, "{}\n", progress_line(p));
    if (format_ == LogFormat::json && log_.due(p.seconds)) fmt::print(stderr, "{}\n", progress_json(p));
  }
  void epoch(const Progress& p) override {
    last_ = p;
    // A log gets a few dozen lines per run, for any number of epochs.
    const int64_t every = std::max<int64_t>(1, p.epochs / 50);
    const bool due = p.epoch % every == 0 || p.epoch == p.epochs;
    if (format_ == LogFormat::bar && p.valid_loss) {
      const int columns = terminal_columns(STDERR_FILENO);
      fmt::print(stderr, "\r{:<{}}\n", progress_line(p), columns - 1);
    } else if (format_ == LogFormat::plain && due) {
      fmt::print(stderr, "{}\n", progress_line(p));
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
    const int columns = terminal_columns(STDERR_FILENO);
    fmt::print(stderr, "\r{:<{}}", progress_bar(p, columns), columns - 1);
    std::fflush(stderr);
  }
  LogFormat format_;
  LogPace log_;
  Progress last_;
  double drawn_ = 0;
};

class Train : public Command {
 public:
  std::string name() const override { return "train"; }
  Text summary() const override {
    return tr("trains a translation model; repeating the command resumes where it stopped");
  }
  std::string example() const override {
    return "qkv train --preset transformer\n"
           "  qkv train --preset d2l-transformer --data fra.txt\n"
           "  qkv train --preset transformer-tiny --data pairs.tsv --valid-share 0.02 -o runs/mine";
  }

  void bind(Options& options) override {
    options.option("-c,--config FILE", tr("a YAML file with the blocks data, model, training, book and decoding"),
                   config_file_);
    options.option("--preset NAME", tr("predefined settings, which the file and the options below override"), preset_,
                   translation_presets());
    options.option("--data FILE",
                   tr("sentence pairs (data.pairs): tab-separated, .gz or not; en-fr is the built-in corpus"), data_);
    options.option(
        "-o,--output DIR",
        tr("folder of the run (default: runs/NAME with the name of the preset or file, else runs/translation)"),
        output_);
    options.flag("--restart", tr("start over: remove an earlier run from the folder"), restart_);
    options.flag("--dump-config", tr("print the whole configuration as YAML and exit"), dump_);
    for (const Setting& s : offered_settings()) {
      if (s.name() == "data.pairs" || s.name() == "training.seed") continue;
      overrides_.emplace_back(s.name(), std::nullopt);
      options.option(s.flag + " " + s.value_name, tr("{setting}: {help}", "setting"_a = s.name(), "help"_a = s.help),
                     overrides_.back().second, s.choices);
    }
  }

  int run(const Global& global) override;

 private:
  const std::optional<std::string>& given(const char* name) const;
  bool has_own_data() const;
  TranslationConfig base_configuration() const;
  TranslationConfig configuration(const Global& global) const;
  std::string folder() const;
  void book_ending(const TranslationRun& run, const Progress& last) const;
  void say_tokenizer(const TranslationRun& run) const;
  static void say_kept(const TranslationRun& run, const TrainResult& result);

  std::string config_file_, preset_, output_;
  std::optional<std::string> data_;
  bool restart_ = false, dump_ = false;
  using Override = std::pair<std::string, std::optional<std::string>>;
  std::deque<Override> overrides_;
};

const std::optional<std::string>& Train::given(const char* name) const {
  return std::ranges::find(overrides_, name, &Override::first)->second;
}

// Your own data, by option or file, replaces all files that a preset names.
bool Train::has_own_data() const {
  if (data_ || given("data.source")) return true;
  if (config_file_.empty()) return false;
  const std::string yaml = read_settings_text(config_file_);
  return find_setting(yaml, config_file_, "data.pairs") || find_setting(yaml, config_file_, "data.source");
}

TranslationConfig Train::base_configuration() const {
  TranslationConfig config = preset_.empty() ? TranslationConfig{} : translation_preset(preset_);
  if (!preset_.empty() && has_own_data())
    for (std::string* file : {&config.data.pairs, &config.data.source, &config.data.target, &config.data.valid_pairs,
                              &config.data.valid_source, &config.data.valid_target})
      file->clear();
  const auto& kind = given("model.kind");
  const auto wanted = kind ? parse_name<ModelKind>(*kind, "--kind") : config.kind();
  if (preset_.empty()) config.set_kind(wanted);
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

TranslationConfig Train::configuration(const Global& global) const {
  TranslationConfig config = base_configuration();
  try {
    const Settings settings = config.settings();
    if (data_) {
      config.data.source.clear();
      config.data.target.clear();
      settings.find("data.pairs").set(*data_, "--data");
    } else if (given("data.source")) {
      config.data.pairs.clear();  // from the file
    }
    for (const auto& [name, value] : overrides_)
      if (value) settings.find(name).set(*value, settings.find(name).flag);
    if (global.seed_given) config.training.seed = static_cast<int64_t>(global.seed);
  } catch (const Error& e) {
    throw UsageError(e.message(), e.hint());
  }
  return config;
}

std::string Train::folder() const {
  if (!output_.empty()) return output_;
  if (!preset_.empty()) return "runs/" + preset_;
  return "runs/" + fs::path(config_file_).stem().string();
}

// The presets expect a corpus with blanks around its punctuation. Your own text seldom has them.
void Train::say_tokenizer(const TranslationRun& run) const {
  const TranslationDataConfig& data = run.config().data;
  const bool chosen = std::any_of(overrides_.begin(), overrides_.end(),
                                  [](const auto& o) { return o.first == "data.tokenizer" && o.second; });
  if (preset_.empty() || chosen || data.tokenizer != TokenizerKind::spaces || data.built_in()) return;
  const AttachedPunctuation found = attached_punctuation(run.text().train.source);
  if (found.share < 0.5) return;
  fmt::print(
      stderr,
      "note: data.tokenizer is spaces, from the preset {}, but {:.0f} % of the sentences have punctuation attached to "
      "words: \"{}\" is one word to this model; --tokenizer words or bpe separates them\n",
      preset_, std::floor(100 * found.share), printable(found.example));
}

void Train::say_kept(const TranslationRun& run, const TrainResult& result) {
  static constexpr const char* kWeights[] = {"the last weights", "the best weights", "the mean of the last weights",
                                             "the running mean of the weights"};
  say_line(fmt::format("trained in {}: {}/model.safetensors has {}{}", duration(result.progress.seconds), run.folder(),
                       kWeights[static_cast<size_t>(result.kept)],
                       result.kept_loss ? fmt::format(", validation loss {:.4f}", *result.kept_loss) : ""));
}

// Prints what the book prints: the loss in its unit, the speed of the last epoch, and four sentences.
void Train::book_ending(const TranslationRun& run, const Progress& last) const {
  if (last.epoch_seconds > 0) fmt::print("loss {:.3f}, {:.1f} tokens/sec on cpu\n", last.epoch_loss, last.per_second());
  const Translator translator(run.model(), run.tokenizers(), run.config());
  std::vector<std::string> sentences;
  for (const BookSentence& s : book_sentences()) sentences.emplace_back(s.source);
  const auto translations = translator.translate(sentences, translator.defaults());
  for (size_t i = 0; i < sentences.size(); ++i) {
    const std::string said = translations[i].hypotheses.empty() ? "" : translator.text(translations[i].hypotheses[0]);
    fmt::print("{} => {},  bleu {:.3f}\n", sentences[i], said, d2l_bleu(said, book_sentences()[i].target, 2));
  }
}

int Train::run(const Global& global) {
  TranslationConfig config = configuration(global);
  if (is_book_preset(config.preset) && config.data.pairs.empty() && config.data.source.empty())
    throw UsageError(
        tr("the preset {preset} needs the book's fra.txt: give it with --data FILE", "preset"_a = config.preset),
        tr("qkv data fra-eng -o fra.txt fetches it"));
  if (preset_.empty() && config_file_.empty() && !data_ && config.data.source.empty())
    throw UsageError(tr("nothing to train: give --preset NAME, -c config.yaml or --data FILE"),
                     tr("qkv train --preset transformer needs no file"));
  if (dump_) {
    fmt::print("{}", config.settings().dump());
    return 0;
  }
  const std::string where = preset_.empty() && config_file_.empty() && output_.empty() ? "runs/translation" : folder();
  const InterruptScope scope;
  TranslationRun run(config, where, restart_ ? ExistingRun::discard : ExistingRun::resume);
  const bool lines = global.log_format != LogFormat::json;  // else standard error contains only JSON
  const bool prints_text = lines && global.log_format != LogFormat::none;
  if (prints_text) {
    const auto number = [](int64_t n) { return grouped(static_cast<uint64_t>(n)); };
    const std::string header = fmt::format(
        "{} pairs{}, vocabularies {} and {}, {} parameters, {}", number(run.training_pairs()),
        run.validation_pairs() > 0 ? fmt::format(" and {} for validation", number(run.validation_pairs())) : "",
        number(run.tokenizers().source.size()), number(run.tokenizers().target.size()),
        number(run.model().parameters().count()), where);
    say_line(header);
    if (config.training.schedule == ScheduleKind::warmup && run.updates() < config.training.warmup)
      fmt::print(
          stderr,
          "note: training.warmup is {}, but the whole training has {} updates: the rate will not reach training.rate\n",
          config.training.warmup, run.updates());
    if (config.data.has_subwords() && config.data.lowercase)
      fmt::print(stderr, "note: {}: translations will have no capitals; score them with qkv score --lowercase\n",
                 report::tokenizer_text(config.data));
    else if (!config.data.has_subwords() && config.data.tokenizer != TokenizerKind::spaces)
      fmt::print(stderr, "tokenizer: {}\n", report::tokenizer_text(config.data));
    say_tokenizer(run);
  }
  Screen screen(global.log_format);
  Observer* observers[] = {&screen};
  const TrainResult result = run.train(observers, &interrupted());
  if (result.interrupted) {
    if (lines)
      fmt::print(stderr, "stopped after step {} of {}; repeat the command to resume\n", result.progress.step,
                 result.progress.steps);
    return kInterrupted;
  }
  if (prints_text && result.progress.steps_here == 0)
    fmt::print(stderr, "{}: already finished; nothing was trained (--restart starts over)\n", where);
  else if (prints_text && result.ended_early)
    fmt::print(stderr, "ended after epoch {}: the validation loss stopped improving\n", result.progress.epoch);
  if (prints_text && result.progress.steps_here > 0) say_kept(run, result);
  const bool trained = prints_text && result.progress.steps_here > 0;
  if (is_book_preset(config.preset))
    book_ending(run, screen.last());
  else if (trained)
    say_samples(run);
  if (trained) say_next(run, global);
  return 0;
}

}  // namespace

std::unique_ptr<Command> train_command() { return std::make_unique<Train>(); }

}  // namespace qkv::cli
