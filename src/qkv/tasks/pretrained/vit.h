// Vision Transformers (ViTForImageClassification) as Hugging Face folders have them.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/models/vision_transformer.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/weight_table.h"
#include "qkv/tasks/vision/data.h"

namespace QKV_API qkv {

struct PretrainedVision {
  VisionTransformerConfig config;
  ImageFacts facts;
  ImageScaling scaling;
  bool stretches = false;  // images of other sizes, as preprocessor_config.json says
  std::unique_ptr<VisionTransformer> model;
};

/// The table of names.
WeightTable vit_table();

/// What a folder says of its model and its images, with settings for training it further.
VisionConfig read_pretrained_vision_config(const std::string& folder);
ImageFacts read_pretrained_image_facts(const std::string& folder);

/// Opens a folder of an architecture that classifies images; others are refused, saying which command they are for.
PretrainedVision open_pretrained_vision(const std::string& folder);

}  // namespace qkv
