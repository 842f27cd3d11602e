// Vision Transformers (ViTForImageClassification) as Hugging Face folders have them.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/models/vision_transformer.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/vision/data.h"

namespace QKV_API qkv {

struct PretrainedVision {
  VisionTransformerConfig config;
  ImageFacts facts;
  ImageScaling scaling;
  bool stretches = false;  // images of other sizes, as preprocessor_config.json says
  std::unique_ptr<VisionTransformer> model;
};

/// Opens a folder of an architecture that classifies images; others are refused, saying which command they are for.
PretrainedVision open_pretrained_vision(const std::string& folder);

}  // namespace qkv
