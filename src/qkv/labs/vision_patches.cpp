// Lab 11.8: patches instead of words, and what positions are for.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "qkv/data/pictures.h"
#include "qkv/data/shuffle.h"
#include "qkv/labs/show.h"
#include "qkv/labs/vision.h"
#include "qkv/ops/shape.h"

namespace qkv::labs::vision {
namespace {

// The definition of a convolution whose kernel and stride are the patch: y[b, o, r, c] in double.
double convolution(const Tensor& images, const Linear& weights, int64_t b, int64_t o, int64_t row, int64_t column,
                   int64_t patch) {
  const int64_t channels = images.size(1), high = images.size(2), wide = images.size(3);
  double sum = weights.bias.ptr()[o];
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t y = 0; y < patch; ++y)
      for (int64_t x = 0; x < patch; ++x)
        sum += static_cast<double>(weights.weight.ptr()[((o * channels + c) * patch + y) * patch + x]) *
               images.ptr()[((b * channels + c) * high + row * patch + y) * wide + column * patch + x];
  return sum;
}

// (rows, columns, patch, patch) as one map, with a gap between neighbours: a grid of panels would not fit on a
// terminal.
Figure cut_apart(const Tensor& cut, const HeatMapOptions& options) {
  const int64_t rows = cut.size(0), patch = cut.size(2), side = rows * (patch + 1) - 1;
  Tensor all = Tensor::empty({side, side});
  std::fill_n(all.mutable_ptr(), all.numel(), std::numeric_limits<float>::quiet_NaN());
  std::vector<std::string> numbers(static_cast<size_t>(side));
  for (int64_t r = 0; r < rows; ++r) {
    numbers[static_cast<size_t>(r * (patch + 1) + patch / 2)] = std::to_string(r + 1);
    for (int64_t c = 0; c < rows; ++c)
      for (int64_t y = 0; y < patch; ++y)
        std::copy_n(cut.ptr() + ((r * rows + c) * patch + y) * patch, patch,
                    all.mutable_ptr() + (r * (patch + 1) + y) * side + c * (patch + 1));
  }
  HeatMapOptions numbered = options;
  numbered.x_tokens = numbered.y_tokens = numbers;
  return heatmaps(all, "", "", {}, numbered);
}

}  // namespace

void patches_of_an_image(Page& page) {
  page.heading(tr("An image as a sequence"));
  page.say(
      tr("A Transformer reads a sequence of vectors. An image becomes one if it is cut into **patches**: "
         "{side} x {side} pixels in squares of {patch} x {patch} are {count} patches, each of {pixels} numbers. A "
         "linear layer turns every patch into a vector, as an embedding does with a word, and a learned **class "
         "token** is put before them (Dosovitskiy et al., 2021). After the last block, the state of that token is "
         "classified.",
         "side"_a = kSide, "patch"_a = kPatch, "count"_a = (kSide / kPatch) * (kSide / kPatch),
         "pixels"_a = kPatch * kPatch));
  const ImageSet set = drawn_pictures({.count = 10, .side = kSide, .seed = page.seed()});
  const int64_t star = 3, per_side = kSide / kPatch;
  const Tensor image = reshape(image_batch(set, std::span(&star, 1), set.size, {}), {kSide, kSide});
  const Tensor cut =
      reshape(patches(reshape(image, {1, 1, kSide, kSide}), kPatch), {per_side, per_side, kPatch, kPatch});
  HeatMapOptions options;
  options.colours.low = 0;
  options.colours.high = 1;
  options.colours.map = ColourMap::viridis;
  options.colours.bar = false;
  page.draw("picture", heatmaps(image, "", "", {}, options), tr("A picture of the built-in set: a star."));
  page.draw("patches", cut_apart(cut, options),
            tr("The same picture as the model reads it: {count} patches, row by row. The axes count patches.",
               "count"_a = per_side * per_side));
  const Rng rng = Rng(page.seed()).at("vision").at("patches");
  const Tensor images = uniform({4, 3, 96, 96}, rng.at("images"), 0, 1);
  const Linear embed(3 * 16 * 16, 512, rng.at("embed"));
  const Tensor embedded = embed(patches(images, 16));
  double worst = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    const auto b = static_cast<int64_t>(rng.below(4, 4 * i)), o = static_cast<int64_t>(rng.below(512, 4 * i + 1)),
               row = static_cast<int64_t>(rng.below(6, 4 * i + 2)),
               column = static_cast<int64_t>(rng.below(6, 4 * i + 3));
    worst = std::max(worst, std::abs(embedded.ptr()[(b * 36 + row * 6 + column) * 512 + o] -
                                     convolution(images, embed, b, o, row, column, 16)));
  }
  page.claim(
      embedded.shape() == Shape{4, 36, 512} && worst < 1e-4,
      tr("The book embeds patches by a convolution whose kernel and stride are the patch. That is a linear layer "
         "on patches."),
      tr("(4, 3, 96, 96) becomes {shape}; largest difference {worst}", "shape"_a = embedded.shape().str(),
         "worst"_a = tiny(worst)));
  VisionTransformerConfig book{.patch = 16, .hidden = 512, .ffn = 2048, .heads = 8, .layers = 2};
  int64_t parameters = 0;
  for (const NamedShape& p : book.layout({1, 96, 96}, 10)) parameters += p.shape.numel();
  page.fact(tr("The book's model for Fashion-MNIST: 96 x 96 pixels, patches of 16 x 16, 512 wide, two blocks."),
            tr("{tokens} tokens, {parameters} parameters", "tokens"_a = book.tokens({1, 96, 96}),
               "parameters"_a = grouped(static_cast<uint64_t>(parameters))));
  page.beside_the_book(tr("parameters of the vision Transformer"), "6,457,866",
                       grouped(static_cast<uint64_t>(parameters)));
}

void order_of_patches(Page& page) {
  page.heading(tr("Where a patch is"));
  page.say(
      tr("A convolution knows which pixels are neighbours. Attention does not: it sees a set of patches, and only "
         "the position that is added to each tells it where it was. Shuffle the patches of an image before they are "
         "read, and compare the answers of models that are not yet trained."));
  const Rng rng = Rng(page.seed()).at("vision").at("order");
  const Tensor image = uniform({1, 1, kSide, kSide}, rng.at("image"), 0, 1);
  const int64_t per_side = kSide / kPatch;
  const std::vector<int64_t> order = shuffled(per_side * per_side, rng.at("shuffle"));
  Tensor moved = Tensor::empty(image.shape());
  for (int64_t p = 0; p < per_side * per_side; ++p)
    for (int64_t y = 0; y < kPatch; ++y)
      for (int64_t x = 0; x < kPatch; ++x) {
        const auto at = [&](int64_t patch) {
          return (patch / per_side * kPatch + y) * kSide + patch % per_side * kPatch + x;
        };
        moved.mutable_ptr()[at(p)] = image.ptr()[at(order[static_cast<size_t>(p)])];
      }
  const auto change = [&](PositionKind positions) {
    VisionTransformerConfig config{.patch = kPatch, .hidden = 48, .ffn = 96, .heads = 4, .layers = 2};
    config.positions = positions;
    config.init = VisionTransformerConfig::Init::pytorch;
    const VisionTransformer model(config, {1, kSide, kSide}, 10, rng.at("model"));
    return largest_difference(model.logits(image, {}), model.logits(moved, {}));
  };
  const double with = change(PositionKind::learned), without = change(PositionKind::none);
  page.claim(without < 1e-4 && with > 100 * without,
             tr("Without positions the order of the patches changes nothing; with positions it does."),
             tr("largest change of a score {without} without, {with} with positions", "without"_a = tiny(without),
                "with"_a = tiny(with)));
}

}  // namespace qkv::labs::vision
