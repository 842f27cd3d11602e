// qkv data pictures: writes small drawn pictures as PNG files by class, as IDX files, or as one sheet.
#include <algorithm>
#include <filesystem>

#include "qkv/cli/data.h"
#include "qkv/data/pictures.h"
#include "qkv/io/atomic_file.h"

namespace qkv::cli {
namespace {

namespace fs = std::filesystem;

// Pictures in columns, a row for each class, with a line between them.
Picture sheet_of(const ImageSet& set) {
  const auto classes = std::ssize(set.classes);
  const int64_t side = set.size.height, zoom = std::max<int64_t>(1, 84 / side), step = side * zoom + 2;
  const int64_t rows = std::min(classes, set.count()), columns = (set.count() + classes - 1) / classes;
  Picture out{rows * step, columns * step, 1, {}};
  out.pixels.assign(static_cast<size_t>(out.height * out.width), 255);
  for (int64_t i = 0; i < set.count(); ++i) {
    const auto image = set.image(i);
    for (int64_t y = 0; y < side * zoom; ++y)
      for (int64_t x = 0; x < side * zoom; ++x)
        out.pixels[static_cast<size_t>((i % classes * step + y) * out.width + i / classes * step + x)] =
            image[static_cast<size_t>(y / zoom * side + x / zoom)];
  }
  return out;
}

class Pictures : public Command {
 public:
  std::string name() const override { return "data pictures"; }
  Text summary() const override { return tr("small drawn pictures of ten classes: shapes, strokes and textures"); }
  std::string example() const override {
    return "qkv data pictures --count 100 --seed 7 -o some\n"
           "  qkv data pictures --count 1000 -o pictures-images-idx3-ubyte\n"
           "  qkv data pictures --count 120 -o sheet.png";
  }
  void bind(Options& o) override {
    o.option("-o,--output PATH",
             tr("a folder, for PNG files by class; a name with \"images\", for that IDX file and one of labels; or a "
                ".png file, for all pictures on one sheet"),
             output_);
    o.option("--count N", tr("number of pictures; classes take turns"), options_.count, 1, 10'000'000);
    o.option("--side N", tr("pixels per side"), options_.side, 8, 512);
  }

  int run(const Global& global) override {
    if (!output_) throw UsageError(tr("the option --output PATH is missing"));
    if (global.seed_given) options_.seed = global.seed;
    const fs::path path(*output_);
    const std::string file = path.filename().string();
    const bool sheet = path.extension() == ".png", idx = file.find("images") != std::string::npos && !sheet;
    if (idx && file.ends_with(".gz"))
      throw UsageError(tr("--output: IDX files are written without gzip, got \"{output}\"", "output"_a = *output_));
    if (sheet && options_.count > 2000)
      throw UsageError(
          tr("--count {count}: a sheet has at most {most} pictures", "count"_a = options_.count, "most"_a = 2000));
    const ImageSet set = drawn_pictures(options_);
    if (sheet)
      write_file(*output_, encode_png(sheet_of(set)));
    else if (idx)
      write_idx(set, *output_, labels_of(path));
    else
      write_folder(set);
    return 0;
  }

 private:
  static std::string labels_of(const fs::path& images) {
    std::string name = images.filename().string();
    name.replace(name.rfind("images"), 6, "labels");
    if (const size_t at = name.rfind("idx3"); at != std::string::npos) name.replace(at, 4, "idx1");
    return (images.parent_path() / name).string();
  }

  // DIR/CLASS/NUMBER.png, from 1.
  void write_folder(const ImageSet& set) const {
    for (const std::string& name : set.classes) make_folder(*output_ + "/" + name);
    for (int64_t i = 0; i < set.count(); ++i) {
      const auto image = set.image(i);
      const auto label = static_cast<size_t>(set.labels[static_cast<size_t>(i)]);
      const Picture picture{set.size.height, set.size.width, 1, {image.begin(), image.end()}};
      write_file(text(*output_, "/", set.classes[label], "/", i / std::ssize(set.classes) + 1, ".png"),
                 encode_png(picture));
    }
  }

  PicturesOptions options_{.count = 100};
  std::optional<std::string> output_;
};

}  // namespace

std::unique_ptr<Command> data_pictures() { return std::make_unique<Pictures>(); }

}  // namespace qkv::cli
