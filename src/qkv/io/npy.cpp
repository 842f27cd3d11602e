// .npy: the header is a Python dictionary in a few fixed forms; everything else is refused by name.
#include "qkv/io/npy.h"

#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/io/atomic_file.h"

namespace qkv {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// The part of Python's literals that NumPy writes: 'text', True, False, (2, 3) and {key: value, ...}.
class HeaderParser {
 public:
  HeaderParser(const std::string& name, std::string_view text) : name_(name), text_(text) {}

  void parse() {
    expect('{');
    while (!take('}')) {
      const std::string key = quoted_text();
      expect(':');
      parse_value(key);
      if (take(',')) continue;
      expect('}');
      break;
    }
    skip_space();
    check(at_ == text_.size(), name_, ": the header goes on after its dictionary: ", shown());
    check(descr_ && fortran_ && shape_, name_, ": the header has no '",
          !descr_     ? "descr"
          : !fortran_ ? "fortran_order"
                      : "shape",
          "'");
  }

  const std::string& descr() const { return *descr_; }
  bool fortran_order() const { return *fortran_; }
  const std::vector<int64_t>& shape() const { return *shape_; }

 private:
  void parse_value(const std::string& key) {
    const bool known = key == "descr" || key == "fortran_order" || key == "shape";
    check(known, name_, ": the header has a key '", key, "', expected 'descr', 'fortran_order' and 'shape'");
    check(!(key == "descr"   ? descr_.has_value()
            : key == "shape" ? shape_.has_value()
                             : fortran_.has_value()),
          name_, ": the header has '", key, "' twice");
    if (key == "descr") {
      skip_space();
      check(at_ == text_.size() || (text_[at_] != '[' && text_[at_] != '('), name_,
            ": structured arrays are not supported: ", shown());
      descr_ = quoted_text();
    } else if (key == "shape") {
      shape_ = tuple();
    } else {
      skip_space();
      const bool yes = text_.substr(at_).starts_with("True");
      check(yes || text_.substr(at_).starts_with("False"), name_, ": 'fortran_order' is ", shown(),
            ", expected True or False");
      at_ += yes ? 4 : 5;
      fortran_ = yes;
    }
  }

  std::vector<int64_t> tuple() {
    std::vector<int64_t> sizes;
    expect('(');
    while (!take(')')) {
      skip_space();
      int64_t size = 0;
      const char* begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), size);
      check(error == std::errc(), name_, ": 'shape' has ", shown(),
            ", expected a whole number of at most 9223372036854775807");
      at_ += static_cast<size_t>(end - begin);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a long of Python 2
      sizes.push_back(size);
      check(sizes.size() <= 64, name_, ": 'shape' has more than 64 axes");
      if (take(',')) continue;
      expect(')');
      break;
    }
    return sizes;
  }

  std::string quoted_text() {
    skip_space();
    check(at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"'), name_, ": the header has ", shown(),
          ", expected a text");
    const size_t end = text_.find(text_[at_], at_ + 1);
    check(end != std::string_view::npos, name_, ": the header has a text without an end: ", shown());
    std::string out(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return out;
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  bool take(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) { check(take(c), name_, ": the header has ", shown(), ", expected ", c); }
  // A little of what stands here, for messages.
  std::string shown() const { return at_ == text_.size() ? "ended" : text("\"", text_.substr(at_, 20), "\""); }

  const std::string& name_;
  std::string_view text_;
  size_t at_ = 0;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<int64_t>> shape_;
};

Dtype dtype_from(const std::string& name, const std::string& descr) {
  static constexpr std::array<std::pair<std::string_view, Dtype>, 6> known = {{{"<f4", Dtype::float32},
                                                                               {"<f8", Dtype::float64},
                                                                               {"<i4", Dtype::int32},
                                                                               {"<i8", Dtype::int64},
                                                                               {"|b1", Dtype::boolean},
                                                                               {"|u1", Dtype::uint8}}};
  for (const auto& [code, type] : known)
    if (descr == code) return type;
  static constexpr std::array<std::pair<char, std::string_view>, 9> kinds = {{{'O', "object arrays"},
                                                                              {'f', "floats of this size"},
                                                                              {'i', "integers of this size"},
                                                                              {'u', "unsigned integers of this size"},
                                                                              {'c', "complex numbers"},
                                                                              {'U', "text"},
                                                                              {'S', "text"},
                                                                              {'M', "dates"},
                                                                              {'m', "time spans"}}};
  std::string_view what = "unknown";
  if (descr.size() >= 2)
    for (const auto& [letter, kind] : kinds)
      if (descr[1] == letter) what = kind;
  if (descr.starts_with('>') && what != "unknown") what = "big-endian";
  fail(name, ": ", what, " '", descr.substr(0, 20),
       "' not supported, expected '<f4', '<f8', '<i4', '<i8', '|b1' or '|u1'");
}

const char* descr_of(Dtype type) {
  switch (type) {
    case Dtype::float32:
      return "<f4";
    case Dtype::float64:
      return "<f8";
    case Dtype::int32:
      return "<i4";
    case Dtype::int64:
      return "<i8";
    case Dtype::boolean:
      return "|b1";
    case Dtype::uint8:
      return "|u1";
  }
  return "";
}

// c[i0, i1, ...] = f[i0, i1, ...] where the first axis of f runs fastest.
void fortran_to_c(const Shape& shape, size_t element, std::span<const std::byte> f, std::span<std::byte> c) {
  const int rank = shape.rank();
  std::array<int64_t, Shape::kMaxRank> stride{}, index{};
  for (int i = 0; i < rank; ++i) stride[static_cast<size_t>(i)] = shape.product(0, i);
  int64_t from = 0;
  for (size_t to = 0; to < c.size(); to += element) {
    std::memcpy(c.data() + to, f.data() + static_cast<size_t>(from) * element, element);
    for (int axis = rank - 1; axis >= 0; --axis) {
      const auto a = static_cast<size_t>(axis);
      from += stride[a];
      if (++index[a] < shape[axis]) break;
      from -= stride[a] * shape[axis];
      index[a] = 0;
    }
  }
}

}  // namespace

NpyHeader read_npy_header(const std::string& name, uint64_t size, const ReadBytes& read) {
  std::array<unsigned char, 12> start{};
  const auto bytes = std::as_writable_bytes(std::span(start));
  check(size >= 10, name, ": ", grouped(size), " bytes are too few for an .npy file");
  read(0, bytes.first(10));
  check(std::memcmp(start.data(), kMagic.data(), kMagic.size()) == 0, name,
        ": not an .npy file, it does not begin with \\x93NUMPY");
  const int major = start[6], minor = start[7];
  check(major >= 1 && major <= 3 && minor == 0, name, ": .npy version ", major, ".", minor,
        ", expected 1.0, 2.0 or 3.0");
  uint64_t length = start[8] | uint64_t{start[9]} << 8, before = 10;
  if (major > 1) {
    check(size >= 12, name, ": ", grouped(size), " bytes are too few for an .npy file");
    read(10, bytes.subspan(10, 2));
    length |= uint64_t{start[10]} << 16 | uint64_t{start[11]} << 24;
    before = 12;
  }
  check(length <= size - before, name, ": header says ", length, " bytes, the file has ", grouped(size));
  check(length <= limits::kNpyHeaderBytes, name, ": header says ", length, " bytes, expected at most ",
        grouped(limits::kNpyHeaderBytes));
  std::string text(length, '\0');
  read(before, std::as_writable_bytes(std::span(text)));
  HeaderParser parser(name, text);
  parser.parse();

  NpyHeader header;
  header.dtype = dtype_from(name, parser.descr());
  header.shape = checked_shape(name, parser.shape());
  header.fortran_order = parser.fortran_order();
  header.data_offset = before + length;
  header.data_bytes = byte_count(name, header.dtype, header.shape);
  check(header.data_bytes == size - header.data_offset, name, ": shape ", header.shape, " of ",
        dtype_name(header.dtype), " needs ", header.data_bytes, " bytes, the file has ",
        grouped(size - header.data_offset));
  return header;
}

Array read_npy_array(const std::string& name, uint64_t size, const ReadBytes& read) {
  const NpyHeader header = read_npy_header(name, size, read);
  Array array(header.dtype, header.shape);
  if (!header.fortran_order || header.shape.rank() < 2) {
    read(header.data_offset, array.mutable_bytes());
    return array;
  }
  std::vector<std::byte> raw(header.data_bytes);
  read(header.data_offset, raw);
  fortran_to_c(header.shape, dtype_size(header.dtype), raw, array.mutable_bytes());
  return array;
}

std::string npy_header_text(const Array& array) {
  const Shape& shape = array.shape();
  std::string dictionary =
      text("{'descr': '", descr_of(array.dtype()), "', 'fortran_order': False, 'shape': ", shape, ", }");
  // NumPy leaves room for the first size to grow to 21 digits in place; so do we, byte for byte.
  if (shape.rank() > 0) dictionary.append(21 - std::to_string(shape[0]).size(), ' ');
  const size_t unpadded = kMagic.size() + 4 + dictionary.size() + 1;
  dictionary.append((64 - unpadded % 64) % 64, ' ');
  dictionary += '\n';
  std::string out(kMagic);
  out += {'\1', '\0', static_cast<char>(dictionary.size() & 0xff), static_cast<char>(dictionary.size() >> 8)};
  return out + dictionary;
}

Array read_npy(const std::string& path) {
  const InputFile file(path);
  return read_npy_array(path, file.size(), [&](uint64_t offset, std::span<std::byte> out) { file.read(offset, out); });
}

void write_npy(const std::string& path, const Array& array) {
  AtomicFile file(path);
  file.write(npy_header_text(array));
  file.write(array.bytes());
  file.commit();
}

void write_npy(const std::string& path, const Tensor& values) { write_npy(path, Array(values)); }
void write_npy(const std::string& path, const Ids& values) { write_npy(path, Array(values)); }

}  // namespace qkv
