// From a configuration and a folder to a classifier that can be trained.
#include "qkv/tasks/vision/run.h"

#include "qkv/core/check.h"
#include "qkv/run/model_file.h"
#include "qkv/tasks/vision/classifier.h"

namespace qkv {
namespace {

const VisionConfig& checked(const VisionConfig& config) {
  config.check();
  return config;
}

// The classes of the model that the training starts from, or of the run that it resumes; none without.
std::vector<std::string> known_classes(const std::string& init, const RunFolder& run) {
  if (run.resumes()) return read_image_facts(run.path()).classes;
  if (init.empty()) return {};
  check_task(init, run_task(init), TaskKind::vision);
  return read_image_facts(init).classes;
}

}  // namespace

VisionRun::VisionRun(const VisionConfig& config, std::string folder, ExistingRun existing, Ranks* ranks)
    : config_(checked(config)),
      ranks_(ranks),
      folder_(std::move(folder), existing, {kStartFile, facts_of(TaskKind::vision).mark}) {
  if (folder_.holds_run()) {
    VisionConfig saved, asked = config_;
    saved.read(run_config_path(folder_.path(), TaskKind::vision));
    ResumeRules rules = training_changes(saved.training, config_.training);
    rules.flags["data.images"] = "--images";
    folder_.check_settings(saved.settings(), asked.settings(), rules);
  }
  const auto seed = static_cast<uint64_t>(config_.training.seed);
  const std::vector<std::string> known = known_classes(config_.training.init, folder_);
  data_ = read_vision_data(config_.data, seed, known);
  config_.model.check(data_.facts.size);
  model_ = std::make_unique<VisionTransformer>(config_.model, data_.facts.size, std::ssize(data_.facts.classes),
                                               Rng(seed).at("init"));
  parameters_ = flatten(*model_);
  if (!config_.training.init.empty() && !folder_.resumes()) {
    // Other classes than those of the folder need a layer of their own.
    std::set<std::string> anew;
    if (data_.facts.classes != known) anew = {"output.weight", "output.bias"};
    start_ = start_from(config_.training.init, parameters_, anew);
  }
  task_ = std::make_unique<VisionTask>(*model_, config_, data_);
  check_warmup(config_.training, updates());
  const auto write_own = [&] {
    if (start_) save(*start_, folder_.path());
    save_image_facts(data_.facts, folder_.path());
  };
  folder_.begin(write_own, config_.settings().dump());
}

TrainResult VisionRun::train(std::span<Observer* const> observers, const std::atomic<bool>* stop) {
  TrainedModel trained{.parameters = parameters_,
                       .save = [this](const std::string& path) { write_weights(path, parameters_); },
                       .data_fingerprint = task_->fingerprint(),
                       .attention = [this] { return task_->attention(); }};
  if (data_.valid.count() > 0) trained.validate = [this] { return task_->validate(ranks_); };
  Trainer trainer(config_.training, folder_, config_.settings().dump(), std::move(trained), ranks_);
  const TrainResult result = trainer.train(*task_, observers, stop);
  folder_.unlock();
  return result;
}

}  // namespace qkv
