// Figures as files: endings, PNG, no half-written files.
#include "qkv/plot/save.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "qkv/core/check.h"
#include "qkv/plot/png.h"
#include "qkv/plot/svg.h"
#include "support/files.h"

using namespace qkv;

namespace {

class Save : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("qkv-save-" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  std::string error(const std::string& file) const {
    return qkv_test::error_of([&] { save(heatmaps(eye(2), "", ""), file); });
  }
  size_t files() const { return std::distance(std::filesystem::directory_iterator(folder_), {}); }
  std::filesystem::path folder_;
};

bool librsvg_is_here() { return dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL) != nullptr; }

uint32_t word_at(const std::string& s, size_t i) {
  return static_cast<uint32_t>((s[i] & 255) << 24 | (s[i + 1] & 255) << 16 | (s[i + 2] & 255) << 8 | (s[i + 3] & 255));
}

// The rows of a PNG with one IDAT, each preceded by its filter byte.
std::string unpacked(const std::string& png, size_t row, size_t rows) {
  std::string out(row * rows, '\0');
  uLongf size = out.size();
  const size_t at = png.find("IDAT");
  EXPECT_EQ(uncompress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(png.data() + at + 4),
                       word_at(png, at - 4)),
            Z_OK);
  EXPECT_EQ(size, out.size());
  return out;
}

int pixels(const std::string& rows, size_t width, Colour colour) {
  int count = 0;
  for (size_t begin = 1; begin < rows.size(); begin += 3 * width + 1)
    for (size_t x = 0; x < width; ++x) {
      const char* p = rows.data() + begin + 3 * x;
      count += (p[0] & 255) == colour.red && (p[1] & 255) == colour.green && (p[2] & 255) == colour.blue;
    }
  return count;
}

}  // namespace

TEST_F(Save, WritesSvgAndTextByEnding) {
  const Figure figure = heatmaps(eye(3), "Keys", "Queries");
  save(figure, path("a.svg"));
  EXPECT_EQ(bytes(path("a.svg")), svg(figure));
  save(figure, path("b.TXT"));
  EXPECT_NE(bytes(path("b.TXT")).find("@@"), std::string::npos);
  EXPECT_EQ(files(), 2) << "no temporary file is left";
}

TEST_F(Save, UnknownEndingsAreRefused) {
  EXPECT_EQ(error("heat.bmp"), "heat.bmp: unknown ending \".bmp\", expected .svg, .png or .txt");
  EXPECT_EQ(error("heat"), "heat: unknown ending \"\", expected .svg, .png or .txt");
}

TEST_F(Save, AFolderThatIsNotThereIsNamed) {
  EXPECT_EQ(error(path("no/heat.svg")), "cannot write " + path("no/heat.svg") + ": No such file or directory");
}

TEST_F(Save, PngHasTwoPixelsPerUnitAndTheRightColours) {
  ASSERT_TRUE(librsvg_is_here())
      << "librsvg-2.so.2 is not installed, although ./test installs it (Debian package librsvg2-2)";
  const Figure figure = heatmaps(Tensor({1, 2}, {0, 1}), "键", "été", {}, {.size = FigureSize{3, 2}});
  save(figure, path("a.png"));
  const std::string png = bytes(path("a.png"));
  EXPECT_EQ(png.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(word_at(png, 16), 576);
  EXPECT_EQ(word_at(png, 20), 384);
  const std::string rows = unpacked(png, 3 * 576 + 1, 384);
  EXPECT_GT(pixels(rows, 576, colour_at(ColourMap::reds, 0)), 2000);
  EXPECT_GT(pixels(rows, 576, colour_at(ColourMap::reds, 1)), 2000);
  EXPECT_GT(pixels(rows, 576, {255, 255, 255}), 50000);
  save(figure, path("b.png"), Language::en, 1);
  EXPECT_EQ(word_at(bytes(path("b.png")), 16), 288);
  save(figure, path("c.png"));
  EXPECT_EQ(bytes(path("c.png")), png);
}

TEST_F(Save, BrokenSvgIsAnErrorNotACrash) {
  ASSERT_TRUE(librsvg_is_here())
      << "librsvg-2.so.2 is not installed, although ./test installs it (Debian package librsvg2-2)";
  EXPECT_THROW(plotting::render_png("<svg", 1), Error);
  EXPECT_THROW(plotting::render_png("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"90000\" height=\"10\"/>", 1),
               Error);
}
