// Builds a training from a configuration.
#include "qkv/run/trainer.h"

#include <algorithm>
#include <fstream>

#include "qkv/core/check.h"
#include "qkv/run/rank_rows.h"
#include "qkv/train/progress.h"

namespace qkv {
namespace {

class TrainLog : public Observer {
 public:
  explicit TrainLog(std::string path) : path_(std::move(path)) {}
  void started(const Progress& p) override { append(text(p.step > 0 ? "resumed" : "started", " at step ", p.step)); }
  void epoch(const Progress& p) override { append(progress_line(p).in(Language::en)); }
  void finished(const Progress& p) override {
    append(text(p.step == p.steps ? "finished" : "stopped", " at step ", p.step, " of ", p.steps));
  }

 private:
  void append(const std::string& line) { std::ofstream(path_, std::ios::app) << line << '\n'; }
  std::string path_;
};

}  // namespace

Trainer::Trainer(const TrainingConfig& config, const RunFolder& folder, std::string config_text, TrainedModel model,
                 Ranks* ranks)
    : config_(config),
      folder_(folder),
      model_(std::move(model)),
      ranks_(ranks),
      optimizer_(make_optimizer(config)),
      record_(folder.path(), std::move(config_text), model_.data_fingerprint) {
  const Parameters& parameters = model_.parameters;
  if (!folder.in_memory()) {
    files_.push_back(std::make_unique<MetricsFile>(folder.file("metrics.jsonl")));
    files_.push_back(std::make_unique<TrainLog>(folder.file("train.log")));
  }
  std::vector<Callback*> judges;  // evaluate the weights after an epoch
  if (config.attention_every > 0 && model_.attention && !folder.in_memory()) {
    snapshots_ = std::make_unique<AttentionSnapshots>(folder.path(), config.attention_every, model_.attention);
    judges.push_back(snapshots_.get());
  }
  if (model_.validate) {
    validation_ = std::make_unique<Validation>(model_.validate, config.patience);
    const auto improved = [this] {
      if (!folder_.in_memory()) model_.save(folder_.file("checkpoints/best.safetensors"));
    };
    best_ = std::make_unique<BestWeights>(parameters, *validation_, config.keep == KeptWeights::best, improved);
    judges.insert(judges.end(), {validation_.get(), best_.get()});
  }
  callbacks_ = {&record_};
  if (config.average_decay > 0 || config.averaged_epochs() > 0) {
    const WeightAverage::Options options{.decay = config.average_decay,
                                         .first_epoch = config.epochs - config.averaged_epochs() + 1};
    average_ = std::make_unique<WeightAverage>(parameters, options, judges);
    callbacks_.push_back(average_.get());
  } else {
    callbacks_.insert(callbacks_.end(), judges.begin(), judges.end());
  }
}

FitOptions Trainer::options(int64_t batches) {
  std::optional<ShardPolicy> shards;
  if (config_.shards) shards = ShardPolicy::number(*config_.shards);
  return {.epochs = config_.epochs,
          .rate = make_schedule(config_, updates_of(batches, config_.accumulate)),
          .accumulate = config_.accumulate,
          .clip = config_.clip,
          .seed = static_cast<uint64_t>(config_.seed),
          .shards = shards,
          .checkpoint = folder_.file("checkpoints/last.safetensors"),
          .checkpoint_seconds = config_.checkpoint_seconds,
          .callbacks = callbacks_,
          .ranks = ranks_};
}

// Before the first step: all ranks have the same data and the same model, and each can have a part of a step. Returns a
// note if some have none.
Text Trainer::check_ranks(int64_t batch_rows, const FitOptions& options) const {
  const std::vector<std::string> data = ranks_->gather(std::to_string(model_.data_fingerprint)),
                                 sizes = ranks_->gather(std::to_string(model_.parameters.count()));
  for (int r = 1; r < ranks_->size(); ++r) {
    const auto i = static_cast<size_t>(r);
    require(
        data[i] == data[0],
        "{rank} has other training data than rank 0 (fingerprint {theirs}, not {first}): the files must be the same "
        "everywhere",
        "rank"_a = ranks_->name(r), "theirs"_a = data[i], "first"_a = data[0]);
    require(sizes[i] == sizes[0], "{rank} has a model with {theirs} parameters, that of rank 0 has {first}",
            "rank"_a = ranks_->name(r), "theirs"_a = sizes[i], "first"_a = sizes[0]);
  }
  check_rank_rows(ranks_->size(), batch_rows, config_);  // an epoch may have fewer than the configuration says
  const ShardPolicy policy = options.shards.value_or(ShardPolicy::automatic(model_.parameters.count()));
  const int64_t shards = policy.plan(batch_rows).count() * config_.accumulate;
  if (shards >= ranks_->size()) return {};
  return tr(
      "{ranks} ranks share {shards} shards (training.shards): {idle} of them compute nothing; --shards {ranks} "
      "gives each a part, and changes the last bits of the result",
      "ranks"_a = ranks_->size(), "shards"_a = shards, "idle"_a = ranks_->size() - shards);
}

// metrics.jsonl is written before the other observers are called, train.log after them.
std::vector<Observer*> Trainer::all_observers(std::span<Observer* const> others) {
  std::vector<Observer*> all(others.begin(), others.end());
  if (!files_.empty()) {
    all.insert(all.begin(), files_.front().get());
    all.push_back(files_.back().get());
  }
  return all;
}

TrainResult Trainer::finish(const FitResult& fitted) const {
  TrainResult result{fitted, Kept::last, {}};
  if (result.interrupted) return result;
  result.kept = put_kept_weights();
  const bool measured = result.kept == Kept::best || result.kept == Kept::running_mean;
  if (measured && best_ && best_->weights().defined()) result.kept_loss = validation_->best();
  if (!folder_.in_memory()) model_.save(folder_.file("model.safetensors"));
  return result;
}

Kept Trainer::put_kept_weights() const {
  const bool has_best = best_ && best_->weights().defined();
  const bool runs = average_ && average_->is_running(), averages = average_ && average_->weights().defined();
  const bool takes_average = averages && !(runs && has_best);
  if (!takes_average && !has_best) return Kept::last;
  const Tensor& from = takes_average ? average_->weights() : best_->weights();
  Tensor flat = model_.parameters.flat();
  std::copy_n(from.ptr(), flat.numel(), flat.mutable_ptr());
  if (runs) return Kept::running_mean;
  return takes_average ? Kept::mean_of_last : Kept::best;
}

}  // namespace qkv
