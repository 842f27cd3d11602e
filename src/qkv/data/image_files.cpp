// Image sets in files: IDX, and folders of PNG files.
#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <optional>

#include "qkv/core/counts.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/data/images.h"
#include "qkv/data/text.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/gzip.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFashionFolder = "/usr/share/datasets/fashion-mnist";
constexpr const char* kFashionPackage = "dataset-fashion-mnist";
constexpr std::array<const char*, 10> kFashionClasses = {"t-shirt", "trouser", "pullover", "dress", "coat",
                                                         "sandal",  "shirt",   "sneaker",  "bag",   "ankle boot"};

// A file read from its beginning, gzipped or not.
class Unpacked {
 public:
  explicit Unpacked(const std::string& path) : file_(path) {
    if (is_gzip(file_)) stream_.emplace(file_);
  }
  size_t read(std::span<std::byte> out) {
    if (stream_) return stream_->read(out);
    const size_t count = static_cast<size_t>(std::min<uint64_t>(out.size(), file_.size() - at_));
    file_.read(at_, out.first(count));
    at_ += count;
    return count;
  }
  /// The most bytes that there can be.
  uint64_t most() const {
    return stream_ ? limits::kFreeUnpacked + limits::kUnpackedRatio * file_.size() : file_.size();
  }
  const std::string& path() const { return file_.path(); }

 private:
  InputFile file_;
  std::optional<GzipStream> stream_;
  uint64_t at_ = 0;
};

// Reads the magic number and the sizes of an IDX file: bytes with `axes` axes.
std::vector<int64_t> idx_sizes(Unpacked& file, size_t axes) {
  std::array<unsigned char, 4> magic{};
  const bool whole = file.read(std::as_writable_bytes(std::span(magic))) == magic.size();
  require(whole && magic[0] == 0 && magic[1] == 0 && magic[2] >= 0x08 && magic[2] <= 0x0E && magic[3] >= 1,
          "{path}: is not an IDX file", "path"_a = file.path());
  require(magic[2] == 0x08, "{path}: is an IDX file of numbers that are not bytes (type {type}, expected 8)",
          "path"_a = file.path(), "type"_a = int{magic[2]});
  if (magic[3] != axes)
    throw axes == 3 && magic[3] == 1
        ? Error(tr("{path}: holds labels, expected images of shape (count, height, width)", "path"_a = file.path()),
                tr("give the file of their images"))
        : Error(axes == 3 ? tr("{path}: has {axes} axes, expected images of shape (count, height, width)",
                               "path"_a = file.path(), "axes"_a = int{magic[3]})
                          : tr("{path}: has {axes} axes, expected labels of shape (count)", "path"_a = file.path(),
                               "axes"_a = int{magic[3]}));
  std::vector<unsigned char> words(4 * axes);
  require(file.read(std::as_writable_bytes(std::span(words))) == words.size(), "{path}: the IDX file is cut off",
          "path"_a = file.path());
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < axes; ++i) {
    int64_t size = 0;
    for (size_t b = 0; b < 4; ++b) size = size << 8 | words[4 * i + b];
    sizes.push_back(size);
  }
  return sizes;
}

// The bytes after the sizes, which must be `count`.
std::vector<uint8_t> idx_bytes(Unpacked& file, uint64_t count) {
  require(count <= limits::kImageSetBytes, "{path}: has {size} bytes, expected at most {limit}", "path"_a = file.path(),
          "size"_a = grouped(count), "limit"_a = grouped(limits::kImageSetBytes));
  require(count <= file.most(), "{path}: its header promises {bytes} bytes, but the file is too short for them",
          "path"_a = file.path(), "bytes"_a = grouped(count));
  std::vector<uint8_t> bytes(count);
  require(file.read(std::as_writable_bytes(std::span(bytes))) == count, "{path}: the IDX file is cut off",
          "path"_a = file.path());
  std::byte more{};
  require(file.read({&more, 1}) == 0, "{path}: the IDX file has more bytes than its header says",
          "path"_a = file.path());
  return bytes;
}

std::vector<std::string> numbers_as_names(int64_t count) {
  std::vector<std::string> out;
  for (int64_t i = 0; i < count; ++i) out.push_back(std::to_string(i));
  return out;
}

std::string with_or_without_gz(const std::string& path) {
  if (fs::exists(path)) return path;
  return fs::exists(path + ".gz") ? path + ".gz" : std::string();
}

const char* prefix_of(MnistPart part) { return part == MnistPart::train ? "train" : "t10k"; }

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.rfind(from);
  return at == std::string::npos ? std::string() : text.replace(at, from.size(), to);
}

std::string idx_header(std::initializer_list<int64_t> sizes) {
  std::string out = {0, 0, 8, static_cast<char>(sizes.size())};
  for (const int64_t size : sizes)
    for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(size >> shift & 255);
  return out;
}

bool has_colour(const Picture& picture) {
  for (size_t i = 0; picture.channels == 3 && i < picture.pixels.size(); i += 3)
    if (picture.pixels[i] != picture.pixels[i + 1] || picture.pixels[i] != picture.pixels[i + 2]) return true;
  return false;
}

// Channels first.
std::vector<uint8_t> planes_of(const Picture& p) {
  std::vector<uint8_t> out(p.pixels.size());
  const int64_t plane = p.height * p.width;
  for (int64_t i = 0; i < plane; ++i)
    for (int64_t c = 0; c < p.channels; ++c)
      out[static_cast<size_t>(c * plane + i)] = p.pixels[static_cast<size_t>(i * p.channels + c)];
  return out;
}

ImageSize size_of(const Picture& p) { return {p.channels, p.height, p.width}; }

// A picture as it is kept until it is known whether the set has colour: grey with one channel where possible.
Picture reduced(Picture p, const PictureOptions& options) {
  const ImageSize from = size_of(p);
  const int64_t side = options.side;
  const ImageSize to{has_colour(p) ? 3 : 1, side > 0 ? side : p.height, side > 0 ? side : p.width};
  if (from == to) return p;
  const std::vector<uint8_t> planes = converted(planes_of(p), from, to, options.filter);
  Picture out{to.height, to.width, to.channels, std::vector<uint8_t>(planes.size())};
  const int64_t plane = to.height * to.width;
  for (int64_t i = 0; i < plane; ++i)
    for (int64_t c = 0; c < to.channels; ++c)
      out.pixels[static_cast<size_t>(i * to.channels + c)] = planes[static_cast<size_t>(c * plane + i)];
  return out;
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (!is_hidden(at->path())) out.push_back(at->path());
  require(!error, "cannot read {folder}: {reason}", "folder"_a = folder.string(), "reason"_a = error.message());
  std::sort(out.begin(), out.end());
  return out;
}

bool ends_in_png(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending == ".png";
}

}  // namespace

bool is_idx(const std::string& path) {
  Unpacked file(path);
  std::array<unsigned char, 4> magic{};
  if (file.read(std::as_writable_bytes(std::span(magic))) != magic.size()) return false;
  return magic[0] == 0 && magic[1] == 0 && magic[2] >= 0x08 && magic[2] <= 0x0E && magic[3] >= 1;
}

ImageSet read_idx(const std::string& images, const std::string& labels) {
  ImageSet out;
  Unpacked file(images);
  const std::vector<int64_t> sizes = idx_sizes(file, 3);
  require(sizes[0] >= 1, "{path}: has no images", "path"_a = images);
  require(sizes[1] >= 1 && sizes[2] >= 1 && sizes[1] <= limits::kPictureSide && sizes[2] <= limits::kPictureSide,
          "{path}: its images have {height} x {width} pixels, expected 1 to {most} per side", "path"_a = images,
          "height"_a = sizes[1], "width"_a = sizes[2], "most"_a = limits::kPictureSide);
  out.size = {1, sizes[1], sizes[2]};
  out.pixels = idx_bytes(file, static_cast<uint64_t>(sizes[0]) * static_cast<uint64_t>(out.size.bytes()));
  if (labels.empty()) return out;
  Unpacked names(labels);
  const std::vector<int64_t> count = idx_sizes(names, 1);
  require(count[0] == sizes[0], "{labels}: has {count} labels, but {images} has {images_count}", "labels"_a = labels,
          "count"_a = grouped(static_cast<uint64_t>(count[0])), "images"_a = images,
          "images_count"_a = image_count(static_cast<uint64_t>(sizes[0])));
  const std::vector<uint8_t> bytes = idx_bytes(names, static_cast<uint64_t>(count[0]));
  out.labels.assign(bytes.begin(), bytes.end());
  out.classes = numbers_as_names(*std::max_element(bytes.begin(), bytes.end()) + 1);
  return out;
}

std::string labels_beside(const std::string& images) {
  const fs::path path(images);
  std::string name = replaced(path.filename().string(), "images", "labels");
  if (name.empty()) return {};
  if (const std::string one = replaced(name, "idx3", "idx1"); !one.empty()) name = one;
  const std::string beside = (path.parent_path() / name).string();
  if (fs::exists(beside)) return beside;
  const std::string other = beside.ends_with(".gz") ? beside.substr(0, beside.size() - 3) : beside + ".gz";
  return fs::exists(other) ? other : std::string();
}

void write_idx(const ImageSet& set, const std::string& images, const std::string& labels) {
  check(set.size.channels == 1, "[write_idx] IDX files have grey images, got ", set.size.channels, " channels");
  std::string all = idx_header({set.count(), set.size.height, set.size.width});
  all.append(reinterpret_cast<const char*>(set.pixels.data()), set.pixels.size());
  write_file(images, all);
  if (labels.empty()) return;
  std::string names = idx_header({std::ssize(set.labels)});
  for (const int32_t label : set.labels) {
    check(label >= 0 && label < 256, "[write_idx] IDX labels are bytes, got ", label);
    names += static_cast<char>(label);
  }
  write_file(labels, names);
}

ImageSet from_pictures(std::span<const Picture> pictures, std::span<const std::string> names,
                       const PictureOptions& options) {
  check(!pictures.empty() && pictures.size() == names.size(), "[from_pictures] ", pictures.size(), " pictures and ",
        names.size(), " names");
  ImageSet out;
  const Picture& first = pictures[0];
  out.size = {options.channels, options.side > 0 ? options.side : first.height,
              options.side > 0 ? options.side : first.width};
  if (options.channels == 0) out.size.channels = std::any_of(pictures.begin(), pictures.end(), has_colour) ? 3 : 1;
  for (size_t i = 0; i < pictures.size(); ++i) {
    const Picture& p = pictures[i];
    if (options.side == 0 && (p.height != first.height || p.width != first.width))
      throw Error(tr("{name}: has {height} x {width} pixels, but {first} has {first_height} x {first_width}",
                     "name"_a = names[i], "height"_a = p.height, "width"_a = p.width, "first"_a = names[0],
                     "first_height"_a = first.height, "first_width"_a = first.width),
                  tr("--image-size N brings all pictures to N x N pixels"));
    out.add(converted(planes_of(p), size_of(p), out.size, options.filter));
  }
  return out;
}

ImageSet read_class_folder(const std::string& folder, const PictureOptions& options) {
  std::vector<Picture> pictures;
  std::vector<std::string> names, classes;
  std::vector<int32_t> labels;
  uint64_t bytes = 0;
  for (const fs::path& inside : sorted_entries(folder)) {
    if (!fs::is_directory(inside)) continue;
    const size_t before = pictures.size();
    for (const fs::path& file : sorted_entries(inside)) {
      if (!ends_in_png(file)) continue;
      pictures.push_back(reduced(read_png(file.string()), options));
      names.push_back(file.string());
      labels.push_back(static_cast<int32_t>(classes.size()));
      bytes += pictures.back().pixels.size();
      require(bytes <= limits::kImageSetBytes, "{folder}: its pictures have more than {limit} bytes",
              "folder"_a = folder, "limit"_a = grouped(limits::kImageSetBytes));
    }
    require(pictures.size() > before, "{folder}: has no PNG file; expected the pictures of a class",
            "folder"_a = inside.string());
    classes.push_back(printable(inside.filename().string()));
    require(std::ssize(classes) <= limits::kClasses, "{folder}: has more than {most} classes", "folder"_a = folder,
            "most"_a = limits::kClasses);
  }
  if (classes.empty())
    throw Error(tr("{folder}: has no folders of PNG files, one for each class", "folder"_a = folder),
                tr("qkv data pictures -o DIR writes an example"));
  ImageSet out = from_pictures(pictures, names, options);
  out.labels = std::move(labels);
  out.classes = std::move(classes);
  return out;
}

bool is_mnist_folder(const std::string& folder) {
  return fs::is_directory(folder) && !with_or_without_gz(folder + "/train-images-idx3-ubyte").empty();
}

ImageSet read_mnist_folder(const std::string& folder, MnistPart part) {
  const auto file = [&](const char* what) {
    const std::string name = text(prefix_of(part), "-", what, "-ubyte"), path = with_or_without_gz(folder + "/" + name);
    require(!path.empty(), "{folder}: has no {name}, gzipped or not", "folder"_a = folder, "name"_a = name);
    return path;
  };
  return read_idx(file("images-idx3"), file("labels-idx1"));
}

ImageSet fashion_mnist(MnistPart part) {
  if (!is_mnist_folder(kFashionFolder))
    throw NotInstalled(tr("Fashion-MNIST is not installed: there is no {folder}", "folder"_a = kFashionFolder),
                       tr("apt install {package}; ./qkv installs it, and --images pictures needs no package",
                          "package"_a = kFashionPackage),
                       kFashionPackage);
  ImageSet out = read_mnist_folder(kFashionFolder, part);
  if (out.classes.size() == kFashionClasses.size()) out.classes.assign(kFashionClasses.begin(), kFashionClasses.end());
  return out;
}

}  // namespace qkv
