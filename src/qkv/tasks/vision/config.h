// Everything that a run of image classification depends on: data, model and training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/images.h"
#include "qkv/io/settings.h"
#include "qkv/models/vision_transformer_config.h"
#include "qkv/run/training_config.h"
#include "qkv/tasks/kinds.h"

namespace QKV_API qkv {

struct VisionDataConfig {
  std::string images;  // IDX file, folder of PNG files by class, MNIST's folder, "fashion-mnist" or "pictures"
  std::string labels;  // of an IDX file
  std::string valid_images, valid_labels;
  double valid_share = 0;                           // without such files: this share of the images
  std::string classes;                              // names of the labels of IDX files
  int64_t limit = 0;                                // images to train with; 0: all
  int64_t image_size = 0;                           // stretched to this many pixels per side; 0: as they are
  ImageFilter filter = ImageFilter::bilinear;       // that stretches them
  int64_t channels = 0;                             // of the images that the model sees; 0: as they are
  std::vector<double> mean = {0}, deviation = {1};  // the model sees (byte / 255 - mean) / deviation
  int64_t shift = 0;                                // augmentation
  bool flip = false;
  int64_t picture_count = 20000, picture_seed = 1;  // of the drawn pictures

  void fields(auto&& f) {
    f("images",
      tr("images: an IDX file, .gz or not, a folder with a folder of PNG files for each class, or a folder like "
         "MNIST's; pictures is the built-in set, fashion-mnist Debian's"),
      images, "FILE");
    f("labels", tr("labels of an IDX file (default: the file beside it, \"labels\" instead of \"images\")"), labels,
      "FILE");
    f("valid_images", tr("images for validation: an IDX file or a folder"), valid_images, "FILE");
    f("valid_labels", tr("their labels"), valid_labels, "FILE");
    f("valid_share", tr("without validation files: this share of the images"), valid_share, 0, 0.5);
    f("classes", tr("names of the classes of IDX files, separated by commas (default: their numbers)"), classes,
      "NAMES");
    f("limit", tr("number of images to train with; 0: all"), limit, 0);
    f("image_size", tr("stretch images to this many pixels per side; 0: use them as they are"), image_size, 0, 4096);
    f("filter", tr("how images are stretched, by Pillow's filters of these names"), filter);
    f("channels", tr("3: grey images get three equal channels; 1: colours become grey; 0: use images as they are"),
      channels, 0, 3);
    f("mean",
      tr("the model sees (brightness - mean) / deviation; brightness is 0 to 1. One number, or one per channel"), mean,
      -1e6, 1e6);
    f("deviation", tr("the model sees (brightness - mean) / deviation; one number, or one per channel"), deviation,
      1e-6, 1e6);
    f("shift", tr("augmentation: move training images by up to this many pixels"), shift, 0, 4096);
    f("flip", tr("augmentation: mirror half of the training images"), flip);
    f("picture_count", tr("built-in pictures: how many to train with"), picture_count, 1, 10'000'000);
    f("picture_seed", tr("built-in pictures: seed"), picture_seed, 0);
  }
  bool built_in() const { return images == "pictures"; }
  bool fashion() const { return images == "fashion-mnist"; }
  /// The set has its own images for validation.
  bool has_own_validation() const;
  ImageScaling scaling() const;
  Augmentation augmentation() const { return {shift, flip}; }
};

struct VisionConfig {
  VisionDataConfig data;
  VisionTransformerConfig model;
  TrainingConfig training;
  std::string preset;

  static constexpr TaskKind kTask = TaskKind::vision;
  static std::vector<std::string> sources() { return {"data.images"}; }
  bool has_data() const { return !data.images.empty(); }
  void clear_files();
  void use_source(const std::string&) {}
  std::string kind_name() const { return "vision"; }
  void set_kind(const std::string&) {}
  ModelFacts facts() const { return model.facts(); }

  /// The table of all settings of this object.
  Settings settings();
  void read(const std::string& path);
  void parse(const std::string& yaml, const std::string& name);
  /// Refuses settings that cannot work together, naming them.
  void check() const;
};

}  // namespace qkv
