// qkv train: turns a configuration and data into a run folder with a model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>

#include "qkv/cli/command.h"
#include "qkv/cli/interrupt.h"
#include "qkv/cli/share_bar.h"
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
    std::string block;
    for (const Setting& s : offered_settings()) {
      if (s.name() == "data.pairs" || s.name() == "training.seed") continue;
      if (std::exchange(block, s.block) != s.block) options.group(block_title(s.block));
      overrides_.emplace_back(s.name(), std::nullopt);
      options.option(s.flag + " " + s.value_name, s.help, overrides_.back().second, s.choices);
      if (s.get() != "\"\"") options.set_default(s.get());  // else no file
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
  void say_start(const TranslationRun& run, const Global& global) const;
  void note_tokenizer(const TranslationRun& run, const Global& global) const;
  static void say_kept(const TranslationRun& run, const TrainResult& result, const Global& global);

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
void Train::note_tokenizer(const TranslationRun& run, const Global& global) const {
  const TranslationDataConfig& data = run.config().data;
  const bool chosen = std::any_of(overrides_.begin(), overrides_.end(),
                                  [](const auto& o) { return o.first == "data.tokenizer" && o.second; });
  if (preset_.empty() || chosen || data.tokenizer != TokenizerKind::spaces || data.built_in()) return;
  const AttachedPunctuation found = attached_punctuation(run.text().train.source);
  if (found.share < 0.5) return;
  global.note(
      tr("data.tokenizer is spaces, from the preset {preset}, but {share:.0f} % of the sentences have punctuation "
         "attached to words: \"{example}\" is one word to this model; --tokenizer words or bpe separates them",
         "preset"_a = preset_, "share"_a = std::floor(100 * found.share), "example"_a = printable(found.example)));
}

void Train::say_kept(const TranslationRun& run, const TrainResult& result, const Global& global) {
  const Text weights[] = {tr("the last weights"), tr("the best weights"), tr("the mean of the last weights"),
                          tr("the running mean of the weights")};
  const Text kept =
      tr("trained in {time}: {folder}/model.safetensors has {weights}", "time"_a = duration(result.progress.seconds),
         "folder"_a = run.folder(), "weights"_a = weights[static_cast<size_t>(result.kept)]);
  say_line(
      result.kept_loss ? tr("{kept}, validation loss {loss:.4f}", "kept"_a = kept, "loss"_a = *result.kept_loss) : kept,
      global);
}

void Train::say_start(const TranslationRun& run, const Global& global) const {
  const auto number = [](int64_t n) { return grouped(static_cast<uint64_t>(n)); };
  const TranslationConfig& config = run.config();
  const Text pairs = run.validation_pairs() > 0
                         ? tr("{pairs} pairs and {valid} for validation", "pairs"_a = number(run.training_pairs()),
                              "valid"_a = number(run.validation_pairs()))
                         : tr("{pairs} pairs", "pairs"_a = number(run.training_pairs()));
  say_line(tr("{pairs}, vocabularies {source} and {target}, {parameters} parameters, {folder}", "pairs"_a = pairs,
              "source"_a = number(run.tokenizers().source.size()), "target"_a = number(run.tokenizers().target.size()),
              "parameters"_a = number(run.model().parameters().count()), "folder"_a = run.folder()),
           global);
  if (config.training.schedule == ScheduleKind::warmup && run.updates() < config.training.warmup)
    global.note(
        tr("training.warmup is {warmup}, but the whole training has {updates} updates: the rate will not reach "
           "training.rate",
           "warmup"_a = config.training.warmup, "updates"_a = run.updates()));
  const Text tokenizer = report::tokenizer_text(config.data);
  if (config.data.has_subwords() && config.data.lowercase)
    global.note(tr("{tokenizer}: translations will have no capitals; score them with qkv score --lowercase",
                   "tokenizer"_a = tokenizer));
  else if (!config.data.has_subwords() && config.data.tokenizer != TokenizerKind::spaces)
    say_line(tr("tokenizer: {tokenizer}", "tokenizer"_a = tokenizer), global);
  note_tokenizer(run, global);
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
  if (prints_text) say_start(run, global);
  Screen screen(global);
  Observer* observers[] = {&screen};
  const TrainResult result = run.train(observers, &interrupted());
  if (result.interrupted) {
    if (lines)
      say_line(tr("stopped after step {step} of {steps}; repeat the command to resume", "step"_a = result.progress.step,
                  "steps"_a = result.progress.steps),
               global);
    return kInterrupted;
  }
  if (prints_text && result.progress.steps_here == 0)
    say_line(tr("{folder}: already finished; nothing was trained (--restart starts over)", "folder"_a = where), global);
  else if (prints_text && result.ended_early)
    say_line(tr("ended after epoch {epoch}: the validation loss stopped improving", "epoch"_a = result.progress.epoch),
             global);
  const bool trained = prints_text && result.progress.steps_here > 0;
  if (trained) say_kept(run, result, global);
  if (is_book_preset(config.preset))
    book_ending(run, screen.last());
  else if (trained)
    say_samples(run, global);
  if (trained) say_next(run, global);
  return 0;
}

}  // namespace

std::unique_ptr<Command> train_command() { return std::make_unique<Train>(); }

}  // namespace qkv::cli
