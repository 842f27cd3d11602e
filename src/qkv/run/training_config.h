// How a model is trained, whatever it is trained for: the block `training` of a configuration.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "qkv/core/language.h"
#include "qkv/core/open.h"
#include "qkv/train/schedule.h"
#include "qkv/train/shard_plan.h"

namespace qkv {

/// Where there is validation: the weights with the lowest loss, or the last.
enum class KeptWeights { best, last };
constexpr std::array<std::string_view, 2> names(KeptWeights) { return {"best", "last"}; }

/// adamw: weight decay apart from the loss (Loshchilov and Hutter, 2019), without it Adam. adam, sgd: weight decay as a
/// term of the loss.
enum class OptimizerKind { adamw, adam, sgd };
constexpr std::array<std::string_view, 3> names(OptimizerKind) { return {"adamw", "adam", "sgd"}; }

struct TrainingConfig {
  int64_t epochs = 10;
  int64_t batch_rows = 64, batch_tokens = 0;  // rows, or a budget of padded tokens, of a batch
  int64_t accumulate = 1;                     // batches of a step
  std::optional<int64_t> shards = {};         // into how many parts a batch is cut; absent: by the size of the model
  bool by_length = false;                     // batches of rows of like length
  double rate = 1e-3;
  ScheduleKind schedule = ScheduleKind::constant;
  int64_t warmup = 0;
  double decay_factor = 0.5;  // schedule step: the rate times this every decay_epochs
  int64_t decay_epochs = 1;
  double clip = 1;
  OptimizerKind optimizer = OptimizerKind::adamw;
  double weight_decay = 0;
  double momentum = 0;   // of SGD
  double beta2 = 0.999;  // of Adam
  double label_smoothing = 0;
  int64_t patience = 0;  // epochs without a better validation loss before the end; 0: never
  KeptWeights keep = KeptWeights::best;
  double average_last = 0;   // the model is the mean of the weights after this share of the epochs, the last ones
  double average_decay = 0;  // after every epoch average <- decay * average + (1 - decay) * weights; it is the model
  int64_t seed = 1;
  double checkpoint_seconds = 5;
  int64_t attention_every = 0;  // epochs between pictures of the pinned sentences; 0: none

  /// How many epochs average_last stands for; one is not a mean.
  int64_t averaged_epochs() const;
  /// Refuses settings that exclude each other. `validates`: there is data to validate with.
  void check(bool validates) const;

  void fields(auto&& f) {
    constexpr int64_t most_epochs = 1'000'000'000;  // times batches, it is still a number of steps
    constexpr double most_rate = 1e38;              // of what becomes a float
    f("epochs", Text{"passes over the data", "训练轮数"}, epochs, 1, most_epochs);
    f("batch_rows", Text{"rows per batch: of translation, sentence pairs", "每批句对数"}, batch_rows, 1, 1'000'000);
    f("batch_tokens",
      Text{"or at most this many padded tokens per batch, 0 by rows", "或每批最多的（填充后）词元数，0 按句对"},
      batch_tokens, 0);
    f("accumulate", Text{"batches whose gradients make one step", "每步累积梯度的批数"}, accumulate, 1, 1'000'000);
    f("shards",
      Text{
          "parts of a batch that are computed side by side, auto by the size of the model: the sum of their gradients, and with it the last bits, depend on it",
          "一批分成几份并行计算，auto 由模型大小决定；梯度之和的末位取决于此"},
      shards, Open{"auto"}, 1, ShardPolicy::kMost);
    f("by_length", Text{"batches of sentences of like length", "把长度相近的句子放在一批"}, by_length);
    f("rate", Text{"learning rate", "学习率"}, rate, 0, most_rate);
    f("schedule", Text{"how the rate changes", "学习率的变化"}, schedule);
    f("warmup", Text{"steps of rising rate", "预热步数"}, warmup, 0);
    f("decay_factor", Text{"schedule step: the rate is multiplied by this", "step：学习率乘以该值"}, decay_factor, 0,
      1);
    f("decay_epochs", Text{"schedule step: after this many epochs, again and again", "step：每隔若干轮"}, decay_epochs,
      1, most_epochs);
    f("clip", Text{"limit of the gradient's norm, 0 none", "梯度范数上限，0 不限"}, clip, 0);
    f("optimizer",
      Text{"adamw is Adam with weight decay apart from the loss; adam and sgd have it as a term of the loss",
           "优化算法；adamw 的权重衰减与损失分离，adam 与 sgd 的则是损失中的一项"},
      optimizer);
    f("weight_decay", Text{"of all parameters, 0 none", "权重衰减，0 不用"}, weight_decay, 0, most_rate);
    f("momentum", Text{"of sgd", "sgd 的动量"}, momentum, 0, 0.999);
    f("beta2", Text{"of Adam: how slowly the mean of squared gradients forgets", "Adam 的 beta2"}, beta2, 0.5, 0.99999);
    f("label_smoothing", Text{"share of the wanted distribution spread over all tokens", "标签平滑"}, label_smoothing,
      0, 0.99);
    f("patience",
      Text{"epochs without a better validation loss before the end, 0 never", "验证损失不再下降多少轮后停止，0 不停"},
      patience, 0);
    f("keep",
      Text{"the weights of the model: those with the best validation loss, or the last",
           "模型的权重：验证损失最低者，或最后的"},
      keep);
    f("average_last",
      Text{"the model is the mean of the weights after the last epochs, this share of them; 0 none",
           "模型取最后若干轮（占总轮数的这一比例）权重的平均，0 不取"},
      average_last, 0, 1);
    f("average_decay",
      Text{"the model is a running mean of the weights, which after every epoch keeps this share of itself; 0 none",
           "模型取权重的滑动平均，每轮之后保留这一比例的旧平均；0 不取"},
      average_decay, 0, 0.9999);
    f("seed", Text{"of weights, order and dropout", "权重、顺序与 dropout 的种子"}, seed, 0);
    f("checkpoint_seconds",
      Text{"seconds between two checkpoints, 0: one after every epoch", "两次检查点的间隔（秒），0 为每轮之后"},
      checkpoint_seconds, 0);
    f("attention_every",
      Text{
          "epochs between saved attention maps of four sentences, the first of the validation set or else of the training set; 0 none",
          "每隔若干轮保存四个句子（验证集的前四句，没有验证集则为训练集的）的注意力，0 不保存"},
      attention_every, 0);
  }
};

}  // namespace qkv
