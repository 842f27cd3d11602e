// Opening, resuming and training a run.
#include "qkv/tasks/translation/run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "qkv/core/check.h"
#include "qkv/decode/force.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/npz.h"
#include "qkv/train/metrics.h"
#include "qkv/train/progress.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

// Settings that may change between two starts of one run: what was trained so far is what it would have been.
bool may_change(const Setting& s, const TrainingConfig& was, const TrainingConfig& now) {
  static const std::set<std::string> free = {"checkpoint_seconds", "patience", "attention_every"};
  if (s.block == "decoding") return true;
  if (s.block != "training") return false;
  if (s.key == "epochs") return now.epochs > was.epochs && now.schedule != ScheduleKind::cosine && was.averaged_epochs() == 0 && now.averaged_epochs() == 0;
  return free.contains(s.key);
}

// Why it cannot, where that is not plain.
std::string reason(const Setting& s, const TrainingConfig& was, const TrainingConfig& now) {
  if (s.name() != "training.epochs") return "";
  return now.epochs < was.epochs ? ": a run may be made longer, never shorter" : ": the rates, or the mean of the last weights, depend on it";
}

// As `qkv train` calls it.
std::string flag_of(const Setting& s) { return s.name() == "data.pairs" ? "--data" : s.flag; }

// What a run writes. The last of them is written first and removed last: where it is not, the others are not ours.
constexpr const char* kMark = "tokenizer.source.txt";
constexpr const char* kFiles[] = {"config.yaml",  "model.safetensors", "metrics.jsonl",    "train.log",        "checkpoints",          "attention",
                                  "source.model", "target.model",      "vocab.source.txt", "vocab.target.txt", "tokenizer.target.txt", kMark};

// config.yaml goes first: without it the rest is no run, wherever this is cut off.
void remove_run(const std::string& folder) {
  for (const char* name : kFiles) {
    std::error_code error;
    fs::remove_all(folder + "/" + name, error);
    check(!error, "cannot remove ", folder, "/", name, ": ", error.message());
  }
}

// Weights without their configuration: a new run would go on with them as if they were its own.
void refuse_remains(const std::string& folder) {
  for (const char* name : {"model.safetensors", "checkpoints/best.safetensors", "checkpoints/last.safetensors"})
    if (fs::exists(folder + "/" + name))
      throw Error(text(folder, ": has ", name, " but no config.yaml: it is what was left of a run"), "--restart removes it; -o names another folder");
}

// Somebody's own files are neither changed nor removed. A run that was cut off at its very beginning has an empty folder for checkpoints.
void refuse_foreign(const std::string& folder) {
  if (fs::exists(folder + "/" + kMark)) return;
  for (const char* name : kFiles) {
    const std::string path = folder + "/" + name;
    if (!fs::exists(path) || (std::string_view(name) == "checkpoints" && fs::is_directory(path) && fs::is_empty(path))) continue;
    throw Error(text(folder, ": has ", name, ", but is no run: there is no ", kMark), "-o names another folder for the run");
  }
}

// Vocabularies are files of lines.
void check_tokens(const Tokenizers& tokenizers) {
  for (const Tokenizer* side : {&tokenizers.source, &tokenizers.target})
    if (const Vocabulary* vocabulary = side->vocabulary())
      for (int32_t id = 0; id < vocabulary->size(); ++id)
        check(vocabulary->token(id).find_first_of("\r\n") == std::string::npos,
              "the training text has a carriage return inside a sentence: lines must end in LF or CRLF");
}

// What a training goes on from is gone, and its result is not.
void refuse_result_alone(const std::string& folder) {
  if (fs::exists(folder + "/model.safetensors") && !fs::exists(folder + "/checkpoints/last.safetensors"))
    throw Error(text(folder, ": has model.safetensors but no checkpoints/last.safetensors to go on from"),
                "--restart removes it and begins again; -o names another folder");
}

Schedule schedule(const TrainingConfig& c, int64_t updates) {
  const auto rate = static_cast<float>(c.rate);
  switch (c.schedule) {
    case ScheduleKind::warmup: return warmup_inverse_sqrt(rate, c.warmup);
    case ScheduleKind::cosine: return cosine_rate(rate, std::max<int64_t>(c.epochs * updates, 1), c.warmup);
    case ScheduleKind::step: return step_rate(rate, std::max<int64_t>(c.decay_epochs * updates, 1), static_cast<float>(c.decay_factor));
    case ScheduleKind::constant: break;
  }
  return constant_rate(rate);
}

// A cosine falls after the warm-up, so there must be something after it.
void check_warmup(const TrainingConfig& c, int64_t updates) {
  if (c.schedule == ScheduleKind::cosine && updates > 0 && c.warmup >= updates)
    throw Error(text("training.warmup is ", c.warmup, ", but the whole training has ", updates, " updates"), "--warmup takes fewer, --epochs gives more");
}

// Pairs as ids, without those that have more tokens on a side than `longest` (0: all are kept).
std::vector<IdPair> encoded(const SentencePairs& text, const Tokenizers& tokenizers, int64_t longest) {
  std::vector<IdPair> pairs = encode_pairs(text, tokenizers.source, tokenizers.target);
  if (longest > 0)
    std::erase_if(pairs, [&](const IdPair& p) { return static_cast<int64_t>(std::max(p.source.size(), p.target.size())) > longest; });
  return pairs;
}

// A learned table of positions must have a row for every token of every sentence.
void check_positions(int64_t most, const std::vector<IdPair>& train, const std::vector<IdPair>& valid) {
  size_t longest = 0;
  for (const auto* pairs : {&train, &valid})
    for (const IdPair& p : *pairs) longest = std::max({longest, p.source.size(), p.target.size()});
  check(static_cast<int64_t>(longest) <= most, "model.max_positions is ", most, ", but a sentence has ", longest,
        " tokens with its <eos>; data.max_tokens leaves out longer ones");
}

// A number that other sentences, or the same in another order, would hardly have (FNV-1a).
int64_t fingerprint(const std::vector<IdPair>& train, const std::vector<IdPair>& valid) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const auto* pairs : {&train, &valid}) {
    add(pairs->size());
    for (const IdPair& pair : *pairs)
      for (const auto* side : {&pair.source, &pair.target}) {
        add(side->size());
        for (const int32_t id : *side) add(static_cast<uint64_t>(id));
      }
  }
  return static_cast<int64_t>(hash);
}

// What may have changed since the last start is written just before the first checkpoint that was made with it.
class ConfigFile {
 public:
  ConfigFile(std::string path, std::string content) : path_(std::move(path)), content_(std::move(content)) {}
  void write_once() {
    if (!written_ && !path_.empty()) write_file(path_, content_);
    written_ = true;
  }

 private:
  std::string path_, content_;
  bool written_ = false;
};

class TrainLog : public Observer {
 public:
  explicit TrainLog(std::string path) : path_(std::move(path)) {}
  void started(const Progress& p) override { append(text(p.step > 0 ? "resumed" : "started", " at step ", p.step)); }
  void epoch(const Progress& p) override { append(progress_line(p)); }
  void finished(const Progress& p) override { append(text(p.step == p.steps ? "finished" : "stopped", " at step ", p.step, " of ", p.steps)); }

 private:
  void append(const std::string& line) { std::ofstream(path_, std::ios::app) << line << '\n'; }
  std::string path_;
};

// Validates, keeps the best weights, averages them over epochs, pins attention maps.
class Keeper : public Callback {
 public:
  Keeper(const TrainingConfig& config, const TranslationModel& model, const TranslationTask* valid, std::string folder, int64_t data,
         ConfigFile& file)
      : config_(config), model_(model), valid_(valid), folder_(std::move(folder)), data_(data), file_(file), average_(config.average_decay) {}

  struct Pinned {
    Ids source, lengths;
    std::vector<std::vector<int32_t>> targets;
    int32_t begin = 0;
  };
  void pin(Pinned pinned) { pinned_ = std::move(pinned); }

  void after_epoch(Progress& p) override {
    if (config_.average_decay > 0 || p.epoch > config_.epochs - config_.averaged_epochs()) add_to_average();
    if (config_.average_decay > 0) swap_average();  // the running average is the model, so it is what is looked at, judged and kept
    if (config_.attention_every > 0 && p.epoch % config_.attention_every == 0) save_attention(p.epoch);
    if (valid_) judge(p);
    if (config_.average_decay > 0) swap_average();
  }
  // Patience may have grown between two starts.
  bool ends_training() const override { return config_.patience > 0 && waited_ >= config_.patience; }

  void save(Checkpoint& out) const override {
    file_.write_once();
    out.counters["companion.best_bits"] = std::to_string(std::bit_cast<int64_t>(best_));
    out.set("companion.data", data_);
    out.set("companion.waited", waited_);
    out.set("companion.averaged", average_.count());
    if (average_.count() > 0) out.tensors["companion.average"] = average_.average();
    if (best_weights_.defined()) out.tensors["companion.best"] = best_weights_;
  }
  // The model of a shorter training that now goes on was the result until here.
  void saved() const override {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove(folder_ + "/model.safetensors", ignored);
  }
  void restore(const Checkpoint& in) override {
    const std::string file = folder_ + "/checkpoints/last.safetensors";
    if (in.integer("companion.data") != data_)
      throw Error(text(file, ": was trained on other sentences than the data files hold now"), "--restart begins again; -o names another folder");
    best_ = std::bit_cast<double>(in.integer("companion.best_bits"));
    waited_ = in.integer("companion.waited");
    const int64_t averaged = in.integer("companion.averaged");
    check(averaged >= 0, file, ": companion.averaged is ", averaged);
    const auto copied = [&](const char* name) {
      const auto found = in.tensors.find(name);
      const Shape& shape = model_.parameters().flat().shape();
      check(found != in.tensors.end(), file, ": has no tensor \"", name, "\"");
      check(found->second.shape() == shape, file, ": \"", name, "\" has shape ", found->second.shape(), ", the model needs ", shape);
      return found->second.copied();
    };
    if (averaged > 0) average_.restore(copied("companion.average"), averaged);
    if (keeps_best() && std::isfinite(best_)) best_weights_ = copied("companion.best");
  }

  // The weights that the run is for go into the model.
  TranslationRun::Kept choose(TranslationModel& model) const {
    using enum TranslationRun::Kept;
    const bool has_best = best_weights_.defined(), runs = config_.average_decay > 0;
    const Tensor flat = model.parameters().flat();
    if (average_.count() > 0 && !(runs && has_best)) {
      std::copy_n(average_.average().ptr(), flat.numel(), flat.mutable_ptr());
      return runs ? running_mean : mean_of_last;
    }
    if (!has_best) return last;
    std::copy_n(best_weights_.ptr(), flat.numel(), flat.mutable_ptr());
    return runs ? running_mean : best;
  }
  std::optional<double> best_loss() const { return best_weights_.defined() ? std::optional(best_) : std::nullopt; }

 private:
  // Measures the weights that the model has now, and keeps them if they are the best so far.
  void judge(Progress& p) {
    const double loss = valid_->validate();
    check(std::isfinite(loss), "the validation loss after epoch ", p.epoch, std::isnan(loss) ? " is not a number" : " is infinite", ": the weights are too large to compute with; nothing was written with them");
    p.valid_loss = loss;
    if (loss < best_) {
      best_ = loss;
      waited_ = 0;
      if (keeps_best()) best_weights_ = model_.parameters().flat().copied();
      if (!folder_.empty()) model_.save(folder_ + "/checkpoints/best.safetensors");
    } else {
      ++waited_;
    }
  }

  bool keeps_best() const { return config_.keep == KeptWeights::best; }

  void swap_average() {
    const Tensor flat = model_.parameters().flat();
    const Tensor& average = average_.average();
    std::swap_ranges(average.mutable_ptr(), average.mutable_ptr() + average.numel(), flat.mutable_ptr());
  }

  void add_to_average() {
    average_.add(model_.parameters().flat());
    check(std::isfinite(norm(average_.average())), "the mean of the weights is not finite: they are too large to be averaged; nothing was written with it");
  }

  void save_attention(int64_t epoch) {
    if (folder_.empty() || pinned_.targets.empty()) return;
    const auto decoder = model_.decoder();
    const auto forced = force(*decoder, pinned_.source, pinned_.lengths, pinned_.targets, pinned_.begin);
    std::map<std::string, Array> maps;
    for (size_t i = 0; i < forced.size(); ++i)
      if (forced[i].attention.defined()) maps[text("sentence_", i)] = Array(forced[i].attention);
    if (maps.empty()) return;
    make_folder(folder_ + "/attention");
    const std::string digits = std::to_string(epoch);
    write_npz(text(folder_, "/attention/epoch_", std::string(digits.size() < 4 ? 4 - digits.size() : 0, '0'), digits, ".npz"), maps);
  }

  const TrainingConfig& config_;
  const TranslationModel& model_;
  const TranslationTask* valid_;
  std::string folder_;
  int64_t data_;  // fingerprint
  ConfigFile& file_;
  Pinned pinned_;
  double best_ = std::numeric_limits<double>::infinity();
  int64_t waited_ = 0;
  ParameterAverage average_;
  Tensor best_weights_;
};

}  // namespace

std::span<const BookSentence> book_sentences() {
  static constexpr BookSentence sentences[] = {
      {"go .", "va !"}, {"i lost .", "j'ai perdu ."}, {"he's calm .", "il est calme ."}, {"i'm home .", "je suis chez moi ."}};
  return sentences;
}

std::string run_weights(const std::string& folder) {
  for (const char* name : {"/model.safetensors", "/checkpoints/best.safetensors", "/checkpoints/last.safetensors"})
    if (fs::exists(folder + name)) return folder + name;
  fail(folder, ": holds no model.safetensors and no checkpoint");
}

TranslationRun::TranslationRun(const TranslationConfig& config, std::string folder, OldRun old) : config_(config), folder_(std::move(folder)) {
  config_.check();
  const bool was_there = !folder_.empty() && fs::is_directory(folder_);
  if (was_there) lock_folder();
  if (!folder_.empty()) refuse_foreign(folder_);
  const bool keeps = !folder_.empty() && old == OldRun::gone_on_with, is_run = keeps && fs::exists(folder_ + "/config.yaml");
  const bool resumes = is_run && fs::exists(folder_ + "/checkpoints/last.safetensors");
  if (is_run) {
    const TranslationConfig before = settings_before();
    refuse_result_alone(folder_);
    if (resumes && config_.decoding.max_length == 0) config_.decoding.max_length = before.decoding.max_length;
  } else if (keeps) {
    refuse_remains(folder_);
  }
  text_ = std::make_unique<TranslationText>(
      read_translation_text(config_.data, static_cast<uint64_t>(config_.training.seed), resumes ? folder_ : std::string()));
  train_ = encoded(text_->train, tokenizers(), config_.data.max_tokens);
  valid_ = encoded(text_->valid, tokenizers(), 0);
  check(!train_.empty(), "no training pair is left: data.max_tokens is ", config_.data.max_tokens, ", and all ", text_->train.size(),
        " pairs are longer");
  if (const auto most = model_facts(config_).longest_input) check_positions(*most, train_, valid_);
  if (config_.decoding.max_length == 0) {
    size_t longest = 0;
    for (const IdPair& pair : train_) longest = std::max(longest, pair.target.size());
    config_.decoding.max_length = std::min<int64_t>(static_cast<int64_t>(2 * longest + 10), kLongestOutput);
  }
  model_ = std::make_unique<TranslationModel>(config_, tokenizers().source.size(), tokenizers().target.size(),
                                              Rng(static_cast<uint64_t>(config_.training.seed)).at("init"));
  epoch_updates_ = updates_of(training_batches(config_, train_, tokenizers()).batches(), config_.training.accumulate);
  check_warmup(config_.training, updates());
  if (!folder_.empty()) check_tokens(tokenizers());
  if (!folder_.empty() && !resumes) {
    if (!was_there) {  // it is made when nothing else can fail
      make_folder(folder_);
      lock_folder();
      check(!fs::exists(folder_ + "/config.yaml"), folder_, ": another training began there in the meantime");
    }
    if (old == OldRun::removed) remove_run(folder_);
    make_folder(folder_ + "/checkpoints");
    for (const char* name : {"/checkpoints/best.safetensors", "/attention"}) fs::remove_all(folder_ + name);  // of a start that never got to a checkpoint
    save_tokenizers(tokenizers(), folder_);
    write_file(folder_ + "/config.yaml", config_.settings().dump());  // last: it makes the folder a run
  }
}

void TranslationRun::lock_folder() {
  lock_ = FileLock(folder_ + "/train.lock", qkv::text(folder_, ": another training is at work in this folder"));
}

// Those of the folder; an error where others were asked for that cannot change in the middle of a run.
TranslationConfig TranslationRun::settings_before() const {
  const std::string path = folder_ + "/config.yaml";
  TranslationConfig old = read_run_config(path), asked = config_;
  const Settings was = old.settings(), now = asked.settings();
  for (size_t i = 0; i < now.all().size(); ++i) {
    const Setting &a = was.all()[i], &b = now.all()[i];
    if (a.get() != b.get() && !may_change(b, old.training, config_.training))
      throw Error(qkv::text(path, ": ", a.name(), " is ", a.get(), ", but ", b.get(), " was asked for", reason(b, old.training, config_.training)),
                  qkv::text(a.get().empty() ? "" : qkv::text(flag_of(b), " ", a.get(), " goes on with it; "), "--restart begins again; -o names another folder"));
  }
  return old;
}

FitResult TranslationRun::train(std::span<Observer* const> observers, const std::atomic<bool>* stop) {
  const TrainingConfig& c = config_.training;
  const int32_t pad = tokenizers().target.pad();
  const TranslationTask task(*model_, config_, training_batches(config_, train_, tokenizers()), pad);
  std::optional<TranslationTask> valid;
  if (!valid_.empty())
    valid.emplace(*model_, config_,
                  TranslationBatches(valid_, tokenizers().source.pad(), pad, tokenizers().target.bos(), {.rows = 64, .by_length = true, .source_steps = source_steps(config_), .shuffle = false}), pad);
  ConfigFile config_file(in_folder("config.yaml"), config_.settings().dump());
  Keeper keeper(c, *model_, valid ? &*valid : nullptr, folder_, fingerprint(train_, valid_), config_file);
  if (c.attention_every > 0) {
    const auto& from = valid_.empty() ? train_ : valid_;
    const std::vector<IdPair> first(from.begin(), from.begin() + std::min<std::ptrdiff_t>(4, static_cast<std::ptrdiff_t>(from.size())));
    const TranslationBatch batch =
        TranslationBatches(first, tokenizers().source.pad(), pad, tokenizers().target.bos(), {.rows = 4, .source_steps = source_steps(config_), .shuffle = false}).batch(0, 0);
    Keeper::Pinned pinned{batch.source, batch.source_lens, {}, tokenizers().target.bos()};
    for (const IdPair& pair : first) pinned.targets.push_back(pair.target);
    keeper.pin(std::move(pinned));
  }

  const Parameters& parameters = model_->parameters();
  Adam adam(parameters, {.beta2 = static_cast<float>(c.beta2), .decay = static_cast<float>(c.weight_decay)});
  std::vector<Observer*> all(observers.begin(), observers.end());
  std::optional<MetricsFile> metrics;
  std::optional<TrainLog> log;
  if (!folder_.empty()) {
    all.insert(all.begin(), &metrics.emplace(in_folder("metrics.jsonl")));
    all.push_back(&log.emplace(in_folder("train.log")));
  }
  const FitResult result = fit(parameters, adam, task,
                               {.epochs = c.epochs,
                                .rate = schedule(c, updates_of(task.batches(), c.accumulate)),
                                .accumulate = c.accumulate,
                                .clip = c.clip,
                                .seed = static_cast<uint64_t>(c.seed),
                                .checkpoint = in_folder("checkpoints/last.safetensors"),
                                .checkpoint_seconds = c.checkpoint_seconds,
                                .callbacks = {&keeper},
                                .stop = stop},
                               all);
  if (!result.interrupted) {
    kept_ = keeper.choose(*model_);
    if (kept_ == Kept::best || kept_ == Kept::running_mean) kept_loss_ = keeper.best_loss();
    if (!folder_.empty()) model_->save(in_folder("model.safetensors"));
  }
  lock_ = FileLock();
  return result;
}

}  // namespace qkv
