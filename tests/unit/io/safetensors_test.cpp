// safetensors: round trips, every rule of the format, damage everywhere.
#include "qkv/io/safetensors.h"

#include <gtest/gtest.h>

#include "damage.h"
#include "support/files.h"

using namespace qkv;
using qkv_test::error_of;
using qkv_test::file_bytes;
using qkv_test::put_bytes;
using qkv_test::TempFolder;

namespace {

std::string file_with(const std::string& header, const std::string& data) {
  std::string out;
  for (size_t i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return out + header + data;
}

std::string tensor_json(const std::string& name, const std::string& type, const std::string& shape,
                        const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

std::string error_for(const std::string& bytes) {
  TempFolder folder;
  const std::string path = folder / "m.safetensors";
  put_bytes(path, bytes);
  const std::string message = error_of([&] { SafetensorsFile file(path); });
  return message.starts_with(path + ": ") ? message.substr(path.size() + 2) : "without its file: " + message;
}

std::string error_for_header(const std::string& header, size_t data_bytes = 8) {
  return error_for(file_with(header, std::string(data_bytes, '\0')));
}

}  // namespace

TEST(Safetensors, EveryTypeAndTheMetadataComeBack) {
  TempFolder folder;
  const std::string path = folder / "m.safetensors";
  const std::map<std::string, Array> arrays = {{"a.bool", Array::of<bool>({3}, {true, false, true})},
                                               {"b", Array::of<float>({2, 2}, {1, 2, 3, 4})},
                                               {"c", Array::of<double>({1}, {1e300})},
                                               {"d", Array::of<int32_t>({}, {-5})},
                                               {"e", Array::of<int64_t>({2}, {1, 2})},
                                               {"f\"\n\xc3\xa9", Array::of<uint8_t>({2}, {0, 255})},
                                               {"none", Array(Dtype::float32, {0, 7})}};
  const std::map<std::string, std::string> metadata = {{"step", "12"}, {"text", "a\nb \"c\" \xe4\xb8\xad"}};
  write_safetensors(path, arrays, metadata);
  const SafetensorsFile file(path);
  EXPECT_EQ(file.metadata(), metadata);
  std::map<std::string, Array> back;
  for (const std::string& name : file.names()) {
    back.emplace(name, file.array(name));
    EXPECT_EQ((file.info(name).offset) % dtype_size(*file.info(name).dtype), 0u) << name << " is not aligned";
  }
  EXPECT_EQ(back, arrays);
  EXPECT_EQ(file.tensor("b").data()[3], 4.f);
  EXPECT_EQ(file.tensor("e").data()[1], 2.f);
  EXPECT_EQ(error_of([&] { (void)file.tensor("q"); }), path + ": has no tensor \"q\"");
  EXPECT_EQ(error_of([&] { (void)file.tensor("c"); }),
            path + ": tensor \"c\": element 0 is 1e+300, beyond the range of float32");
  const std::string first = file_bytes(path);
  write_safetensors(path, arrays, metadata);
  EXPECT_EQ(file_bytes(path), first);
  EXPECT_EQ(folder.count(), 1);
}

TEST(Safetensors, WritesAPaddedHeaderInTheOrderOfNames) {
  TempFolder folder;
  const std::string path = folder / "m.safetensors";
  write_safetensors(path, std::map<std::string, Tensor>{{"w", Tensor({1}, {2})}, {"b", Tensor({1}, {1})}});
  const std::string header =
      "{\"b\":{\"data_offsets\":[0,4],\"dtype\":\"F32\",\"shape\":[1]},"
      "\"w\":{\"data_offsets\":[4,8],\"dtype\":\"F32\",\"shape\":[1]}}     ";
  ASSERT_EQ(header.size() % 8, 0u);
  EXPECT_EQ(file_bytes(path), file_with(header, std::string("\0\0\x80\x3f\0\0\0\x40", 8)));
}

TEST(Safetensors, RefusesToWriteWhatItCouldNotRead) {
  TempFolder folder;
  const std::string path = folder / "m.safetensors";
  const auto error_named = [&](const std::string& name) {
    return error_of([&] { write_safetensors(path, std::map<std::string, Tensor>{{name, Tensor({1}, {2})}}); });
  };
  EXPECT_EQ(error_named("__metadata__"), path + ": a tensor cannot be named __metadata__");
  EXPECT_EQ(error_named("\xff"), path + ": a name or a metadata value is not valid UTF-8");
  EXPECT_EQ(folder.count(), 0);
}

TEST(Safetensors, ListsTypesThatItCannotRead) {
  TempFolder folder;
  const std::string path = folder / "m.safetensors";
  put_bytes(path, file_with("{" + tensor_json("h", "BF16", "[2,2]", "[0,8]") + "}", std::string(8, '\0')));
  const SafetensorsFile file(path);
  EXPECT_EQ(file.info("h").type, "BF16");
  EXPECT_EQ(file.info("h").shape, Shape({2, 2}));
  EXPECT_EQ(error_of([&] { (void)file.array("h"); }),
            path + ": tensor \"h\": BF16 is not supported, expected F32, F64, I32, I64, BOOL or U8");
}

TEST(Safetensors, RefusesAHeaderLengthThatTheFileDoesNotHave) {
  EXPECT_EQ(error_for("1234567"), "7 bytes are too few for a safetensors file");
  std::string huge(4096, ' ');
  for (size_t i = 0; i < 8; ++i) huge[i] = i < 7 ? '\xff' : '\x7f';
  EXPECT_EQ(error_for(huge), "header says 9223372036854775807 bytes, the file has 4,096");
  EXPECT_EQ(error_for(std::string(8, '\0')), "the header does not begin with {");
}

TEST(Safetensors, RefusesAHeaderAboveTheLimitOfTheFormat) {
  TempFolder folder;
  const std::string path = folder / "m.safetensors";
  put_bytes(path, file_with("", ""));
  std::string start(8, '\0');
  for (size_t i = 0; i < 8; ++i) start[i] = static_cast<char>(uint64_t{100'000'001} >> (8 * i) & 0xff);
  put_bytes(path, start);
  std::filesystem::resize_file(path, 100'000'009);  // sparse
  EXPECT_EQ(error_of([&] { SafetensorsFile file(path); }),
            path + ": header says 100000001 bytes, expected at most 100,000,000");
}

TEST(Safetensors, RefusesMoreTensorsThanAnyModelHas) {
  std::string many = "{", texts = "{\"__metadata__\":{";
  for (int i = 0; i <= 100'000; ++i) {
    many += (i ? "," : "") + tensor_json(std::to_string(i), "U8", "[0]", "[0,0]");
    texts += text(i ? "," : "", "\"", i, "\":\"\"");
  }
  EXPECT_EQ(error_for_header(many + "}", 0), "has more than 100000 tensors");
  EXPECT_EQ(error_for_header(texts + "}}", 0), "the metadata has more than 100000 entries");
}

TEST(Safetensors, ChecksTheJson) {
  EXPECT_EQ(error_for_header("[]"), "the header does not begin with {");
  EXPECT_EQ(error_for_header(" {}"), "the header does not begin with {");
  EXPECT_EQ(error_for_header("{\"a\":}"), "the header is not JSON: error at byte 6");
  EXPECT_EQ(error_for_header("{} {}"), "the header is not JSON: error at byte 4");
  EXPECT_EQ(error_for_header("{\"\xff\":1}"), "the header is not JSON: error at byte 3");
  EXPECT_EQ(error_for_header("{\"a\":" + std::string(100000, '[')), "tensor \"a\" is a list, expected an object");
  std::string deep = "{";
  for (int i = 0; i < 100000; ++i) deep += "\"a\":{";
  EXPECT_EQ(error_for_header(deep), "tensor \"a\" has a field \"a\", expected dtype, shape and data_offsets");
  const std::string a = tensor_json("a", "F32", "[1]", "[0,4]");
  EXPECT_EQ(error_for_header("{" + a + "," + a + "}"), "\"a\" is in the header twice");
  EXPECT_EQ(error_for_header("{\"__metadata__\":{},\"__metadata__\":{}}"), "\"__metadata__\" is in the header twice");
  EXPECT_EQ(error_for_header("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}"), "the metadata has \"k\" twice");
  EXPECT_EQ(error_for_header("{\"__metadata__\":{\"k\":1}}"), "the metadata \"k\" is a number, expected a string");
  EXPECT_EQ(error_for_header("{\"__metadata__\":[]}"), "__metadata__ is a list, expected an object of strings");
  EXPECT_EQ(error_for_header("{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\"}}"), "tensor \"a\" has \"dtype\" twice");
  EXPECT_EQ(error_for_header("{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}"), "tensor \"a\" has no \"data_offsets\"");
  EXPECT_EQ(error_for_header("{\"a\":{}}"), "tensor \"a\" has no \"dtype\"");
  EXPECT_EQ(error_for_header("{\"a\":{\"dtype\":3}}"), "tensor \"a\" has a number as dtype, expected a string");
  EXPECT_EQ(error_for_header("{" + tensor_json("a", "F32", "[-1]", "[0,8]") + "}"),
            "tensor \"a\" has -1 in its shape, expected whole numbers of 0 or more");
  EXPECT_EQ(error_for_header("{" + tensor_json("a", "F32", "[2.5]", "[0,8]") + "}"),
            "tensor \"a\" has 2.5 in its shape, expected whole numbers of 0 or more");
  EXPECT_EQ(error_for_header("{" + tensor_json("a", "F32", "[[2]]", "[0,8]") + "}"),
            "tensor \"a\" has a list in its shape, expected whole numbers of 0 or more");
  EXPECT_EQ(error_for_header("{" + tensor_json("a", "F32", "[2]", "[8]") + "}"),
            "tensor \"a\" has 1 data_offsets, expected begin and end");
  EXPECT_EQ(error_for_header("{" + tensor_json("a", "F32", "[2]", "[0,4,8]") + "}"),
            "tensor \"a\" has more than two data_offsets, expected begin and end");
}

TEST(Safetensors, ChecksTheLayout) {
  const auto layout = [](const std::string& tensors, size_t data_bytes = 8) {
    return error_for_header("{" + tensors + "}", data_bytes);
  };
  EXPECT_EQ(layout(tensor_json("a", "F31", "[2]", "[0,8]")), "tensor \"a\": unknown dtype \"F31\"");
  EXPECT_EQ(layout(tensor_json("a", "F32", "[2]", "[8,0]")), "tensor \"a\": data_offsets [8, 0] run backwards");
  EXPECT_EQ(layout(tensor_json("a", "F32", "[4]", "[0,16]")),
            "tensor \"a\": data_offsets end at 16, the data has 8 bytes");
  EXPECT_EQ(layout(tensor_json("a", "F32", "[2]", "[0,18446744073709551615]")),
            "tensor \"a\": data_offsets end at 18446744073709551615, the data has 8 bytes");
  EXPECT_EQ(layout(tensor_json("a", "F32", "[3]", "[0,8]")),
            "tensor \"a\": shape (3,) of F32 does not fit the 8 bytes of its data_offsets");
  EXPECT_EQ(
      layout(tensor_json("a", "F32", "[4611686018427387906]", "[0,8]")),
      "tensor \"a\": shape (4611686018427387906,) of F32 does not fit the 8 bytes of its data_offsets");  // 2^62 + 2
                                                                                                          // wraps to 8
  EXPECT_EQ(layout(tensor_json("a", "F32", "[4294967296,4294967297]", "[0,8]")),
            "tensor \"a\": too many elements: a size of 4294967297 on top of the axes before it");
  EXPECT_EQ(layout(tensor_json("a", "F32", "[1,1,1,1,1,1,2]", "[0,8]")), "tensor \"a\" has more than 6 axes");
  EXPECT_EQ(layout(tensor_json("a", "F32", "[1]", "[0,4]")), "tensors end at byte 4 of the data, the data has 8");
  EXPECT_EQ(layout("", 8), "tensors end at byte 0 of the data, the data has 8");
  EXPECT_EQ(layout(tensor_json("a", "F32", "[1]", "[4,8]")), "4 bytes before tensor \"a\" belong to no tensor");
  EXPECT_EQ(layout(tensor_json("a", "F32", "[2]", "[0,8]") + "," + tensor_json("b", "F32", "[1]", "[4,8]")),
            "tensors \"a\" and \"b\" overlap");
  EXPECT_EQ(layout(tensor_json("a", "F32", "[2]", "[0,8]") + "," + tensor_json("b", "F32", "[2]", "[0,8]")),
            "tensors \"a\" and \"b\" overlap");
  EXPECT_EQ(layout(tensor_json("b", "F32", "[2]", "[0,8]") + "," + tensor_json("a", "F32", "[0]", "[8,8]") + "," +
                   tensor_json("c", "F32", "[0]", "[0,0]")),
            "without its file: no error");
}

TEST(Safetensors, SurvivesDamageAnywhere) {
  TempFolder folder;
  const std::string path = folder / "m.safetensors";
  write_safetensors(
      path, std::map<std::string, Array>{{"a", Array::of<float>({2, 1}, {1, 2})}, {"b", Array::of<int64_t>({1}, {3})}},
      {{"step", "3"}});
  qkv_test::survives_damage(file_bytes(path), path, [](const std::string& p) {
    const SafetensorsFile file(p);
    uint64_t total = 0;
    for (const std::string& name : file.names()) {
      total += file.info(name).bytes;
      const Array array = file.array(name);
      EXPECT_EQ(array.bytes().size(), file.info(name).bytes);
      (void)array.to_tensor(p);
    }
    EXPECT_EQ(total, 16u);
  });
}
