// Lab 11.8: a small vision Transformer learns the built-in pictures, and where it looks.
#include <algorithm>

#include "qkv/labs/show.h"
#include "qkv/labs/vision.h"
#include "qkv/tasks/vision/attention.h"

namespace qkv::labs::vision {
namespace {

Series curve(const Text& name, const Seer& seer, const char* style) {
  return {name, seer.epochs, seer.accuracy, line_style(style)};
}

}  // namespace

void training(Page& page) {
  page.heading(tr("Learning to see"));
  const Seers& all = seers(page);
  const VisionConfig& c = all.cls.run->config();
  page.say(
      tr("Four models of two blocks, {hidden} wide, learn ten kinds of drawn pictures (`qkv data pictures`) from "
         "{count} examples in {epochs} epochs; {valid} others measure them. Shapes are anywhere, at any angle, in "
         "noise, and some have a scratch across them. One model reads a class token, one the mean of its patches, "
         "one has no positions, and one has patches of {coarse} x {coarse} pixels instead of {patch} x {patch}.",
         "hidden"_a = c.model.hidden, "count"_a = c.data.picture_count, "epochs"_a = c.training.epochs,
         "valid"_a = all.cls.run->data().valid.count(), "coarse"_a = kSide / 2, "patch"_a = kPatch));
  page.draw("accuracy",
            curves({curve(tr("class token"), all.cls, "b-"), curve(tr("mean of patches"), all.mean, "g--"),
                    curve(tr("no positions"), all.placeless, "r:"), curve(tr("large patches"), all.coarse, "k-.")},
                   {.label = tr("epoch")}, {.label = tr("validation accuracy"), .low = 0, .high = 1}),
            tr("The share of new pictures that are recognised, after every epoch. A guess is right one time in ten."));
  page.claim(all.cls.end() > 0.4 && all.mean.end() > 0.4,
             tr("Both ways of reading the patches learn to recognise pictures that they have never seen."),
             tr("class token {cls}, mean of patches {mean}, by chance 10 %", "cls"_a = percent(all.cls.end()),
                "mean"_a = percent(all.mean.end())));
}

void where_it_looks(Page& page) {
  page.heading(tr("Where it looks"));
  page.say(
      tr("The class token's weights on the patches can be drawn over the picture: here the mean of the heads of the "
         "last block, for one picture of each of five kinds. The brighter the colour, the larger the weight."));
  const VisionRun& run = *seers(page).cls.run;
  const ImageSet& valid = run.data().valid;
  const Text kinds[] = {tr("a ring"), tr("a square"), tr("a triangle"), tr("a star"), tr("a cross")};
  Figure figure;
  figure.cols = 5;
  double on = 0, off = 0;  // mean brightness, weighted by attention, and not
  for (int64_t i = 0; i < 200; ++i) {
    const Tensor image = image_batch(valid, std::span(&i, 1), valid.size, {});
    const ImageAttention seen =
        image_attention(run.model(), image_batch(valid, std::span(&i, 1), valid.size, run.config().data.scaling()));
    const Tensor maps = seen_patches(seen, mean_of_heads(seen.weights), {});
    const int64_t per_side = seen.patch_rows, cells = per_side * per_side;
    const float* map = maps.ptr() + (maps.size(0) - 1) * cells;
    double weight = 0, weighted = 0, plain = 0;
    for (int64_t p = 0; p < cells; ++p) {
      // How much the pixels of a patch differ from each other: where something is drawn, they do.
      double low = 1, high = 0;
      for (int64_t y = 0; y < kPatch; ++y)
        for (int64_t x = 0; x < kPatch; ++x) {
          const double v = image.ptr()[(p / per_side * kPatch + y) * kSide + p % per_side * kPatch + x];
          low = std::min(low, v);
          high = std::max(high, v);
        }
      weight += map[p];
      weighted += map[p] * (high - low);
      plain += (high - low) / static_cast<double>(cells);
    }
    on += weight > 0 ? weighted / weight : 0;
    off += plain;
    if (i >= 5) continue;
    HeatMap heat{Tensor({per_side, per_side}, std::vector<float>(map, map + cells))};
    heat.picture = reshape(image, {kSide, kSide, 1});
    figure.panels.push_back({heat, kinds[static_cast<size_t>(valid.labels[static_cast<size_t>(i)])]});
  }
  figure.colours.map = ColourMap::viridis;
  figure.colours.low = 0;
  figure.size = FigureSize{8, 1.9};
  page.draw("attention", figure,
            tr("What the class token attends to in the last block, mean of the heads. The axes count patches."));
  page.claim(
      on > off,
      tr("The class token looks where something is drawn: the patches that it attends to have more contrast than "
         "the others."),
      tr("contrast {on:.3f} where it looks, {off:.3f} on average, over 200 pictures", "on"_a = on / 200,
         "off"_a = off / 200));
}

}  // namespace qkv::labs::vision
