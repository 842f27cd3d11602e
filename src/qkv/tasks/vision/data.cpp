// Reads image sets, splits off images for validation, and names classes.
#include "qkv/tasks/vision/data.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "qkv/core/counts.h"
#include "qkv/core/limits.h"
#include "qkv/data/corpus.h"
#include "qkv/data/pictures.h"
#include "qkv/data/shuffle.h"
#include "qkv/data/text.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kFacts = "images.json";
constexpr int64_t kPictureSide = 28;  // of the drawn pictures, unless another size is wanted
constexpr int64_t kValidPictures = 2000;

// An IDX file with its labels, which must exist, or a folder of PNG files by class.
ImageSet read_labelled(const std::string& images, const std::string& labels, const PictureOptions& options) {
  require(fs::exists(images), "cannot open {path}: there is no such file or folder", "path"_a = images);
  if (fs::is_directory(images)) {
    require(labels.empty(), "{labels}: {images} is a folder of classes and needs no labels", "labels"_a = labels,
            "images"_a = images);
    return read_class_folder(images, options);
  }
  if (!is_idx(images))
    throw Error(tr("{path}: is not an IDX file; expected one, or a folder with a folder of PNG files for each class",
                   "path"_a = images),
                tr("qkv data pictures -o DIR writes an example of each"));
  const std::string names = labels.empty() ? labels_beside(images) : labels;
  ImageSet out = read_idx(images, names);  // refuses a file that is itself one of labels
  require(!names.empty(), "{images}: has no labels; give their file with data.labels", "images"_a = images);
  return out;
}

std::vector<std::string> split_names(const std::string& list) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    std::string name = list.substr(at, end - at);
    const size_t first = name.find_first_not_of(' '), last = name.find_last_not_of(' ');
    out.push_back(first == std::string::npos ? "" : name.substr(first, last - first + 1));
    at = end + 1;
  }
  return out;
}

// Names instead of numbers, for sets that have only numbers.
void name_classes(ImageSet& set, const std::string& list) {
  if (list.empty()) return;
  check_utf8(list, verbatim("data.classes"));
  std::vector<std::string> names = split_names(list);
  require(names.size() >= set.classes.size(), "data.classes has {names} names, but the labels need {classes}",
          "names"_a = names.size(), "classes"_a = set.classes.size());
  for (size_t i = 0; i < names.size(); ++i) {
    require(!names[i].empty(), "data.classes: name {number} is empty", "number"_a = i + 1);
    // Labels of validation images are found by name.
    require(std::count(names.begin(), names.end(), names[i]) == 1, "data.classes has the name \"{name}\" twice",
            "name"_a = names[i]);
  }
  set.classes = std::move(names);
}

// Labels of the validation set in the numbers of the training set; classes of folders are compared by name.
void match_classes(ImageSet& valid, const std::vector<std::string>& classes, const std::string& name) {
  std::vector<int32_t> number;
  for (const std::string& c : valid.classes) {
    const auto found = std::find(classes.begin(), classes.end(), c);
    require(found != classes.end(), "{name}: has a class \"{class}\" that the training images do not have",
            "name"_a = name, "class"_a = c);
    number.push_back(static_cast<int32_t>(found - classes.begin()));
  }
  for (int32_t& label : valid.labels) label = number[static_cast<size_t>(label)];
  valid.classes = classes;
}

// The first images; a folder has them class by class, so some of every class are taken.
ImageSet limited(ImageSet set, int64_t limit, bool by_class) {
  const int64_t count = set.count();
  if (limit == 0 || limit >= count) return set;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < limit; ++i) numbers.push_back(by_class ? i * count / limit : i);
  return set.part(numbers);
}

void split_off(VisionData& data, double share, uint64_t seed) {
  const int64_t count = data.train.count();
  const auto wanted = static_cast<int64_t>(std::ceil(share * static_cast<double>(count)));
  require(wanted < count, "{images}: too few to hold out a share of {share}",
          "images"_a = image_count(static_cast<uint64_t>(count)), "share"_a = share);
  std::vector<int64_t> order = shuffled(count, Rng(seed).at("split"));
  const auto cut = order.begin() + wanted;
  std::sort(order.begin(), cut);
  std::sort(cut, order.end());
  data.valid = data.train.part(std::span(order).first(static_cast<size_t>(wanted)));
  data.train = data.train.part(std::span(order).subspan(static_cast<size_t>(wanted)));
}

}  // namespace

VisionData read_vision_data(const VisionDataConfig& c, uint64_t seed, const std::vector<std::string>& known) {
  VisionData out;
  const PictureOptions shape{.side = c.image_size, .channels = c.channels, .filter = c.filter};
  if (c.built_in()) {
    PicturesOptions drawn{.count = c.limit > 0 ? std::min(c.limit, c.picture_count) : c.picture_count,
                          .side = c.image_size > 0 ? c.image_size : kPictureSide,
                          .seed = static_cast<uint64_t>(c.picture_seed)};
    require(drawn.side >= 8, "data.image_size is {size}, but the built-in pictures need 8 or more pixels",
            "size"_a = drawn.side);
    out.train = drawn_pictures(drawn);
    drawn.count = kValidPictures;
    drawn.part = PicturePart::valid;
    out.valid = drawn_pictures(drawn);
  } else if (c.fashion()) {
    out.train = limited(fashion_mnist(MnistPart::train), c.limit, false);
    out.valid = fashion_mnist(MnistPart::test);
  } else if (is_mnist_folder(c.images)) {
    out.train = limited(read_mnist_folder(c.images, MnistPart::train), c.limit, false);
    out.valid = read_mnist_folder(c.images, MnistPart::test);
    name_classes(out.train, c.classes);
    name_classes(out.valid, c.classes);
    match_classes(out.valid, out.train.classes, c.images);
  } else {
    const bool by_class = fs::is_directory(c.images);
    require(!by_class || c.classes.empty(),
            "data.classes does not apply to {images}: the names of its folders are the classes", "images"_a = c.images);
    out.train = limited(read_labelled(c.images, c.labels, shape), c.limit, by_class);
    if (!by_class) name_classes(out.train, c.classes);
    if (!c.valid_images.empty()) {
      const bool valid_folder = fs::is_directory(c.valid_images);
      out.valid = read_labelled(
          c.valid_images, c.valid_labels,
          {.side = c.image_size, .channels = valid_folder ? out.train.size.channels : 0, .filter = c.filter});
      if (!valid_folder) name_classes(out.valid, c.classes);
      match_classes(out.valid, out.train.classes, c.valid_images);
    } else if (c.valid_share > 0) {
      split_off(out, c.valid_share, seed);
    }
  }
  out.facts = {out.train.size, out.train.classes};
  if (c.channels > 0) out.facts.size.channels = c.channels;
  if (c.image_size > 0) out.facts.size.height = out.facts.size.width = c.image_size;
  const auto is_known = [&](const std::string& name) { return std::ranges::find(known, name) != known.end(); };
  if (std::ranges::all_of(out.facts.classes, is_known)) {
    for (ImageSet* set : {&out.train, &out.valid})
      if (set->count() > 0) match_classes(*set, known, c.images);
    out.facts.classes = known;
  }
  require(c.image_size > 0 || out.valid.count() == 0 ||
              (out.valid.size.height == out.train.size.height && out.valid.size.width == out.train.size.width),
          "images for training have {train} pixels, images for validation {valid}; data.image_size makes them equal",
          "train"_a = size_text(out.train.size), "valid"_a = size_text(out.valid.size));
  require(out.facts.classes.size() >= 2, "{images}: has 1 class, expected two or more", "images"_a = c.images);
  return out;
}

ImageSet read_image_file(const std::string& path, const std::string& labels) {
  const InputFile file(path);  // a folder is refused here
  if (is_idx(path)) return read_idx(path, labels.empty() ? labels_beside(path) : labels);
  require(labels.empty(), "{path}: is not an IDX file, so no labels go with it", "path"_a = path);
  std::array<char, 4> begin{};
  if (file.size() >= begin.size()) file.read(0, std::as_writable_bytes(std::span(begin)));
  require(file.size() == 0 || std::string_view(begin.data(), begin.size()) == "\x89PNG",
          "{path}: is neither a PNG nor an IDX file", "path"_a = path);
  const Picture picture = read_png(path);
  return from_pictures(std::span(&picture, 1), std::span(&path, 1));
}

void save_image_facts(const ImageFacts& facts, const std::string& folder) {
  const nlohmann::ordered_json json = {{"channels", facts.size.channels},
                                       {"height", facts.size.height},
                                       {"width", facts.size.width},
                                       {"classes", facts.classes}};
  write_file(folder + "/" + kFacts, json.dump(1) + "\n");
}

ImageFacts load_image_facts(const std::string& folder) {
  const std::string path = folder + "/" + kFacts;
  const Json json = Json::parse(read_text(path, limits::kSubwordModelBytes), nullptr, false);
  const auto number = [&](const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    require(json.is_object() && found != json.end() && found->is_number_integer() && found->get<int64_t>() >= 1 &&
                found->get<int64_t>() <= limits::kPictureSide,
            "{path}: \"{key}\" is missing or is not a size", "path"_a = path, "key"_a = key);
    return found->get<int64_t>();
  };
  ImageFacts out{{number("channels"), number("height"), number("width")}, {}};
  const auto classes = json.find("classes");
  require(classes != json.end() && classes->is_array() && !classes->empty() &&
              std::ssize(*classes) <= limits::kClasses &&
              std::all_of(classes->begin(), classes->end(), [](const Json& c) { return c.is_string(); }),
          "{path}: \"classes\" is missing or is not a list of names", "path"_a = path);
  require(out.size.channels == 1 || out.size.channels == 3, "{path}: \"channels\" is {channels}, expected 1 or 3",
          "path"_a = path, "channels"_a = out.size.channels);
  out.classes = classes->get<std::vector<std::string>>();
  return out;
}

}  // namespace qkv
