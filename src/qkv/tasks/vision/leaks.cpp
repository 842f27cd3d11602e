// Batches of images whose neighbours change, and images whose patches change.
#include "qkv/tasks/vision/leaks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "qkv/attention/attention_of.h"
#include "qkv/core/check.h"
#include "qkv/data/shuffle.h"

namespace qkv {
namespace {

// The largest difference of two rows of scores; NaN if one of them is NaN.
double difference(const float* a, const float* b, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double d = std::abs(double{a[i]} - b[i]);
    if (std::isnan(d)) return d;
    largest = std::max(largest, d);
  }
  return largest;
}

double larger(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }

// A patch with every pixel turned by half the range of brightness.
void change_patch(Tensor& image, const VisionTransformer& model, int64_t patch, const ImageScaling& scaling) {
  const int64_t side = model.config.patch, columns = model.size.width / side,
                plane = model.size.height * model.size.width;
  for (int64_t c = 0; c < model.size.channels; ++c) {
    const auto amount = static_cast<float>(0.5 / scaling.deviation[static_cast<size_t>(c)]);
    for (int64_t y = 0; y < side; ++y)
      for (int64_t x = 0; x < side; ++x)
        image.mutable_ptr()[c * plane + (patch / columns * side + y) * model.size.width + patch % columns * side + x] +=
            amount;
  }
}

}  // namespace

ImageLeakReport image_leaks(const Classifier& classifier, const ImageSet& set, const Rng& rng) {
  check(set.count() >= 1, "[image_leaks] there are no images");
  const VisionTransformer& model = classifier.model();
  const auto classes = std::ssize(classifier.facts().classes);
  const ImageSize& size = classifier.facts().size;
  const ImageScaling scaling = classifier.scaling();
  ImageLeakReport out;
  for (int64_t i = 0; i < set.count(); ++i) {
    const Tensor alone = model.logits(classifier.input(set, i), {});
    // Other rows in another order: the image is the last of a batch, then one in the middle.
    std::vector<int64_t> rows = shuffled(set.count(), rng.at("order").at(static_cast<uint64_t>(i)));
    const auto place = std::ssize(rows) / 2;
    std::swap(*std::find(rows.begin(), rows.end(), i), rows[static_cast<size_t>(place)]);
    const Tensor together = model.logits(image_batch(set, rows, size, scaling), {});
    out.mates_largest = larger(out.mates_largest, difference(alone.ptr(), together.ptr() + place * classes, classes));
    ++out.mates_tried;
    out.mates_compared += classes;
    detail::WeightsByPath probe;  // wants all tokens of all layers
    const Tensor whole = model.logits(classifier.input(set, i), Run{.probe = &probe});
    double most = 1;
    for (const float score : whole.data()) most = std::max(most, std::abs(double{score}));
    out.whole_largest = larger(out.whole_largest, difference(alone.ptr(), whole.ptr(), classes) / most);
    out.whole_compared += classes;
  }
  const Tensor first = model.logits(classifier.input(set, 0), {});
  for (int64_t p = 0; p < model.config.patches(size); ++p) {
    Tensor changed = classifier.input(set, 0);
    change_patch(changed, model, p, scaling);
    ++out.patches;
    const double d = difference(first.ptr(), model.logits(changed, {}).ptr(), classes);
    if (d > 0) ++out.noticed;
  }
  return out;
}

}  // namespace qkv
