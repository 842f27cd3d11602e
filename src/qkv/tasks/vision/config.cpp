// The settings of image classification, and which of them exclude each other.
#include "qkv/tasks/vision/config.h"

#include <algorithm>

#include "qkv/core/check.h"

namespace qkv {

bool VisionDataConfig::has_own_validation() const { return built_in() || fashion() || is_mnist_folder(images); }

ImageScaling VisionDataConfig::scaling() const {
  ImageScaling out{.filter = filter};
  for (size_t c = 0; c < 3; ++c) {
    out.mean[c] = mean[std::min(c, mean.size() - 1)];
    out.deviation[c] = deviation[std::min(c, deviation.size() - 1)];
  }
  return out;
}

void VisionConfig::clear_files() {
  for (std::string* file : {&data.images, &data.labels, &data.valid_images, &data.valid_labels, &data.classes})
    file->clear();
}

Settings VisionConfig::settings() {
  Settings s;
  s.add_block("data", data);
  s.add_fixed("model", "kind", tr("the architecture"), {kind_name()}, kind_name());
  s.add_block("model", model);
  s.add_block("training", training);
  s.accept("training.init_from", "training.init");
  s.accept("model.init", "model.initial");
  return s;
}

void VisionConfig::read(const std::string& path) { parse(read_settings_text(path), path); }

void VisionConfig::parse(const std::string& yaml, const std::string& name) {
  VisionConfig next = *this;
  next.settings().parse(yaml, name);
  *this = std::move(next);
}

void VisionConfig::check() const {
  const VisionDataConfig& d = data;
  require(has_data(),
          "there are no images: give --images FILE (IDX), a folder of PNG files by class, pictures or fashion-mnist");
  const bool valid_files = !d.valid_images.empty();
  require(valid_files || d.valid_labels.empty(), "data.valid_labels is \"{labels}\", but data.valid_images is not set",
          "labels"_a = d.valid_labels);
  const bool own = d.has_own_validation();
  require(!own || (!valid_files && d.valid_share == 0),
          "data.images {images} has its own validation data: data.valid_images and data.valid_share do not apply",
          "images"_a = d.images);
  require(!(d.built_in() || d.fashion()) || (d.labels.empty() && d.classes.empty()),
          "data.images {images} has its own labels: data.labels and data.classes do not apply", "images"_a = d.images);
  require(!valid_files || d.valid_share == 0, "data.valid_images and data.valid_share exclude each other");
  require(d.channels != 2, "data.channels is 2, expected 1 or 3, or 0 for those of the images");
  for (const auto* list : {&d.mean, &d.deviation})
    require(list->size() == 1 || (list->size() == 3 && d.channels != 1),
            "data.mean and data.deviation need one number, or one for each of three channels");
  training.check(own || valid_files || d.valid_share > 0);
  require(training.batch_tokens == 0 && !training.by_length,
          "training.batch_tokens and training.by_length are for text; images have training.batch_rows");
  model.check();
}

}  // namespace qkv
