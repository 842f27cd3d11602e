// PNG files: every kind of pixel as Pillow and pypng write it, our own files back, and what is refused.
#include "qkv/io/png.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/files.h"
#include "unit/mutants/mutator.h"

namespace qkv::tests {
namespace {

using qkv_test::error_of;
using qkv_test::file_bytes;
using qkv_test::from_hex;
using qkv_test::put_bytes;
using qkv_test::TempFolder;

nlohmann::json golden() {
  std::ifstream in(QKV_SOURCE_DIR "/tests/golden/pictures.json");
  return nlohmann::json::parse(in);
}

Picture decoded(const std::string& bytes) { return decode_png(std::as_bytes(std::span(bytes)), "x.png"); }

// The file with every checksum right again.
std::string with_checksums(std::string png) {
  for (size_t at = 8; at + 12 <= png.size();) {
    const auto word = [&](size_t from) {
      uint32_t out = 0;
      for (size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<unsigned char>(png[from + i]);
      return out;
    };
    const size_t length = word(at);
    if (length > png.size() - at - 12) break;
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(png.data() + at + 4), static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i) png[at + 8 + length + i] = static_cast<char>(sum >> (24 - 8 * i) & 255);
    at += length + 12;
  }
  return png;
}

TEST(Png, EveryKindOfPixelIsReadAsItsWriterMeantIt) {
  for (const auto& [name, entry] : golden()["png"].items()) {
    const Picture picture = decoded(from_hex(entry["file"]));
    EXPECT_EQ(picture.height, entry["height"].get<int64_t>()) << name;
    EXPECT_EQ(picture.width, entry["width"].get<int64_t>()) << name;
    EXPECT_EQ(picture.channels, entry["channels"].get<int64_t>()) << name;
    EXPECT_EQ(std::string(picture.pixels.begin(), picture.pixels.end()), from_hex(entry["pixels"])) << name;
  }
}

TEST(Png, OurOwnFilesAreReadBack) {
  const TempFolder folder;
  for (const int64_t channels : {1, 3}) {
    Picture picture{7, 5, channels, {}};
    for (int64_t i = 0; i < 35 * channels; ++i) picture.pixels.push_back(static_cast<uint8_t>(i * 37));
    put_bytes(folder / "x.png", encode_png(picture));
    EXPECT_EQ(read_png(folder / "x.png").pixels, picture.pixels);
  }
}

TEST(Png, TransparentPixelsAreRefused) {
  for (const auto& [name, file] : golden()["transparent"].items())
    EXPECT_EQ(error_of([&, &f = file] { decoded(from_hex(f)); }),
              "x.png: has transparent pixels, expected an opaque picture")
        << name;
}

TEST(Png, DamagedFilesAreRefusedInOneLine) {
  const std::string good = from_hex(golden()["png"]["grey_8"]["file"]);
  const auto refused = [](const std::string& bytes) { return error_of([&] { decoded(bytes); }); };
  EXPECT_EQ(refused("JFIF"), "x.png: is not a PNG file");
  EXPECT_EQ(refused(good.substr(0, good.size() - 5)), "x.png: the PNG file is cut off");
  EXPECT_EQ(refused(good.substr(0, 20)), "x.png: the PNG file is cut off");
  std::string bad = good;
  bad[bad.size() - 30] ^= 1;
  EXPECT_EQ(refused(bad), "x.png: the PNG file is damaged: the checksum of a chunk is wrong");
  bad = good;
  bad[25] = 5;  // the kind of pixels
  EXPECT_EQ(refused(with_checksums(bad)),
            "x.png: the PNG file is damaged: its header names a kind of pixels that does not exist");
  bad = good;
  bad[23] = 12;  // one row more than there is
  EXPECT_EQ(refused(with_checksums(bad)), "x.png: the PNG file is damaged: pixels are missing");
  bad = good;
  bad[22] = 0x40;  // 16,395 rows
  EXPECT_EQ(refused(with_checksums(bad)), "x.png: says that it has 13 x 16395 pixels, expected 1 to 16384 per side");
  bad = good;
  bad[18] = 0x30;
  bad[22] = 0x10;
  EXPECT_EQ(refused(with_checksums(bad)),
            "x.png: says that it has 12301 x 4107 pixels, but 165 bytes are too few for them");
  const TempFolder folder;
  put_bytes(folder / "empty.png", "");
  EXPECT_EQ(error_of([&] { read_png(folder / "empty.png"); }),
            (folder / "empty.png") + ": is empty, expected a picture");
}

TEST(Mutants, OfPngFilesAreReadOrRefused) {
  const TempFolder folder;
  std::vector<std::string> files;
  for (const char* name : {"grey_16_interlaced", "rgb_8", "palette_2", "opaque_rgba"})
    files.push_back(from_hex(golden()["png"][name]["file"]));
  const std::vector<std::string> words = {"IHDR", "PLTE", "IDAT", "IEND", "tRNS", std::string(4, '\0')};
  qkv_test::survives({files, words}, folder / "x.png", qkv_test::mutants(1000), [&](const std::string& p) {
    decoded(with_checksums(file_bytes(p)));
    read_png(p);
  });
}

}  // namespace
}  // namespace qkv::tests
