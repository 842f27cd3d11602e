// A trained classifier: images in, probabilities of classes out.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/models/vision_transformer.h"
#include "qkv/tasks/vision/data.h"

namespace QKV_API qkv {

/// What to do with an image that has another size than the model sees.
enum class OtherSizes { refused, stretched };

/// What a run folder or a pretrained one says about its images.
ImageFacts read_image_facts(const std::string& folder);

class Classifier {
 public:
  /// From a model or run folder, or a pretrained one.
  explicit Classifier(const std::string& folder);
  /// From a model in memory, which must outlive it.
  Classifier(const VisionTransformer& model, ImageFacts facts, const VisionConfig& config);

  const VisionConfig& config() const { return config_; }
  const ImageFacts& facts() const { return facts_; }
  const VisionTransformer& model() const { return *model_; }
  /// What the model sees of a pixel.
  const ImageScaling& scaling() const { return scaling_; }
  /// Whether images of other sizes are stretched to the model's.
  bool stretches() const { return stretches_; }

  /// Image i of a set as the model sees it: (1, channels, height, width).
  Tensor input(const ImageSet& set, int64_t i) const;
  /// Probabilities of the classes: (N, classes).
  Tensor probabilities(const ImageSet& set) const;
  /// Fails for images of another size, naming the file, unless they are to be stretched, or were in training.
  void check_size(const ImageSet& set, const std::string& name, OtherSizes others) const;

 private:
  void open_run(const std::string& folder);
  VisionConfig config_;
  ImageFacts facts_;
  ImageScaling scaling_;
  bool stretches_ = false;  // images of other sizes, as in training
  std::unique_ptr<VisionTransformer> own_;
  const VisionTransformer* model_;
};

/// The numbers of the `count` most probable classes, best first, and of equal ones the first.
std::vector<int64_t> best_classes(std::span<const float> probabilities, int64_t count);

}  // namespace qkv
