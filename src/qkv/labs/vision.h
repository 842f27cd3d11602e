// Lab 11.8: the vision Transformer. What several steps of the lab share.
#pragma once

#include <memory>
#include <vector>

#include "qkv/labs/lab.h"
#include "qkv/tasks/vision/run.h"

namespace qkv::labs::vision {

/// A classifier that was trained in memory, and its accuracy on the validation pictures after each epoch.
struct Seer {
  std::unique_ptr<VisionRun> run;
  std::vector<double> epochs, accuracy;
  double end() const { return accuracy.back(); }
};

/// One training each; they see the same pictures.
struct Seers {
  Seer cls, mean, placeless, coarse;
};
const Seers& seers(Page& page);
inline constexpr int64_t kSide = 20, kPatch = 4;  // of the pictures, in pixels

// vision_patches.cpp
void patches_of_an_image(Page& page);
void order_of_patches(Page& page);

// vision_training.cpp
void training(Page& page);
void where_it_looks(Page& page);

// vision_exercises.cpp
void image_size(Page& page);
void mean_of_patches(Page& page);
void better(Page& page);

}  // namespace qkv::labs::vision
