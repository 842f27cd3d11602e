// Batches, loss and validation of image classification.
#include "qkv/tasks/vision/task.h"

#include <algorithm>
#include <numeric>

#include "qkv/data/shuffle.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/reduce.h"
#include "qkv/tasks/vision/attention.h"

namespace qkv {
namespace {

constexpr int64_t kValidRows = 200;

Ids labels_of(const ImageSet& set, std::span<const int64_t> numbers) {
  Ids out = Ids::empty({std::ssize(numbers)});
  for (size_t i = 0; i < numbers.size(); ++i) out.mutable_ptr()[i] = set.labels[static_cast<size_t>(numbers[i])];
  return out;
}

}  // namespace

VisionTask::VisionTask(const VisionTransformer& model, const VisionConfig& config, const VisionData& data)
    : model_(model),
      config_(config),
      data_(data),
      rng_(Rng(static_cast<uint64_t>(config.training.seed)).at("images")) {}

int64_t VisionTask::batches() const {
  return (data_.train.count() + config_.training.batch_rows - 1) / config_.training.batch_rows;
}

VisionBatch VisionTask::batch(int64_t epoch, int64_t index) const {
  const auto number = static_cast<uint64_t>(epoch);
  if (epoch != order_epoch_) order_ = shuffled(data_.train.count(), rng_.at("order").at(number));
  order_epoch_ = epoch;
  const int64_t begin = index * config_.training.batch_rows,
                end = std::min(data_.train.count(), begin + config_.training.batch_rows);
  const auto rows =
      std::span<const int64_t>(order_).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  return {std::vector<int64_t>(rows.begin(), rows.end()), epoch};
}

Loss VisionTask::loss(const VisionBatch& batch, int64_t begin, int64_t end, const Run& run) const {
  // Images are made here, so that a rank makes those of its own shards only.
  const auto rows =
      std::span<const int64_t>(batch.rows).subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
  const Tensor images =
      image_batch(data_.train, rows, data_.facts.size, config_.data.scaling(), config_.data.augmentation(),
                  rng_.at("augmentation").at(static_cast<uint64_t>(batch.epoch)));
  const Tensor logits = model_.logits(images, run);
  const CrossEntropyOptions options{.label_smoothing = static_cast<float>(config_.training.label_smoothing),
                                    .reduction = Reduction::sum};
  return {cross_entropy(logits, labels_of(data_.train, rows), options), static_cast<double>(end - begin)};
}

Validated VisionTask::validate(Ranks* ranks) const {
  const ImageSet& set = data_.valid;
  const int64_t groups = (set.count() + kValidRows - 1) / kValidRows;
  const std::vector<double> losses = shared_rows(ranks, groups, 2, [&](int64_t g, double* row) {
    const int64_t begin = g * kValidRows;
    std::vector<int64_t> rows(static_cast<size_t>(std::min(kValidRows, set.count() - begin)));
    std::iota(rows.begin(), rows.end(), begin);
    const Ids labels = labels_of(set, rows);
    const Tensor logits = model_.logits(image_batch(set, rows, data_.facts.size, config_.data.scaling()), Run{});
    row[0] = cross_entropy(logits, labels, {.reduction = Reduction::sum}).item();
    const Ids guess = argmax(logits);
    int64_t right = 0;
    for (int64_t i = 0; i < labels.numel(); ++i) right += guess.ptr()[i] == labels.ptr()[i];
    row[1] = static_cast<double>(right);
  });
  double sum = 0, right = 0;
  for (size_t i = 0; i < losses.size(); i += 2) {
    sum += losses[i];
    right += losses[i + 1];
  }
  const auto count = static_cast<double>(std::max<int64_t>(set.count(), 1));
  return {sum / count, right / count};
}

std::map<std::string, Array> VisionTask::attention() const {
  const ImageSet& set = data_.valid.count() > 0 ? data_.valid : data_.train;
  std::map<std::string, Array> maps;
  for (int64_t i = 0; i < std::min<int64_t>(4, set.count()); ++i)
    maps[text("image_", i)] = Array(
        image_attention(model_, image_batch(set, std::span(&i, 1), data_.facts.size, config_.data.scaling())).weights);
  return maps;
}

// FNV-1a.
int64_t VisionTask::fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3; };
  for (const ImageSet* set : {&data_.train, &data_.valid}) {
    for (const int64_t size : {set->count(), set->size.channels, set->size.height, set->size.width})
      add(static_cast<uint64_t>(size));
    for (const int32_t label : set->labels) add(static_cast<uint64_t>(label));
    size_t at = 0;
    for (; at + 8 <= set->pixels.size(); at += 8) {
      uint64_t word = 0;
      std::copy_n(set->pixels.data() + at, 8, reinterpret_cast<uint8_t*>(&word));
      add(word);
    }
    for (; at < set->pixels.size(); ++at) add(set->pixels[at]);
  }
  return static_cast<int64_t>(hash);
}

}  // namespace qkv
