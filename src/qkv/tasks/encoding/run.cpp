// From a configuration and a folder to an encoder that can be trained.
#include "qkv/tasks/encoding/run.h"

#include "qkv/core/check.h"
#include "qkv/run/model_file.h"

namespace qkv {
namespace {

constexpr const char* kTokenizer = "tokenizer";

const EncodingConfig& checked(const EncodingConfig& config) {
  config.check();
  return config;
}

// Classes of the model that the training starts from; none if it has no such head.
std::vector<std::string> classes_of(const std::string& folder) {
  if (!is_pretrained_folder(folder)) return load_encoder_classes(folder);
  return read_pretrained_encoding_config(folder).model.bert.classes;
}

}  // namespace

PretrainedTokenizer open_encoder_tokenizer(const std::string& folder, Architecture architecture) {
  return PretrainedTokenizer::open(is_pretrained_folder(folder) ? folder : folder + "/" + kTokenizer,
                                   name_of(architecture));
}

EncodingRun::EncodingRun(const EncodingConfig& config, std::string folder, ExistingRun existing, Ranks* ranks)
    : config_(checked(config)),
      ranks_(ranks),
      folder_(std::move(folder), existing, {kStartFile, kTokenizer, facts_of(TaskKind::encoding).mark}) {
  if (folder_.holds_run()) {
    EncodingConfig saved = read_encoding_config(run_config_path(folder_.path(), TaskKind::encoding)), asked = config_;
    folder_.check_settings(saved.settings(), asked.settings(), training_changes(saved.training, config_.training));
  }
  const std::string& from = folder_.resumes() ? folder_.path() : config_.training.init;
  check_task(from, run_task(from), TaskKind::encoding);
  BertConfig& bert = config_.model.bert;
  tokenizer_ = open_encoder_tokenizer(from, config_.model.architecture);
  require(tokenizer_->size() <= bert.model.words,
          "{folder}: its tokenizer has {tokens} tokens, but model.words is {rows}", "folder"_a = from,
          "tokens"_a = tokenizer_->size(), "rows"_a = bert.model.words);
  require(bert.head != EncoderHead::words || tokenizer_->special().mask >= 0,
          "{folder}: its tokenizer has no token for a hidden word", "folder"_a = from);
  const std::vector<std::string> known =
      bert.head == EncoderHead::classes ? classes_of(from) : std::vector<std::string>();
  data_ = read_encoding_data(config_, *tokenizer_, known);
  bert.classes = data_.classes;
  model_ = make_bert_model(bert, Rng(static_cast<uint64_t>(config_.training.seed)).at("init"));
  parameters_ = flatten(model_);
  if (!folder_.resumes()) {
    // Other classes than those of the folder need a layer of their own.
    std::set<std::string> anew;
    if (data_.classes != known) anew = {"classes.output.weight", "classes.output.bias"};
    start_ = start_from(config_.training.init, parameters_, anew);
  }
  task_ = std::make_unique<EncodingTask>(model_, config_, data_, tokenizer_->special().mask, tokenizer_->size());
  check_warmup(config_.training, updates());
  const auto write_own = [&] {
    if (start_) save(*start_, folder_.path());
    tokenizer_->save(folder_.file(kTokenizer));
    save_encoder_classes(data_.classes, folder_.path());
  };
  folder_.begin(write_own, config_.settings().dump());
}

TrainResult EncodingRun::train(std::span<Observer* const> observers, const std::atomic<bool>* stop) {
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
