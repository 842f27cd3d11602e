// Reads a run folder and classifies images in batches.
#include "qkv/tasks/vision/classifier.h"

#include <algorithm>
#include <numeric>

#include "qkv/core/check.h"
#include "qkv/ops/softmax.h"
#include "qkv/run/model_file.h"
#include "qkv/run/run_folder.h"
#include "qkv/tasks/pretrained/vit.h"

namespace qkv {
namespace {

constexpr int64_t kRows = 64;  // classified at once

VisionConfig read_config(const std::string& folder) {
  const std::string path = run_config_path(folder, TaskKind::vision);
  VisionConfig config;
  config.read(path);
  return config;
}

}  // namespace

ImageFacts read_image_facts(const std::string& folder) {
  return is_pretrained_folder(folder) ? read_pretrained_image_facts(folder) : load_image_facts(folder);
}

Classifier::Classifier(const std::string& folder) {
  if (!is_pretrained_folder(folder)) {
    open_run(folder);
    return;
  }
  PretrainedVision opened = open_pretrained_vision(folder);
  config_.model = opened.config;
  facts_ = std::move(opened.facts);
  scaling_ = opened.scaling;
  stretches_ = opened.stretches;
  own_ = std::move(opened.model);
  model_ = own_.get();
}

void Classifier::open_run(const std::string& folder) {
  config_ = read_config(folder);
  facts_ = load_image_facts(folder);
  scaling_ = config_.data.scaling();
  stretches_ = config_.data.image_size > 0;
  try {
    config_.model.check(facts_.size);
  } catch (const Error& e) {
    throw Error(tr("{path}: {problem}", "path"_a = folder + "/config.yaml", "problem"_a = e.message()), e.hint());
  }
  const SafetensorsFile file(run_weights(folder));
  const auto classes = std::ssize(facts_.classes);
  check_layout(file, config_.model.layout(facts_.size, classes));
  own_ = std::make_unique<VisionTransformer>(config_.model, facts_.size, classes, Rng(0));
  read_weights(file, flatten(*own_));
  model_ = own_.get();
}

Classifier::Classifier(const VisionTransformer& model, ImageFacts facts, const VisionConfig& config)
    : config_(config),
      facts_(std::move(facts)),
      scaling_(config.data.scaling()),
      stretches_(config.data.image_size > 0),
      model_(&model) {}

Tensor Classifier::input(const ImageSet& set, int64_t i) const {
  return image_batch(set, std::span(&i, 1), facts_.size, scaling_);
}

Tensor Classifier::probabilities(const ImageSet& set) const {
  const auto classes = std::ssize(facts_.classes);
  Tensor out = Tensor::empty({set.count(), classes});
  std::vector<int64_t> rows;
  for (int64_t begin = 0; begin < set.count(); begin += kRows) {
    rows.resize(static_cast<size_t>(std::min(kRows, set.count() - begin)));
    std::iota(rows.begin(), rows.end(), begin);
    const Tensor some = softmax(model_->logits(image_batch(set, rows, facts_.size, scaling_), Run{}));
    std::copy_n(some.ptr(), some.numel(), out.mutable_ptr() + begin * classes);
  }
  return out;
}

void Classifier::check_size(const ImageSet& set, const std::string& name, OtherSizes others) const {
  const bool same = set.size.height == facts_.size.height && set.size.width == facts_.size.width;
  if (same || others == OtherSizes::stretched || stretches_) return;
  throw Error(tr("{name}: has {height} x {width} pixels, but the model was trained with {wanted_height} x "
                 "{wanted_width}",
                 "name"_a = name, "height"_a = set.size.height, "width"_a = set.size.width,
                 "wanted_height"_a = facts_.size.height, "wanted_width"_a = facts_.size.width),
              tr("--resize stretches images to the model's size"));
}

std::vector<int64_t> best_classes(std::span<const float> probabilities, int64_t count) {
  std::vector<int64_t> order(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return probabilities[static_cast<size_t>(a)] > probabilities[static_cast<size_t>(b)];
  });
  order.resize(std::min(order.size(), static_cast<size_t>(count)));
  return order;
}

}  // namespace qkv
