// From a configuration and a folder to a task that can be trained.
#include "qkv/tasks/language/run.h"

#include "qkv/core/check.h"
#include "qkv/core/counts.h"
#include "qkv/run/model_file.h"

namespace qkv {
namespace {

const std::vector<std::string> kOwnFiles = {kStartFile, "tokenizer", "text.model", "vocab.text.txt",
                                            "tokenizer.text.txt"};

const LanguageConfig& checked(const LanguageConfig& config) {
  config.check();
  return config;
}

}  // namespace

LanguageRun::LanguageRun(const LanguageConfig& config, std::string folder, ExistingRun existing, Ranks* ranks)
    : config_(checked(config)), ranks_(ranks), folder_(std::move(folder), existing, kOwnFiles) {
  if (folder_.holds_run()) check_existing();
  text_ = std::make_unique<LanguageText>(
      read_language_text(config_.data, folder_.resumes() ? folder_.path() : config_.training.init));
  model_ = LanguageModel(config_.model, text_->tokenizer.size(),
                         Rng(static_cast<uint64_t>(config_.training.seed)).at("init"));
  parameters_ = flatten(model_);
  if (!config_.training.init.empty() && !folder_.resumes()) start_ = start_from(config_.training.init, parameters_);
  task_ = std::make_unique<LanguageTask>(model_, config_, std::move(text_->train_ids), std::move(text_->valid_ids),
                                         config_.data.built_in() ? "en-fr" : config_.data.text);
  check_validation();
  check_warmup(config_.training, updates());
  const auto write_own = [&] {
    if (start_) save(*start_, folder_.path());
    text_->tokenizer.save(folder_.path());
  };
  folder_.begin(write_own, config_.settings().dump());
}

// A text for validation that was asked for must be long enough, else patience and the best weights would mean nothing.
void LanguageRun::check_validation() const {
  const LanguageDataConfig& d = config_.data;
  if (task_->validates() || (d.valid_text.empty() && d.valid_share == 0)) return;
  const Text name = d.valid_text.empty() ? tr("the validation part of {text}", "text"_a = d.text) : Text(d.valid_text);
  throw Error(tr("{name}: has {tokens}; a validation text needs at least 2", "name"_a = name,
                 "tokens"_a = token_count(task_->valid_ids().size())),
              d.valid_text.empty() ? tr("use a larger --valid-share, or 0 for none") : Text());
}

// The folder already has a run: its settings must equal the requested ones, except those that may change.
void LanguageRun::check_existing() const {
  LanguageConfig saved = read_language_config(run_config_path(folder_.path(), LanguageConfig::kTask)), asked = config_;
  ResumeRules rules = training_changes(saved.training, config_.training);
  rules.may_change.insert("decoding");
  folder_.check_settings(saved.settings(), asked.settings(), rules);
}

TrainResult LanguageRun::train(std::span<Observer* const> observers, const std::atomic<bool>* stop) {
  TrainedModel trained{.parameters = parameters_,
                       .save = [this](const std::string& path) { write_weights(path, parameters_); },
                       .data_fingerprint = task_->fingerprint(),
                       .attention = [this] { return task_->attention(); }};
  if (task_->validates()) trained.validate = [this] { return task_->validate(ranks_); };
  Trainer trainer(config_.training, folder_, config_.settings().dump(), std::move(trained), ranks_);
  const TrainResult result = trainer.train(*task_, observers, stop);
  folder_.unlock();
  return result;
}

}  // namespace qkv
