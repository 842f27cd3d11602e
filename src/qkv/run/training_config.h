// How a model is trained, for any task: the block `training` of a configuration.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/core/open.h"
#include "qkv/train/schedule.h"
#include "qkv/train/shard_plan.h"

namespace QKV_API qkv {

/// With validation: keep the weights with the lowest loss, or the last.
enum class KeptWeights { best, last };
constexpr std::array<std::string_view, 2> names(KeptWeights) { return {"best", "last"}; }

/// adamw: decoupled weight decay (Loshchilov and Hutter, 2019); without weight decay it is Adam. adam, sgd: weight
/// decay as a term of the loss.
enum class OptimizerKind { adamw, adam, sgd };
constexpr std::array<std::string_view, 3> names(OptimizerKind) { return {"adamw", "adam", "sgd"}; }

/// What weight decay applies to: every parameter, or matrices alone, not biases and norms.
enum class DecayedWeights { all, matrices };
constexpr std::array<std::string_view, 2> names(DecayedWeights) { return {"all", "matrices"}; }

struct TrainingConfig {
  int64_t epochs = 10;
  int64_t batch_rows = 64, batch_tokens = 0;  // rows per batch, or a limit of padded tokens per batch
  int64_t accumulate = 1;                     // batches per step
  std::optional<int64_t> shards = {};         // number of parts of a batch; absent: by the size of the model
  bool by_length = false;                     // batches of rows of similar length
  double rate = 1e-3;
  ScheduleKind schedule = ScheduleKind::constant;
  int64_t warmup = 0;
  double min_rate = 0;        // schedule cosine: the rate at the end
  double decay_factor = 0.5;  // schedule step: the rate times this every decay_epochs
  int64_t decay_epochs = 1;
  double clip = 1;
  OptimizerKind optimizer = OptimizerKind::adamw;
  double weight_decay = 0;
  DecayedWeights decayed = DecayedWeights::all;
  double momentum = 0;   // for SGD
  double beta2 = 0.999;  // for Adam
  double label_smoothing = 0;
  int64_t patience = 0;  // end after this many epochs without a better validation loss; 0: never
  KeptWeights keep = KeptWeights::best;
  double average_last = 0;   // share of the epochs, the last ones, whose weights are averaged for the model
  double average_decay = 0;  // the model is average <- decay * average + (1 - decay) * weights, after each epoch
  int64_t seed = 1;
  double checkpoint_seconds = 5;
  std::string init = {};        // folder of a run, or a pretrained one, whose weights the training starts from
  int64_t attention_every = 0;  // epochs between snapshots of attention; 0: none

  /// The number of epochs that average_last means; 0 instead of 1.
  int64_t averaged_epochs() const;
  /// Refuses settings that exclude each other. `validates`: there is data to validate with.
  void check(bool validates) const;

  void fields(auto&& f) {
    constexpr int64_t most_epochs = 1'000'000'000;  // times the number of batches, it still fits in an int64_t
    constexpr double most_rate = 1e38;              // fits in a float
    f("epochs", tr("passes over the data"), epochs, 1, most_epochs);
    f("batch_rows", tr("rows per batch (translation: sentence pairs)"), batch_rows, 1, 1'000'000);
    f("batch_tokens", tr("or at most this many padded tokens per batch; 0: use batch_rows"), batch_tokens, 0);
    f("accumulate", tr("batches per step, whose gradients are added"), accumulate, 1, 1'000'000);
    f("shards",
      tr("parts of a batch that are computed in parallel; auto: by the size of the model. The last bits of the "
         "gradient depend on it"),
      shards, Open{"auto"}, 1, ShardPolicy::kMost);
    f("by_length", tr("batches of sentences of similar length"), by_length);
    f("rate", tr("learning rate"), rate, 0, most_rate);
    f("schedule", tr("how the rate changes"), schedule);
    f("warmup", tr("steps with a rising rate"), warmup, 0);
    f("min_rate", tr("schedule cosine: the rate at the end"), min_rate, 0, most_rate);
    f("decay_factor", tr("schedule step: the rate is multiplied by this"), decay_factor, 0, 1);
    f("decay_epochs", tr("schedule step: every this many epochs"), decay_epochs, 1, most_epochs);
    f("clip", tr("limit of the gradient norm; 0: none"), clip, 0);
    f("optimizer", tr("adamw is Adam with decoupled weight decay; adam and sgd have it as a term of the loss"),
      optimizer);
    f("weight_decay", tr("weight decay; 0: none"), weight_decay, 0, most_rate);
    f("decayed", tr("weight decay of all parameters, or of matrices only: not of biases and norms"), decayed);
    f("momentum", tr("momentum of sgd"), momentum, 0, 0.999);
    f("beta2", tr("Adam's beta2: decay of the mean of squared gradients"), beta2, 0.5, 0.99999);
    f("label_smoothing", tr("share of the target distribution that is spread over all tokens"), label_smoothing, 0,
      0.99);
    f("patience", tr("stop after this many epochs without a better validation loss; 0: never"), patience, 0);
    f("keep", tr("weights of the model: those with the best validation loss, or the last"), keep);
    f("average_last", tr("the model is the mean of the weights after this share of the epochs, the last ones; 0: off"),
      average_last, 0, 1);
    f("average_decay",
      tr("the model is a running mean of the weights, which keeps this share of itself after every epoch; 0: off"),
      average_decay, 0, 0.9999);
    f("seed", tr("seed of weights, order and dropout"), seed, 0);
    f("checkpoint_seconds", tr("seconds between checkpoints; 0: one after every epoch"), checkpoint_seconds, 0);
    f("init",
      tr("start from the weights of this folder: a pretrained model, or a run such as one that was pruned; settings, "
         "tokenizer and weights come from there"),
      init, "DIR");
    f("attention_every",
      tr("save the attention maps of the first four sentences (of the validation set if there is one) every this many "
         "epochs; 0: never"),
      attention_every, 0);
  }
};

}  // namespace qkv
