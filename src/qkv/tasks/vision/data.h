// From the data block of a configuration to images for training and validation.
#pragma once

#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/data/images.h"
#include "qkv/tasks/vision/config.h"

namespace QKV_API qkv {

/// What a model of images needs to know about them; a run folder has it in images.json.
struct ImageFacts {
  ImageSize size;                    // that the model sees
  std::vector<std::string> classes;  // in the order of the labels
};

struct VisionData {
  ImageSet train, valid;  // valid is empty without validation; both may have other sizes than the model sees
  ImageFacts facts;
};

/// Reads the data that the configuration names; every image has a label. The numbers of `known` classes stay as they
/// are if all those of the data are among them.
VisionData read_vision_data(const VisionDataConfig& config, uint64_t seed, const std::vector<std::string>& known = {});

/// The images of a file, an IDX file or a PNG file, for a model that sees images of that size. Labels only of an IDX
/// file, if they are given or beside it.
ImageSet read_image_file(const std::string& path, const std::string& labels = {});

void save_image_facts(const ImageFacts& facts, const std::string& folder);
ImageFacts load_image_facts(const std::string& folder);

}  // namespace qkv
