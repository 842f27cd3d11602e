// .npz: round trips, both methods, damage everywhere, hostile directories.
#include "qkv/io/npz.h"

#include <gtest/gtest.h>

#include "damage.h"
#include "support/files.h"

using namespace qkv;
using qkv_test::error_of;
using qkv_test::file_bytes;
using qkv_test::put_bytes;
using qkv_test::TempFolder;

namespace {

std::map<std::string, Array> two_arrays() {
  return {{"keys", Array::of<float>({2, 2}, {1, 2, 3, 4})}, {"lens", Array::of<int64_t>({3}, {2, 6, 1})}};
}

void put32(std::string& bytes, size_t at, uint32_t value) {
  for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i));
}

}  // namespace

TEST(Npz, ComesBackStoredAndDeflated) {
  TempFolder folder;
  const std::string path = folder / "x.npz";
  auto arrays = two_arrays();
  arrays["many"] = Array(Dtype::float64, {100, 100});
  arrays["none"] = Array(Dtype::float32, {0});
  for (Compression compression : {Compression::stored, Compression::deflate}) {
    write_npz(path, arrays, compression);
    EXPECT_EQ(read_npz(path), arrays);
    const std::string first = file_bytes(path);
    write_npz(path, arrays, compression);
    EXPECT_EQ(file_bytes(path), first) << "the same arrays must make the same bytes";
    EXPECT_EQ(first.size() < 10000, compression == Compression::deflate);
  }
  EXPECT_EQ(NpzFile(path).names(), (std::vector<std::string>{"keys", "lens", "many", "none"}));
  EXPECT_EQ(error_of([&] { NpzFile(path).array("q"); }), path + ": has no array \"q\"");
  write_npz(path, {});
  EXPECT_TRUE(read_npz(path).empty());
}

TEST(Npz, SurvivesDamageAnywhere) {
  TempFolder folder;
  const std::string path = folder / "x.npz";
  for (Compression compression : {Compression::stored, Compression::deflate}) {
    write_npz(path, {{"k", Array::of<float>({2, 2}, {1, 2, 3, 4})}}, compression);
    qkv_test::survives_damage(file_bytes(path), path, [](const std::string& p) {
      for (const auto& [name, array] : read_npz(p))
        EXPECT_EQ(array, Array::of<float>({2, 2}, {1, 2, 3, 4}));  // guaranteed by the CRC
    });
  }
}

TEST(Npz, RefusesWhatItsDirectoryCannotMean) {
  TempFolder folder;
  const std::string path = folder / "x.npz";
  write_npz(path, two_arrays());
  const std::string good = file_bytes(path);
  const size_t central = good.find("PK\1\2"), second = good.find("PK\1\2", central + 4), end = good.find("PK\5\6");
  const auto error_with = [&](size_t at, uint32_t value) {
    std::string bytes = good;
    put32(bytes, at, value);
    put_bytes(path, bytes);
    const std::string message = error_of([&] { read_npz(path); });
    return message.substr(std::min(message.size(), path.size() + 2));
  };
  const std::string zip64 = "zip64 archives (4 GB or 65,535 arrays and more) are not supported";
  EXPECT_EQ(error_with(central + 24, 0xffffffff), "keys.npy: " + zip64);
  EXPECT_EQ(error_with(end + 16, 0xffffffff), zip64);
  EXPECT_EQ(error_with(central + 24, 0x7fffffff), "keys.npy: says that 144 packed bytes make 2147483647");
  EXPECT_EQ(error_with(central + 20, 0x7fffffff),
            "keys.npy: says 2147483647 bytes at offset 0, which run into what follows at 182");
  EXPECT_EQ(error_with(second + 42, 0), "keys.npy: says 144 bytes at offset 0, which run into what follows at 0");
  EXPECT_EQ(error_with(central + 8, 0x00000001), "keys.npy: encrypted zip entries are not supported");
  EXPECT_EQ(error_with(central + 8, 0x000c0000), "keys.npy: zip method 12, expected 0 (stored) or 8 (deflate)");
  EXPECT_EQ(error_with(second + 46, 0x7379656b), "keys.npy: the name appears twice");  // "lens" -> "keys"
  EXPECT_EQ(error_with(second + 46 + 4, 0x7478742e), "lens.txt: not an array, expected a name that ends in .npy");
  EXPECT_EQ(error_with(0, 0), "keys.npy: no such zip entry at offset 0");
  std::string flipped = good;
  flipped[30 + 8 + 128] = 1;  // a byte of the first element
  put_bytes(path, flipped);
  EXPECT_TRUE(error_of([&] { read_npz(path); }).starts_with(path + ": keys.npy: the bytes are damaged, CRC "));
}

TEST(Npz, ReadsAnArchiveWithACommentAndLocalExtraFields) {
  TempFolder folder;
  const std::string path = folder / "x.npz";
  write_npz(path, {{"k", Array::of<float>({1}, {5})}});
  std::string bytes = file_bytes(path);
  // NumPy's local headers carry 20 bytes of zip64 sizes; the directory does not.
  const std::string extra = std::string("\1\0\x10\0", 4) + std::string(16, '\7');
  bytes.insert(30 + 5, extra);
  bytes[28] = 20;
  const size_t end = bytes.find("PK\5\6");
  bytes[end + 16] = static_cast<char>(bytes[end + 16] + 20);
  bytes[end + 20] = 5;
  put_bytes(path, bytes + "hello");
  EXPECT_EQ(read_npz(path).at("k"), Array::of<float>({1}, {5}));
}
