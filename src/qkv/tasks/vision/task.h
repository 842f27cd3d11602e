// Image classification as a task: batches of images, the loss of some rows of a batch, and validation.
#pragma once

#include <map>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/array.h"
#include "qkv/models/vision_transformer.h"
#include "qkv/run/callbacks.h"
#include "qkv/tasks/vision/data.h"
#include "qkv/train/fit.h"

namespace QKV_API qkv {

struct VisionBatch {
  std::vector<int64_t> rows;  // numbers of images
  int64_t epoch = 0;
};

class VisionTask {
 public:
  /// All must outlive it.
  VisionTask(const VisionTransformer& model, const VisionConfig& config, const VisionData& data);

  int64_t batches() const;
  /// In an order that depends on seed and epoch; augmentation depends on seed, epoch and image alone.
  VisionBatch batch(int64_t epoch, int64_t index) const;
  int64_t rows(const VisionBatch& batch) const { return std::ssize(batch.rows); }
  Loss loss(const VisionBatch& batch, int64_t begin, int64_t end, const Run& run) const;
  Counted counted() const { return Counted::images; }

  /// Mean cross-entropy of the validation images, in nats, and the share of right answers, without dropout.
  Validated validate(Ranks* ranks = nullptr) const;
  /// Attention on the first four images, of the validation set if there is one: "image_0" (layers, heads, tokens,
  /// tokens) and so on.
  std::map<std::string, Array> attention() const;
  /// A hash of all images and labels.
  int64_t fingerprint() const;

 private:
  const VisionTransformer& model_;
  const VisionConfig& config_;
  const VisionData& data_;
  Rng rng_;
  mutable std::vector<int64_t> order_;  // of the last epoch that was asked for
  mutable int64_t order_epoch_ = -1;
};

}  // namespace qkv
