// .npy: round trips, NumPy's own bytes, hostile headers and damage everywhere.
#include "qkv/io/npy.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <limits>

#include "damage.h"
#include "support/files.h"

using namespace qkv;
using qkv_test::error_of;
using qkv_test::file_bytes;
using qkv_test::put_bytes;
using qkv_test::TempFolder;

namespace {

// A file of version `major`.0 with this dictionary and data.
std::string npy(const std::string& dictionary, const std::string& data, int major = 1) {
  std::string out = "\x93NUMPY";
  out += {static_cast<char>(major), '\0'};
  const size_t length = dictionary.size();
  out += {static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  if (major > 1) out += std::string(2, '\0');
  return out + dictionary + data;
}

std::string dictionary(const std::string& descr, const std::string& shape, const char* fortran = "False") {
  return "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }\n";
}

std::string error_for(const std::string& bytes) {
  TempFolder folder;
  const std::string path = folder / "x.npy";
  put_bytes(path, bytes);
  const std::string message = error_of([&] { read_npy(path); });
  return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : "without its file: " + message;
}

}  // namespace

TEST(Npy, EveryTypeComesBackAsItWas) {
  TempFolder folder;
  const std::string path = folder / "x.npy";
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<Array> arrays = {Array::of<float>({2, 3}, {1, -2.5f, inf, -0.f, 1e-42f, 3}),
                                     Array::of<double>({2}, {1e300, -1e-300}),
                                     Array::of<int32_t>({1, 2, 1}, {INT32_MIN, INT32_MAX}),
                                     Array::of<int64_t>({2}, {INT64_MIN, INT64_MAX}),
                                     Array::of<bool>({3}, {true, false, true}),
                                     Array::of<uint8_t>({2}, {0, 255}),
                                     Array::of<float>({}, {7}),
                                     Array::of<float>({0, 4}, {}),
                                     Array::of<float>({1, 1, 1, 1, 1, 2}, {1, 2})};
  for (const Array& array : arrays) {
    write_npy(path, array);
    EXPECT_EQ(read_npy(path), array) << dtype_name(array.dtype()) << array.shape().str();
    EXPECT_EQ((file_bytes(path).size() - array.bytes().size()) % 64, 0u);
  }
  EXPECT_EQ(folder.count(), 1);
}

TEST(Npy, WritesTheBytesOfNumPy) {
  TempFolder folder;
  write_npy(folder / "x.npy", Tensor({2}, {1, 2}));
  std::string expected("\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 67);
  expected.append(127 - expected.size(), ' ');
  expected += '\n' + std::string("\x00\x00\x80\x3f\x00\x00\x00\x40", 8);
  EXPECT_EQ(file_bytes(folder / "x.npy"), expected);
}

TEST(Npy, ReadsFortranOrderOfAnyRank) {
  TempFolder folder;
  const std::string path = folder / "x.npy";
  // (2, 3): element (i, j) = 10 i + j, first axis fastest.
  put_bytes(path, npy(dictionary("|u1", "(2, 3)", "True"), std::string("\x00\x0a\x01\x0b\x02\x0c", 6)));
  EXPECT_EQ(read_npy(path), Array::of<uint8_t>({2, 3}, {0, 1, 2, 10, 11, 12}));
  // (2, 3, 2): element (i, j, k) = 100 i + 10 j + k.
  std::string data;
  for (int k = 0; k < 2; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) data += static_cast<char>(100 * i + 10 * j + k);
  put_bytes(path, npy(dictionary("|u1", "(2, 3, 2)", "True"), data));
  EXPECT_EQ(read_npy(path), Array::of<uint8_t>({2, 3, 2}, {0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121}));
  put_bytes(path, npy(dictionary("|u1", "(0, 3)", "True"), ""));
  EXPECT_EQ(read_npy(path).shape(), Shape({0, 3}));
}

TEST(Npy, ReadsAllVersionsAndLooseDictionaries) {
  TempFolder folder;
  const std::string path = folder / "x.npy", data(8, '\0');
  for (int major = 1; major <= 3; ++major) {
    put_bytes(path, npy(dictionary("<i8", "(1,)"), data, major));
    EXPECT_EQ(read_npy(path), Array::of<int64_t>({1}, {0})) << major;
  }
  put_bytes(path, npy("{\"shape\":(1L,),'fortran_order':False,'descr':'<f8'}", data));
  EXPECT_EQ(read_npy(path), Array::of<double>({1}, {0}));
}

TEST(Npy, RefusesOtherTypesByName) {
  const std::string tail = "' not supported, expected '<f4', '<f8', '<i4', '<i8', '|b1' or '|u1'";
  const auto for_type = [](const std::string& descr) { return error_for(npy(dictionary(descr, "(1,)"), "0000")); };
  EXPECT_EQ(for_type(">f4"), "big-endian '>f4" + tail);
  EXPECT_EQ(for_type("|O"), "object arrays '|O" + tail);
  EXPECT_EQ(for_type("<f2"), "floats of this size '<f2" + tail);
  EXPECT_EQ(for_type("<c8"), "complex numbers '<c8" + tail);
  EXPECT_EQ(for_type("<U1"), "text '<U1" + tail);
  EXPECT_EQ(for_type("<M8[s]"), "dates '<M8[s]" + tail);
  EXPECT_EQ(for_type("hello"), "unknown 'hello" + tail);
  EXPECT_EQ(for_type(""), "unknown '" + tail);
  EXPECT_EQ(error_for(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "0000")),
            "structured arrays are not supported: \"[('a', '<f4')], 'for\"");
}

TEST(Npy, RefusesHostileHeadersBeforeTakingMemory) {
  EXPECT_EQ(error_for(""), "0 bytes are too few for an .npy file");
  EXPECT_EQ(error_for("PK\3\4 this is not an array"), "not an .npy file, it does not begin with \\x93NUMPY");
  EXPECT_EQ(error_for(npy(dictionary("<f4", "(1,)"), "0000", 4)), ".npy version 4.0, expected 1.0, 2.0 or 3.0");
  EXPECT_EQ(error_for(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff{}", 14)),
            "header says 4294967295 bytes, the file has 14");
  EXPECT_EQ(error_for(npy(dictionary("<f8", "(1152921504606846976,)"), "0000")),
            "shape (1152921504606846976,) of float64 needs 9223372036854775808 bytes, the file has 4");
  EXPECT_EQ(error_for(npy(dictionary("<f8", "(4611686018427387904,)"), "0000")),
            "shape (4611686018427387904,) of float64 is too large");
  EXPECT_EQ(error_for(npy(dictionary("<f4", "(9223372036854775808,)"), "0000")),
            "'shape' has \"9223372036854775808,\", expected a whole number of at most 9223372036854775807");
  EXPECT_EQ(error_for(npy(dictionary("<f4", "(4294967296, 4294967296)"), "")),
            "too many elements: a size of 4294967296 on top of the axes before it");
  EXPECT_EQ(error_for(npy(dictionary("<f4", "(0, 4294967296, 4294967296)"), "")),
            "too many elements: a size of 4294967296 on top of the axes before it");
  EXPECT_EQ(error_for(npy(dictionary("<f4", "(-1,)"), "0000")), "a size of -1, expected 0 or more");
  EXPECT_EQ(error_for(npy(dictionary("<f4", "(1,1,1,1,1,1,1)"), "0000")), "7 axes, expected at most 6");
  EXPECT_EQ(error_for(npy(dictionary("<f4", "(2,)"), "00000")), "shape (2,) of float32 needs 8 bytes, the file has 5");
  EXPECT_EQ(error_for(npy("{'descr': '<f4', 'shape': (1,)}", "0000")), "the header has no 'fortran_order'");
  EXPECT_EQ(error_for(npy("{'descr': '<f4', 'descr': '<f4'}", "0000")), "the header has 'descr' twice");
  EXPECT_EQ(error_for(npy("{'a': 1}", "0000")),
            "the header has a key 'a', expected 'descr', 'fortran_order' and 'shape'");
  EXPECT_EQ(error_for(npy(dictionary("<f4", "(1,)", "0"), "0000")),
            "'fortran_order' is \"0, 'shape': (1,), }\n\", expected True or False");
}

TEST(Npy, SurvivesDamageAnywhere) {
  TempFolder folder;
  const std::string path = folder / "x.npy";
  write_npy(path, Array::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  qkv_test::survives_damage(file_bytes(path), path, [](const std::string& p) {
    const Array array = read_npy(p);
    EXPECT_EQ(array.bytes().size(), static_cast<size_t>(array.numel()) * dtype_size(array.dtype()));
    EXPECT_EQ(array.bytes().size(), 24u);
  });
}

TEST(Npy, NamesTheFileThatCannotBeOpened) {
  TempFolder folder;
  const std::string missing = folder / "none.npy", pipe = folder / "pipe";
  EXPECT_EQ(error_of([&] { read_npy(missing); }), "cannot open " + missing + ": No such file or directory");
  EXPECT_EQ(error_of([&] { read_npy(folder.path()); }), folder.path() + " is a directory, expected a file");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of([&] { read_npy(pipe); }), pipe + " is not a regular file");
}

TEST(Array, ConvertsToTensorsAndIds) {
  const Tensor t = Array::of<double>({2, 2}, {1.5, -2, 3, 1e-50}).to_tensor(verbatim("x"));
  EXPECT_EQ(t.shape(), Shape({2, 2}));
  EXPECT_EQ(t.data()[0], 1.5f);
  EXPECT_EQ(t.data()[3], 0.f);
  EXPECT_TRUE(std::isnan(Array::of<double>({1}, {NAN}).to_tensor(verbatim("x")).item()));
  EXPECT_EQ(Array::of<bool>({2}, {true, false}).to_tensor(verbatim("x")).data()[0], 1.f);
  EXPECT_EQ(Array::of<int64_t>({2}, {5, -7}).to_ids("x").data()[1], -7);
  EXPECT_EQ(Array::of<uint8_t>({1}, {200}).to_ids("x").data()[0], 200);
  EXPECT_EQ(error_of([] {
              Array::of<int64_t>({2}, {1, 2147483648}).to_ids("l.npy");
            }),
            "l.npy: element 1 is 2147483648, beyond the range of int32");
  EXPECT_EQ(error_of([] { Array::of<float>({1}, {1}).to_ids("l.npy"); }),
            "l.npy: elements are float32, expected int32 or int64");
  EXPECT_EQ(error_of([] { Array::of<double>({1}, {-1e39}).to_tensor(verbatim("l.npy")); }),
            "l.npy: element 0 is -1e+39, beyond the range of float32");
}

TEST(Statistics, CountsNonFiniteValuesSeparately) {
  Statistics s;
  const Array a = Array::of<float>({6}, {1, 2, NAN, 3, INFINITY, -INFINITY}), b = Array::of<float>({1}, {6});
  s.add(a.dtype(), a.bytes());
  s.add(b.dtype(), b.bytes());
  EXPECT_EQ(s.count(), 7);
  EXPECT_EQ(s.nan(), 1);
  EXPECT_EQ(s.infinite(), 2);
  EXPECT_EQ(s.min(), 1);
  EXPECT_EQ(s.max(), 6);
  EXPECT_EQ(s.mean(), 3);
  EXPECT_DOUBLE_EQ(s.deviation(), std::sqrt(14. / 4));
}
