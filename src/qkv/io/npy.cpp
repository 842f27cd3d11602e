// .npy: the header is a Python dictionary in a few fixed forms; an error names anything else.
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
    require(at_ == text_.size(), "{name}: the header continues after its dictionary: {shown}", "name"_a = name_,
            "shown"_a = shown());
    require(descr_ && fortran_ && shape_, "{name}: the header has no '{key}'", "name"_a = name_,
            "key"_a = !descr_     ? "descr"
                      : !fortran_ ? "fortran_order"
                                  : "shape");
  }

  const std::string& descr() const { return *descr_; }
  bool fortran_order() const { return *fortran_; }
  const std::vector<int64_t>& shape() const { return *shape_; }

 private:
  void parse_value(const std::string& key) {
    const bool known = key == "descr" || key == "fortran_order" || key == "shape";
    require(known, "{name}: the header has a key '{key}', expected 'descr', 'fortran_order' and 'shape'",
            "name"_a = name_, "key"_a = key);
    require(!(key == "descr"   ? descr_.has_value()
              : key == "shape" ? shape_.has_value()
                               : fortran_.has_value()),
            "{name}: the header has '{key}' twice", "name"_a = name_, "key"_a = key);
    if (key == "descr") {
      skip_space();
      require(at_ == text_.size() || (text_[at_] != '[' && text_[at_] != '('),
              "{name}: structured arrays are not supported: {shown}", "name"_a = name_, "shown"_a = shown());
      descr_ = quoted_text();
    } else if (key == "shape") {
      shape_ = tuple();
    } else {
      skip_space();
      const bool yes = text_.substr(at_).starts_with("True");
      if (!yes && !text_.substr(at_).starts_with("False")) {
        refuse_end(tr("True or False"));
        refuse("{name}: 'fortran_order' is {shown}, expected True or False", "name"_a = name_, "shown"_a = shown());
      }
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
      if (error != std::errc()) {
        refuse_end(tr("a whole number"));
        refuse("{name}: 'shape' has {shown}, expected a whole number of at most 9223372036854775807", "name"_a = name_,
               "shown"_a = shown());
      }
      at_ += static_cast<size_t>(end - begin);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // a Python 2 long
      sizes.push_back(size);
      require(sizes.size() <= 64, "{name}: 'shape' has more than 64 axes", "name"_a = name_);
      if (take(',')) continue;
      expect(')');
      break;
    }
    return sizes;
  }

  std::string quoted_text() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) refuse_next(tr("a string"));
    const size_t end = text_.find(text_[at_], at_ + 1);
    require(end != std::string_view::npos, "{name}: the header has an unterminated string: {shown}", "name"_a = name_,
            "shown"_a = shown());
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
  void expect(char c) {
    if (!take(c)) refuse_next(std::string(1, c));
  }
  void refuse_end(const Text& expected) const {
    require(at_ < text_.size(), "{name}: the header has ended, expected {expected}", "name"_a = name_,
            "expected"_a = expected);
  }
  [[noreturn]] void refuse_next(const Text& expected) const {
    refuse_end(expected);
    refuse("{name}: the header has {shown}, expected {expected}", "name"_a = name_, "shown"_a = shown(),
           "expected"_a = expected);
  }
  // The next few characters, for messages.
  std::string shown() const { return text("\"", text_.substr(at_, 20), "\""); }

  const std::string& name_;
  std::string_view text_;
  size_t at_ = 0;
  std::optional<std::string> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<int64_t>> shape_;
};

// What an element is that we cannot read.
Text unsupported_kind(const std::string& descr) {
  const char letter = descr.size() < 2 ? '?' : descr[1];
  if (descr.starts_with('>') && std::string_view("OfiucUSMm").find(letter) != std::string_view::npos)
    return tr("big-endian");
  switch (letter) {
    case 'O':
      return tr("object arrays");
    case 'f':
      return tr("floats of this size");
    case 'i':
      return tr("integers of this size");
    case 'u':
      return tr("unsigned integers of this size");
    case 'c':
      return tr("complex numbers");
    case 'U':
    case 'S':
      return tr("text");
    case 'M':
      return tr("dates");
    case 'm':
      return tr("time spans");
    default:
      return tr("unknown");
  }
}

Dtype dtype_from(const std::string& name, const std::string& descr) {
  static constexpr std::array<std::pair<std::string_view, Dtype>, 6> known = {{{"<f4", Dtype::float32},
                                                                               {"<f8", Dtype::float64},
                                                                               {"<i4", Dtype::int32},
                                                                               {"<i8", Dtype::int64},
                                                                               {"|b1", Dtype::boolean},
                                                                               {"|u1", Dtype::uint8}}};
  for (const auto& [code, type] : known)
    if (descr == code) return type;
  refuse("{name}: {kind} '{descr}' not supported, expected '<f4', '<f8', '<i4', '<i8', '|b1' or '|u1'", "name"_a = name,
         "kind"_a = unsupported_kind(descr), "descr"_a = descr.substr(0, 20));
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
  require(size >= 10, "{name}: {size} bytes are too few for an .npy file", "name"_a = name, "size"_a = grouped(size));
  read(0, bytes.first(10));
  require(std::memcmp(start.data(), kMagic.data(), kMagic.size()) == 0,
          "{name}: not an .npy file, it does not begin with \\x93NUMPY", "name"_a = name);
  const int major = start[6], minor = start[7];
  require(major >= 1 && major <= 3 && minor == 0, "{name}: .npy version {major}.{minor}, expected 1.0, 2.0 or 3.0",
          "name"_a = name, "major"_a = major, "minor"_a = minor);
  uint64_t length = start[8] | uint64_t{start[9]} << 8, before = 10;
  if (major > 1) {
    require(size >= 12, "{name}: {size} bytes are too few for an .npy file", "name"_a = name, "size"_a = grouped(size));
    read(10, bytes.subspan(10, 2));
    length |= uint64_t{start[10]} << 16 | uint64_t{start[11]} << 24;
    before = 12;
  }
  require(length <= size - before, "{name}: header says {length} bytes, the file has {size}", "name"_a = name,
          "length"_a = length, "size"_a = grouped(size));
  require(length <= limits::kNpyHeaderBytes, "{name}: header says {length} bytes, expected at most {most}",
          "name"_a = name, "length"_a = length, "most"_a = grouped(limits::kNpyHeaderBytes));
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
  require(header.data_bytes == size - header.data_offset,
          "{name}: shape {shape} of {dtype} needs {needed} bytes, the file has {size}", "name"_a = name,
          "shape"_a = header.shape, "dtype"_a = dtype_name(header.dtype), "needed"_a = header.data_bytes,
          "size"_a = grouped(size - header.data_offset));
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
  // NumPy leaves room for the first size to grow to 21 digits in place; we write the same bytes.
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
