// Images at other sizes and as batches of numbers.
#include "qkv/data/images.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/parallel.h"

namespace qkv {
namespace {

constexpr int kPrecision = 22;  // bits after the point of Pillow's weights

// Which pixels of a row an output pixel is made of, and their weights.
struct Taps {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

// Pillow's filters by the distance from the output pixel's centre: a triangle, and Keys' cubic with a = -1/2.
double filtered(ImageFilter filter, double x) {
  x = std::abs(x);
  if (filter == ImageFilter::bilinear) return x < 1 ? 1 - x : 0;
  constexpr double a = -0.5;
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

// A filter is wider where the row becomes shorter, so that every pixel counts.
std::vector<Taps> taps_of(int64_t in, int64_t out, ImageFilter filter) {
  const double scale = static_cast<double>(in) / static_cast<double>(out), wider = std::max(scale, 1.0),
               support = wider * (filter == ImageFilter::bilinear ? 1 : 2);
  std::vector<Taps> all(static_cast<size_t>(out));
  for (int64_t i = 0; i < out; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5)),
                  last = std::min(in, static_cast<int64_t>(centre + support + 0.5));
    std::vector<double> weights;
    double sum = 0;
    for (int64_t x = first; x < last; ++x) {
      weights.push_back(filtered(filter, (static_cast<double>(x) - centre + 0.5) / wider));
      sum += weights.back();
    }
    Taps& taps = all[static_cast<size_t>(i)];
    taps.first = first;
    for (const double w : weights) {
      const double share = (sum != 0 ? w / sum : w) * (1 << kPrecision);
      taps.weights.push_back(static_cast<int32_t>(share + (share < 0 ? -0.5 : 0.5)));
    }
  }
  return all;
}

uint8_t weighted(const uint8_t* from, int64_t stride, const Taps& taps) {
  int32_t sum = 1 << (kPrecision - 1);
  const uint8_t* at = from + taps.first * stride;
  for (const int32_t w : taps.weights) {
    sum += w * *at;
    at += stride;
  }
  return static_cast<uint8_t>(std::clamp(sum >> kPrecision, 0, 255));
}

// Scales planes of one size to another: rows first, then columns, as Pillow does.
class Resizer {
 public:
  Resizer(const ImageSize& from, const ImageSize& to, ImageFilter filter) : from_(from), to_(to) {
    if (from.width != to.width) along_rows_ = taps_of(from.width, to.width, filter);
    if (from.height != to.height) along_columns_ = taps_of(from.height, to.height, filter);
  }

  void operator()(const uint8_t* plane, uint8_t* out, std::vector<uint8_t>& between) const {
    between.resize(static_cast<size_t>(from_.height * to_.width));
    for (int64_t y = 0; y < from_.height; ++y)
      for (int64_t x = 0; x < to_.width; ++x)
        between[static_cast<size_t>(y * to_.width + x)] =
            along_rows_.empty() ? plane[y * from_.width + x]
                                : weighted(plane + y * from_.width, 1, along_rows_[static_cast<size_t>(x)]);
    for (int64_t y = 0; y < to_.height; ++y)
      for (int64_t x = 0; x < to_.width; ++x)
        out[y * to_.width + x] = along_columns_.empty()
                                     ? between[static_cast<size_t>(y * to_.width + x)]
                                     : weighted(between.data() + x, to_.width, along_columns_[static_cast<size_t>(y)]);
  }

 private:
  ImageSize from_, to_;
  std::vector<Taps> along_rows_, along_columns_;
};

// The weights of ITU-R 601 in 16 bits, as Pillow has them.
std::vector<uint8_t> grey(std::span<const uint8_t> image, int64_t plane) {
  std::vector<uint8_t> out(static_cast<size_t>(plane));
  const auto at = [&](int64_t channel, int64_t i) { return int32_t{image[static_cast<size_t>(channel * plane + i)]}; };
  for (int64_t i = 0; i < plane; ++i)
    out[static_cast<size_t>(i)] =
        static_cast<uint8_t>((at(0, i) * 19595 + at(1, i) * 38470 + at(2, i) * 7471 + 0x8000) >> 16);
  return out;
}

// Channels as wanted, at the same size.
std::vector<uint8_t> with_channels(std::span<const uint8_t> image, const ImageSize& from, int64_t channels) {
  const int64_t plane = from.height * from.width;
  if (channels == from.channels) return {image.begin(), image.end()};
  if (channels == 1) return grey(image, plane);
  std::vector<uint8_t> out;
  for (int64_t c = 0; c < channels; ++c) out.insert(out.end(), image.begin(), image.begin() + plane);
  return out;
}

std::vector<uint8_t> resized(std::span<const uint8_t> image, const Resizer& resizer, const ImageSize& from,
                             const ImageSize& to) {
  std::vector<uint8_t> same = with_channels(image, from, to.channels), between;
  if (from.height == to.height && from.width == to.width) return same;
  std::vector<uint8_t> out(static_cast<size_t>(to.bytes()));
  for (int64_t c = 0; c < to.channels; ++c)
    resizer(same.data() + c * from.height * from.width, out.data() + c * to.height * to.width, between);
  return out;
}

// Three numbers of the stream for every image, and the same number of places to be.
struct Change {
  int64_t right = 0, down = 0;
  bool mirrored = false;
};

Change change_of(int64_t image, const Augmentation& changes, const Rng& rng) {
  Change out;
  const auto number = 3 * static_cast<uint64_t>(image);
  if (changes.shift > 0) {
    const auto places = static_cast<uint64_t>(2 * changes.shift + 1);
    out.right = static_cast<int64_t>(rng.below(places, number)) - changes.shift;
    out.down = static_cast<int64_t>(rng.below(places, number + 1)) - changes.shift;
  }
  if (changes.flip) out.mirrored = rng.uniform(number + 2) < 0.5f;
  return out;
}

}  // namespace

ImageSet ImageSet::part(std::span<const int64_t> numbers) const {
  ImageSet out{size, {}, {}, classes};
  out.pixels.reserve(numbers.size() * static_cast<size_t>(size.bytes()));
  for (const int64_t i : numbers) {
    out.add(image(i));
    if (!labels.empty()) out.labels.push_back(labels[static_cast<size_t>(i)]);
  }
  return out;
}

std::vector<uint8_t> converted(std::span<const uint8_t> image, const ImageSize& from, const ImageSize& to,
                               ImageFilter filter) {
  check(std::ssize(image) == from.bytes(), "[converted] ", image.size(), " bytes are not an image of ", from.bytes());
  return resized(image, Resizer(from, to, filter), from, to);
}

Tensor image_batch(const ImageSet& set, std::span<const int64_t> numbers, const ImageSize& to,
                   const ImageScaling& scaling, const Augmentation& changes, const Rng& rng) {
  const auto rows = std::ssize(numbers);
  check(to.channels == 1 || to.channels == 3, "[image_batch] expected 1 or 3 channels, got ", to.channels);
  Tensor out = Tensor::empty({rows, to.channels, to.height, to.width});
  std::array<std::array<float, 256>, 3> values{};
  for (size_t c = 0; c < values.size(); ++c)
    for (size_t b = 0; b < 256; ++b)
      values[c][b] = static_cast<float>((static_cast<double>(b) / 255.0 - scaling.mean[c]) / scaling.deviation[c]);
  const Resizer resizer(set.size, to, scaling.filter);
  float* all = out.mutable_ptr();
  parallel_for(rows, 10.0 * static_cast<double>(out.numel()), [&](int64_t r) {
    const int64_t i = numbers[static_cast<size_t>(r)];
    const std::vector<uint8_t> image = resized(set.image(i), resizer, set.size, to);
    const Change change = change_of(i, changes, rng);
    float* pixel = all + r * to.bytes();
    for (int64_t row = 0; row < to.channels * to.height; ++row) {
      const int64_t y = row % to.height - change.down;
      const std::array<float, 256>& value = values[static_cast<size_t>(row / to.height)];
      const uint8_t* from = image.data() + (row - change.down) * to.width;
      for (int64_t at = -change.right; at < to.width - change.right; ++at) {
        const bool inside = y >= 0 && y < to.height && at >= 0 && at < to.width;
        *pixel++ = value[!inside ? 0 : from[change.mirrored ? to.width - 1 - at : at]];
      }
    }
  });
  return out;
}

}  // namespace qkv
