// Image sets: IDX files, folders of pictures, sizes and greys as Pillow makes them, batches and their augmentation.
#include "qkv/data/images.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "qkv/data/pictures.h"
#include "support/files.h"
#include "support/threads.h"
#include "unit/mutants/mutator.h"

namespace qkv::tests {
namespace {

namespace fs = std::filesystem;
using qkv_test::error_of;
using qkv_test::file_bytes;
using qkv_test::from_hex;
using qkv_test::put_bytes;
using qkv_test::TempFolder;

std::vector<uint8_t> bytes_of(const std::string& hex) {
  const std::string raw = from_hex(hex);
  return {raw.begin(), raw.end()};
}

nlohmann::json golden() {
  std::ifstream in(QKV_SOURCE_DIR "/tests/golden/pictures.json");
  return nlohmann::json::parse(in);
}

ImageSet some_images(int64_t count, const ImageSize& size) {
  ImageSet set{size, {}, {}, {"0", "1", "2"}};
  for (int64_t i = 0; i < count * size.bytes(); ++i) set.pixels.push_back(static_cast<uint8_t>(i * 7 + i / 11));
  for (int64_t i = 0; i < count; ++i) set.labels.push_back(static_cast<int32_t>(i % 3));
  return set;
}

void gzip_file(const std::string& from, const std::string& to) {
  const std::string bytes = file_bytes(from);
  const gzFile file = gzopen(to.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

TEST(Images, AreResizedAsPillowDoesIt) {
  for (const auto& c : golden()["resize"]) {
    const ImageSize from{1, c["from"][0], c["from"][1]}, to{1, c["to"][0], c["to"][1]};
    EXPECT_EQ(converted(bytes_of(c["in"]), from, to), bytes_of(c["out"])) << c["from"] << " to " << c["to"];
  }
}

TEST(Images, ColoursBecomeGreyAsPillowDoesIt) {
  const auto c = golden()["grey"];
  EXPECT_EQ(converted(bytes_of(c["in"]), {3, 16, 16}, {1, 16, 16}), bytes_of(c["out"]));
}

TEST(Images, IdxFilesAreReadBackPlainAndGzipped) {
  const TempFolder folder;
  const ImageSet set = some_images(5, {1, 4, 3});
  write_idx(set, folder / "train-images-idx3-ubyte", folder / "train-labels-idx1-ubyte");
  EXPECT_TRUE(is_idx(folder / "train-images-idx3-ubyte"));
  EXPECT_EQ(labels_beside(folder / "train-images-idx3-ubyte"), folder / "train-labels-idx1-ubyte");
  gzip_file(folder / "train-images-idx3-ubyte", folder / "x.gz");
  EXPECT_EQ(labels_beside(folder / "x.gz"), "");
  for (const char* images : {"train-images-idx3-ubyte", "x.gz"}) {
    const ImageSet read = read_idx(folder / images, folder / "train-labels-idx1-ubyte");
    EXPECT_EQ(read.size, set.size);
    EXPECT_EQ(read.pixels, set.pixels);
    EXPECT_EQ(read.labels, set.labels);
    EXPECT_EQ(read.classes, set.classes);
  }
  EXPECT_TRUE(read_idx(folder / "x.gz", "").labels.empty());
}

TEST(Images, DamagedIdxFilesAreRefusedInOneLine) {
  const TempFolder folder;
  const std::string images = folder / "i", labels = folder / "l";
  write_idx(some_images(5, {1, 4, 3}), images, labels);
  const std::string good = file_bytes(images), names = file_bytes(labels);
  const auto refused = [&](const std::string& bytes) {
    put_bytes(images, bytes);
    return error_of([&] { read_idx(images, labels); });
  };
  EXPECT_EQ(refused("PNG"), images + ": is not an IDX file");
  EXPECT_EQ(refused(good.substr(0, 9)), images + ": the IDX file is cut off");
  EXPECT_EQ(refused(good.substr(0, 40)), images + ": its header promises 60 bytes, but the file is too short for them");
  EXPECT_EQ(refused(good.substr(0, 70)), images + ": the IDX file is cut off");
  EXPECT_EQ(refused(good + "x"), images + ": the IDX file has more bytes than its header says");
  EXPECT_EQ(refused(names), images + ": holds labels, expected images of shape (count, height, width)");
  std::string bad = good;
  bad[2] = 0x0D;
  EXPECT_EQ(refused(bad), images + ": is an IDX file of numbers that are not bytes (type 13, expected 8)");
  bad = good;
  bad[4] = 0x7F;  // two billion images
  EXPECT_EQ(refused(bad), images + ": has 25,568,477,244 bytes, expected at most 8,589,934,592");
  bad = good;
  bad[11] = 0;
  EXPECT_EQ(refused(bad), images + ": its images have 0 x 3 pixels, expected 1 to 16384 per side");
  put_bytes(images, good);
  bad = names;
  bad[7] = 4;
  put_bytes(labels, bad);
  EXPECT_EQ(error_of([&] { read_idx(images, labels); }), labels + ": has 4 labels, but " + images + " has 5 images");
}

TEST(Images, FoldersOfPngFilesAreClasses) {
  const TempFolder folder;
  fs::create_directory(folder / "in");
  const std::string in = folder / "in";
  EXPECT_EQ(error_of([&] { read_class_folder(in); }), in + ": has no folders of PNG files, one for each class");
  for (const char* name : {"zebra", "ant"}) fs::create_directory(in + "/" + name);
  EXPECT_EQ(error_of([&] { read_class_folder(in); }), in + "/ant: has no PNG file; expected the pictures of a class");
  put_bytes(in + "/ant/2.png", encode_png(Picture{2, 2, 1, {1, 2, 3, 4}}));
  put_bytes(in + "/ant/1.png", encode_png(Picture{2, 2, 3, {9, 9, 9, 8, 8, 8, 7, 7, 7, 6, 6, 6}}));
  put_bytes(in + "/zebra/a.PNG", encode_png(Picture{2, 2, 1, {5, 5, 5, 5}}));
  put_bytes(in + "/zebra/notes.txt", "not a picture");
  const ImageSet grey = read_class_folder(in);
  EXPECT_EQ(grey.classes, (std::vector<std::string>{"ant", "zebra"}));
  EXPECT_EQ(grey.labels, (std::vector<int32_t>{0, 0, 1}));
  EXPECT_EQ(grey.size, (ImageSize{1, 2, 2}));
  EXPECT_EQ(grey.pixels, (std::vector<uint8_t>{9, 8, 7, 6, 1, 2, 3, 4, 5, 5, 5, 5}));
  // One picture with colour makes all of them have three channels.
  put_bytes(in + "/zebra/b.png", encode_png(Picture{2, 2, 3, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}));
  const ImageSet colour = read_class_folder(in);
  EXPECT_EQ(colour.size, (ImageSize{3, 2, 2}));
  EXPECT_EQ(std::vector<uint8_t>(colour.image(3).begin(), colour.image(3).end()),
            (std::vector<uint8_t>{1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12}));
  put_bytes(in + "/zebra/c.png", encode_png(Picture{1, 2, 1, {5, 5}}));
  EXPECT_EQ(error_of([&] { read_class_folder(in); }),
            in + "/zebra/c.png: has 1 x 2 pixels, but " + in + "/ant/1.png has 2 x 2");
  EXPECT_EQ(read_class_folder(in, {.side = 4}).size, (ImageSize{3, 4, 4}));
  put_bytes(in + "/zebra/c.png", "broken");
  EXPECT_EQ(error_of([&] { read_class_folder(in); }), in + "/zebra/c.png: is not a PNG file");
}

TEST(Images, BatchesAreScaledNumbers) {
  const ImageSet set = some_images(3, {1, 2, 2});
  const int64_t numbers[] = {2, 0};
  const Tensor batch = image_batch(set, numbers, {1, 2, 2}, ImageScaling::same(0.5, 0.25));
  ASSERT_EQ(batch.shape(), (Shape{2, 1, 2, 2}));
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(batch.ptr()[i],
              static_cast<float>((set.image(numbers[i / 4])[static_cast<size_t>(i % 4)] / 255.0 - 0.5) / 0.25));
  EXPECT_EQ(image_batch(set, numbers, {3, 4, 4}, {}).shape(), (Shape{2, 3, 4, 4}));
}

TEST(Images, AugmentationMovesAndMirrorsByCountedNumbers) {
  ImageSet set{{1, 5, 5}, std::vector<uint8_t>(400 * 25), {}, {}};
  for (int64_t i = 0; i < 400; ++i) {
    set.pixels[static_cast<size_t>(i * 25 + 12)] = 255;  // the middle
    set.pixels[static_cast<size_t>(i * 25 + 13)] = 51;   // right of it
  }
  std::vector<int64_t> all(400);
  std::iota(all.begin(), all.end(), 0);
  const Augmentation changes{.shift = 2, .flip = true};
  const Tensor batch = image_batch(set, all, set.size, {}, changes, Rng(3));
  std::vector<int> places(25), mirrored(2);
  for (int64_t i = 0; i < 400; ++i) {
    const float* image = batch.ptr() + i * 25;
    const auto at = std::max_element(image, image + 25) - image;
    ASSERT_EQ(image[at], 1.0f);
    ++places[static_cast<size_t>(at)];
    const bool right = at % 5 < 4 && image[at + 1] == 0.2f, left = at % 5 > 0 && image[at - 1] == 0.2f;
    EXPECT_LE(int{right} + int{left}, 1);
    if (at % 5 > 0 && at % 5 < 4) ++mirrored[left];
  }
  for (const int count : places) EXPECT_GT(count, 4);
  EXPECT_NEAR(mirrored[0], mirrored[1], 60);
  // An image's change depends on its own number alone.
  const int64_t one[] = {7};
  const Tensor alone = image_batch(set, one, set.size, {}, changes, Rng(3));
  EXPECT_TRUE(std::equal(alone.ptr(), alone.ptr() + 25, batch.ptr() + 7 * 25));
}

TEST(Pictures, DependOnSeedPartAndNumberAlone) {
  const ImageSet many = drawn_pictures({.count = 60, .seed = 4}), few = drawn_pictures({.count = 25, .seed = 4});
  EXPECT_EQ(many.classes.size(), 10u);
  EXPECT_EQ(many.size, (ImageSize{1, 28, 28}));
  for (int64_t i = 0; i < 60; ++i) EXPECT_EQ(many.labels[static_cast<size_t>(i)], i % 10);
  EXPECT_TRUE(std::equal(few.pixels.begin(), few.pixels.end(), many.pixels.begin()));
  EXPECT_NE(many.pixels, drawn_pictures({.count = 60, .seed = 5}).pixels);
  EXPECT_NE(many.pixels, drawn_pictures({.count = 60, .seed = 4, .part = PicturePart::valid}).pixels);
  for (const int threads : {1, 8}) {
    const qkv_test::ThreadsScope scope(threads);
    EXPECT_EQ(drawn_pictures({.count = 60, .seed = 4}).pixels, many.pixels);
  }
  EXPECT_EQ(drawn_pictures({.count = 3, .side = 64}).pixels.size(), 3u * 64 * 64);
}

TEST(Pictures, EveryOneShowsSomething) {
  const ImageSet set = drawn_pictures({.count = 500, .seed = 2});
  for (int64_t i = 0; i < set.count(); ++i) {
    const auto image = set.image(i);
    std::vector<uint8_t> sorted(image.begin(), image.end());
    std::sort(sorted.begin(), sorted.end());
    EXPECT_GT(sorted[sorted.size() * 97 / 100] - sorted[sorted.size() / 2], 50) << "picture " << i;
  }
}

TEST(Mutants, OfIdxFilesAreReadOrRefused) {
  const TempFolder folder;
  write_idx(some_images(5, {1, 4, 3}), folder / "i", folder / "l");
  gzip_file(folder / "i", folder / "i.gz");
  const std::vector<std::string> plain = {file_bytes(folder / "i")}, packed = {file_bytes(folder / "i.gz")};
  const std::vector<std::string> words = {std::string(4, '\0'), std::string("\0\0\x08\x03", 4), "\xFF\xFF\xFF\xFF"};
  for (const auto& files : {plain, packed})
    qkv_test::survives({files, words}, folder / "x", qkv_test::mutants(1000), [&](const std::string& p) {
      is_idx(p);
      read_idx(p, folder / "l");
    });
}

}  // namespace
}  // namespace qkv::tests
