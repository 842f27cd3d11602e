// POST /classify and GET /picture: classes of a picture, and where the model looked.
#include <algorithm>
#include <cmath>

#include "qkv/data/pictures.h"
#include "qkv/report/image_maps.h"
#include "qkv/serve/call.h"

namespace qkv::serve {

Json classify(const Call& call) {
  const Fields in = call.fields();
  const auto classifier = call.api.shelf().classifier(in.text("model"));
  const ImageSize& size = classifier->facts().size;
  const Tensor pixels = in.matrix("pixels", 512, 512);
  ImageSet set{.size = {1, pixels.size(0), pixels.size(1)}};
  for (const float p : pixels.data()) {
    require(p >= 0 && p <= 1, "pixels: expected numbers from 0 to 1, got {value}", "value"_a = p);
    set.pixels.push_back(static_cast<uint8_t>(std::lround(p * 255)));
  }
  // Drawn in another size or in grey: the same conversion as for the files of the command line.
  if (set.size != size) {
    set.pixels = converted(set.image(0), set.size, size);
    set.size = size;
  }
  const report::SeenImage seen = report::seen_image(*classifier, set, 0, "", {});
  call.go_on();
  Json answers = Json::array();
  const std::vector<report::Classification> found = report::classifications(
      *classifier, set, classifier->probabilities(set), "", std::ssize(classifier->facts().classes));
  for (const report::Answer& a : found.at(0).answers)
    answers.push_back({{"class", a.class_name}, {"number", a.class_number}, {"probability", a.probability}});
  const Tensor patches = seen_patches(seen.attention, seen.attention.weights, {});
  Json maps = Json::array();
  const int64_t rows = patches.size(2), columns = patches.size(3);
  for (int64_t layer = 0; layer < patches.size(0); ++layer)
    for (int64_t head = 0; head < patches.size(1); ++head) {
      Tensor one = Tensor::empty({rows, columns});
      std::copy_n(patches.ptr() + (layer * patches.size(1) + head) * rows * columns, rows * columns, one.mutable_ptr());
      maps.push_back({{"layer", layer + 1}, {"head", head + 1}, {"values", nested(one)}});
    }
  const Tensor rolled = seen_patches(seen.attention, rollout(seen.attention.weights), {});
  Json by_layer = Json::array();
  for (int64_t layer = 0; layer < rolled.size(0); ++layer) {
    Tensor one = Tensor::empty({rows, columns});
    std::copy_n(rolled.ptr() + layer * rows * columns, rows * columns, one.mutable_ptr());
    by_layer.push_back(nested(one));
  }
  // The page saves the drawing under this name.
  const std::string command = command_line({"classify", "--model", call.api.shelf().model(in.text("model")).folder,
                                            "--top", std::to_string(answers.size()), "--resize", "qkv-picture.png"});
  return {
      {"answers", answers}, {"maps", maps}, {"rollout", by_layer.back()}, {"rollouts", by_layer}, {"command", command}};
}

Json picture(const Call& call) {
  const auto found = call.query.find("seed");
  uint64_t seed = 0;
  if (found != call.query.end()) {
    require(!found->second.empty() && found->second.size() <= 15 &&
                found->second.find_first_not_of("0123456789") == std::string::npos,
            "seed: expected a whole number, got {value}", "value"_a = found->second);
    seed = std::stoull(found->second);
  }
  // Picture i has class i mod 10: consecutive seeds show all classes.
  constexpr int64_t kSide = 28;
  const auto number = static_cast<int64_t>(seed % 10);
  const ImageSet set =
      drawn_pictures({.count = number + 1, .side = kSide, .seed = seed / 10 + 1, .part = PicturePart::valid});
  Json rows = Json::array();
  const auto pixels = set.image(number);
  for (int64_t r = 0; r < kSide; ++r) {
    Json row = Json::array();
    for (int64_t c = 0; c < kSide; ++c) row.push_back(pixels[static_cast<size_t>(r * kSide + c)] / 255.0);
    rows.push_back(std::move(row));
  }
  return {{"pixels", rows},
          {"class", set.classes[static_cast<size_t>(set.labels[static_cast<size_t>(number)])]},
          {"seed", seed}};
}

}  // namespace qkv::serve
