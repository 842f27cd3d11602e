// Sets of small images with labels: IDX files, PNG files, folders of PNG files by class, and Fashion-MNIST.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/check.h"
#include "qkv/core/image_size.h"
#include "qkv/core/rng.h"
#include "qkv/io/png.h"
#include "qkv/tensor/tensor.h"

namespace QKV_API qkv {

/// Images of one size. Labels are numbers of classes.
struct ImageSet {
  ImageSize size;
  std::vector<uint8_t> pixels = {};       // (N, channels, height, width)
  std::vector<int32_t> labels = {};       // (N), or none
  std::vector<std::string> classes = {};  // their names; none without labels

  int64_t count() const { return size.bytes() > 0 ? std::ssize(pixels) / size.bytes() : 0; }
  std::span<const uint8_t> image(int64_t i) const {
    return std::span(pixels).subspan(static_cast<size_t>(i * size.bytes()), static_cast<size_t>(size.bytes()));
  }
  /// Adds an image, which must have this size, without its label.
  void add(std::span<const uint8_t> image) { pixels.insert(pixels.end(), image.begin(), image.end()); }
  /// The images with these numbers.
  ImageSet part(std::span<const int64_t> numbers) const;
};

/// Data that comes with a Debian package which is not installed.
class NotInstalled : public Error {
 public:
  NotInstalled(Text message, Text hint, std::string package)
      : Error(std::move(message), std::move(hint)), package_(std::move(package)) {}
  const std::string& package() const { return package_; }

 private:
  std::string package_;
};

/// Whether a file begins like IDX, gzipped or not.
bool is_idx(const std::string& path);
/// Images and labels of IDX files, as MNIST has them: bytes of shape (N, height, width) and (N), gzipped or not. An
/// empty name of the labels: none. The sizes that a file names are compared with its own before memory is allocated.
/// Classes are named by their numbers.
ImageSet read_idx(const std::string& images, const std::string& labels);
/// The labels that go with a file of images: "train-labels-idx1-ubyte.gz" for "train-images-idx3-ubyte.gz". Empty if
/// there is no such file.
std::string labels_beside(const std::string& images);
/// Writes both files.
void write_idx(const ImageSet& set, const std::string& images, const std::string& labels);

/// How an image of another size is computed: by Pillow's filters of these names.
enum class ImageFilter { bilinear, bicubic };
constexpr std::array<std::string_view, 2> names(ImageFilter) { return {"bilinear", "bicubic"}; }

/// How pictures become images of one size.
struct PictureOptions {
  int64_t side = 0;      // stretched to side x side pixels; 0: all must have the same size
  int64_t channels = 0;  // 0: 3 if any picture has colour, else 1
  ImageFilter filter = ImageFilter::bilinear;
};
/// Pictures as one set, without labels; `names` are for errors.
ImageSet from_pictures(std::span<const Picture> pictures, std::span<const std::string> names,
                       const PictureOptions& options = {});
/// A folder with a folder of PNG files for each class; classes and files in the order of their names.
ImageSet read_class_folder(const std::string& folder, const PictureOptions& options = {});

/// The two parts of a folder that has files as MNIST does: train-images-idx3-ubyte, t10k-images-idx3-ubyte, and their
/// labels.
bool is_mnist_folder(const std::string& folder);
enum class MnistPart { train, test };
ImageSet read_mnist_folder(const std::string& folder, MnistPart part);
/// Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017) with the names of its classes, from Debian's package; NotInstalled
/// without it.
ImageSet fashion_mnist(MnistPart part);

/// The image at another size, as Pillow has it to the bit, which for bilinear is what torchvision's Resize does with
/// such images. Colours become grey by the weights of ITU-R 601, and grey becomes three equal channels.
std::vector<uint8_t> converted(std::span<const uint8_t> image, const ImageSize& from, const ImageSize& to,
                               ImageFilter filter = ImageFilter::bilinear);

/// Random changes of training images.
struct Augmentation {
  int64_t shift = 0;  // moved by up to this many pixels along both axes; what comes in is black
  bool flip = false;  // mirrored, left to right, half of the time
};
/// What a model sees of a byte: (byte / 255 - mean) / deviation, of every channel.
struct ImageScaling {
  std::array<double, 3> mean{}, deviation{1, 1, 1};
  ImageFilter filter = ImageFilter::bilinear;  // for images of another size
  /// The same for all channels.
  static ImageScaling same(double mean, double deviation) {
    return {.mean = {mean, mean, mean}, .deviation = {deviation, deviation, deviation}};
  }
};
/// The images with these numbers at size `to`, scaled: (rows, C, H, W). Image i is changed by numbers i of the stream.
Tensor image_batch(const ImageSet& set, std::span<const int64_t> numbers, const ImageSize& to,
                   const ImageScaling& scaling, const Augmentation& changes = {}, const Rng& rng = Rng(0));

}  // namespace qkv
