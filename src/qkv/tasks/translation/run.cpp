// From a configuration and a folder to a task that can be trained.
#include "qkv/tasks/translation/run.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/run/model_file.h"

namespace qkv {
namespace {

// The files of the tokenizers, those of the source side written first.
const std::vector<std::string> kOwnFiles = {"source.model",     "target.model",         "vocab.source.txt",
                                            "vocab.target.txt", "tokenizer.target.txt", "tokenizer.source.txt"};

const TranslationConfig& checked(const TranslationConfig& config) {
  config.check();
  return config;
}

// A vocabulary file has one token per line.
void check_tokens(const Tokenizers& tokenizers) {
  for (const Tokenizer* side : {&tokenizers.source, &tokenizers.target})
    if (const Vocabulary* vocabulary = side->vocabulary())
      for (int32_t id = 0; id < vocabulary->size(); ++id)
        require(vocabulary->token(id).find_first_of("\r\n") == std::string::npos,
                "the training text has a carriage return inside a sentence; lines must end in LF or CRLF");
}

// Pairs as ids, without those with more than `longest` tokens on a side (0: no limit).
std::vector<IdPair> encoded(const SentencePairs& text, const Tokenizers& tokenizers, int64_t longest) {
  std::vector<IdPair> pairs = encode_pairs(text, tokenizers.source, tokenizers.target);
  if (longest > 0)
    std::erase_if(pairs, [&](const IdPair& p) {
      return static_cast<int64_t>(std::max(p.source.size(), p.target.size())) > longest;
    });
  return pairs;
}

// A learned table must have a row for every token of every sentence.
void check_positions(int64_t most, const std::vector<IdPair>& train, const std::vector<IdPair>& valid) {
  size_t longest = 0;
  for (const auto* pairs : {&train, &valid})
    for (const IdPair& p : *pairs) longest = std::max({longest, p.source.size(), p.target.size()});
  require(
      static_cast<int64_t>(longest) <= most,
      "model.max_positions is {most}, but a sentence has {longest} tokens including <eos>; data.max_tokens leaves out "
      "longer ones",
      "most"_a = most, "longest"_a = longest);
}

// Twice the longest training target, and some more.
int64_t default_max_length(const std::vector<IdPair>& pairs) {
  size_t longest = 0;
  for (const IdPair& pair : pairs) longest = std::max(longest, pair.target.size());
  return std::min<int64_t>(static_cast<int64_t>(2 * longest + 10), kLongestOutput);
}

}  // namespace

std::span<const BookSentence> book_sentences() {
  static constexpr BookSentence sentences[] = {{"go .", "va !"},
                                               {"i lost .", "j'ai perdu ."},
                                               {"he's calm .", "il est calme ."},
                                               {"i'm home .", "je suis chez moi ."}};
  return sentences;
}

TranslationRun::TranslationRun(const TranslationConfig& config, std::string folder, ExistingRun existing, Ranks* ranks)
    : config_(checked(config)), ranks_(ranks), folder_(std::move(folder), existing, kOwnFiles) {
  if (folder_.holds_run()) check_existing();
  const auto seed = static_cast<uint64_t>(config_.training.seed);
  text_ = std::make_unique<TranslationText>(
      read_translation_text(config_.data, seed, folder_.resumes() ? folder_.path() : config_.training.init_from));
  std::vector<IdPair> train = encoded(text_->train, tokenizers(), config_.data.max_tokens),
                      valid = encoded(text_->valid, tokenizers(), 0);
  require(!train.empty(), "no training pair is left: data.max_tokens is {max_tokens}, and all {train} pairs are longer",
          "max_tokens"_a = config_.data.max_tokens, "train"_a = text_->train.size());
  if (const auto most = config_.facts().longest_input) check_positions(*most, train, valid);
  if (config_.decoding.max_length == 0) config_.decoding.max_length = default_max_length(train);
  model_ = std::make_unique<TranslationModel>(config_, tokenizers().sizes(), Rng(seed).at("init"));
  if (!config_.training.init_from.empty() && !folder_.resumes())
    start_from(config_.training.init_from, model_->parameters());
  task_ = std::make_unique<TranslationTask>(*model_, config_, std::move(train), std::move(valid), tokenizers());
  check_warmup(config_.training, updates());
  if (folder_.in_memory()) return;
  check_tokens(tokenizers());
  folder_.begin([&] { save_tokenizers(tokenizers(), folder_.path()); }, config_.settings().dump());
}

// The folder already has a run: its settings must equal the requested ones, except those that may change.
void TranslationRun::check_existing() {
  TranslationConfig saved = read_run_config(folder_.file("config.yaml"));
  ResumeRules rules = training_changes(saved.training, config_.training);
  rules.may_change.insert("decoding");
  rules.flags["data.pairs"] = "--data";
  TranslationConfig asked = config_;
  folder_.check_settings(saved.settings(), asked.settings(), rules);
  if (folder_.resumes() && config_.decoding.max_length == 0) config_.decoding.max_length = saved.decoding.max_length;
}

TrainResult TranslationRun::train(std::span<Observer* const> observers, const std::atomic<bool>* stop) {
  TrainedModel trained{.parameters = model_->parameters(),
                       .save = [this](const std::string& path) { model_->save(path); },
                       .data_fingerprint = task_->fingerprint(),
                       .attention = [this] { return task_->attention(); }};
  if (!task_->valid_pairs().empty()) trained.validate = [this] { return task_->validate(ranks_); };
  Trainer trainer(config_.training, folder_, config_.settings().dump(), std::move(trained), ranks_);
  const TrainResult result = trainer.train(*task_, observers, stop);
  folder_.unlock();
  return result;
}

}  // namespace qkv
