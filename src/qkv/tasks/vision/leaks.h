// Proves by perturbation that the answer to an image depends on that image alone, and on all of it.
#pragma once

#include <span>

#include "qkv/core/api.h"
#include "qkv/tasks/vision/classifier.h"

namespace QKV_API qkv {

struct ImageLeakReport {
  /// Changes to the other images of a batch and to their order; scores compared; and the largest difference, which must
  /// be 0: NaN if a score is NaN.
  int64_t mates_tried = 0, mates_compared = 0;
  double mates_largest = 0;
  /// Scores of the shortened last block against those of a pass over all tokens, relative to the largest score.
  int64_t whole_compared = 0;
  double whole_largest = 0;
  /// Patches of an image that were made brighter or darker, and how many of those changes had an effect.
  int64_t patches = 0, noticed = 0;
  bool mates_passed() const { return mates_tried > 0 && mates_largest == 0; }
  bool whole_passed() const { return whole_largest <= kTolerance; }
  bool passed() const { return mates_passed() && whole_passed() && noticed == patches; }
  static constexpr double kTolerance = 1e-5;
};

/// Tries every image of the set, in batches with the others.
ImageLeakReport image_leaks(const Classifier& classifier, const ImageSet& set, const Rng& rng);

}  // namespace qkv
