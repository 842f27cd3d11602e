// PNG over zlib: chunks, filters, Adam7's seven passes, and pixels of 1 to 16 bits.
#include "qkv/io/png.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/io/file.h"

namespace qkv {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::string_view kSignature = "\x89PNG\r\n\x1a\n";
constexpr uint64_t kMostDeflated = 1032;  // no byte of a deflate stream becomes more bytes than these

uint32_t word_at(Bytes bytes, size_t at) {
  uint32_t word = 0;
  for (size_t i = 0; i < 4; ++i) word = word << 8 | std::to_integer<uint32_t>(bytes[at + i]);
  return word;
}

[[noreturn]] void refuse_damaged(const std::string& name, const Text& reason) {
  refuse("{name}: the PNG file is damaged: {reason}", "name"_a = name, "reason"_a = reason);
}

struct Header {
  int64_t width = 0, height = 0;
  int depth = 8, kind = 0;
  bool interlaced = false;
  int values() const { return kind == 2 ? 3 : kind == 4 ? 2 : kind == 6 ? 4 : 1; }  // per pixel
  int64_t row_bytes(int64_t pixels) const { return (pixels * values() * depth + 7) / 8; }
  bool has_alpha() const { return kind == 4 || kind == 6; }
  bool has_colour() const { return kind == 2 || kind == 3 || kind == 6; }
};

struct Chunks {
  Header header;
  Bytes palette, transparency;
  std::vector<Bytes> data;
  uint64_t data_bytes = 0;
};

Header header_of(Bytes body, const std::string& name) {
  if (body.size() != 13) refuse_damaged(name, tr("its first chunk is not a header"));
  const auto byte = [&](size_t i) { return std::to_integer<int>(body[i]); };
  const Header h{word_at(body, 0), word_at(body, 4), byte(8), byte(9), byte(12) == 1};
  require(h.width >= 1 && h.height >= 1 && h.width <= limits::kPictureSide && h.height <= limits::kPictureSide,
          "{name}: says that it has {width} x {height} pixels, expected 1 to {most} per side", "name"_a = name,
          "width"_a = h.width, "height"_a = h.height, "most"_a = limits::kPictureSide);
  require(h.width * h.height <= limits::kPicturePixels,
          "{name}: says that it has {width} x {height} pixels, expected at most {most} in all", "name"_a = name,
          "width"_a = h.width, "height"_a = h.height,
          "most"_a = grouped(static_cast<uint64_t>(limits::kPicturePixels)));
  const bool small = h.depth == 1 || h.depth == 2 || h.depth == 4, large = h.depth == 16;
  const bool known = (h.kind == 0 && (small || large)) || (h.kind == 3 && small) ||
                     ((h.kind == 2 || h.kind == 4 || h.kind == 6) && large) ||
                     (h.depth == 8 && (h.kind == 0 || h.kind == 2 || h.kind == 3 || h.kind == 4 || h.kind == 6));
  if (!known || byte(10) != 0 || byte(11) != 0 || byte(12) > 1)
    refuse_damaged(name, tr("its header names a kind of pixels that does not exist"));
  return h;
}

Chunks chunks_of(Bytes file, const std::string& name) {
  require(file.size() >= kSignature.size() && std::memcmp(file.data(), kSignature.data(), kSignature.size()) == 0,
          "{name}: is not a PNG file", "name"_a = name);
  Chunks out;
  bool first = true;
  for (size_t at = kSignature.size();;) {
    require(file.size() - at >= 12, "{name}: the PNG file is cut off", "name"_a = name);
    const size_t length = word_at(file, at);
    require(length <= file.size() - at - 12, "{name}: the PNG file is cut off", "name"_a = name);
    const Bytes typed = file.subspan(at + 4, length + 4), body = typed.subspan(4);
    const std::string_view type(reinterpret_cast<const char*>(typed.data()), 4);
    if (crc32(0, reinterpret_cast<const Bytef*>(typed.data()), static_cast<uInt>(typed.size())) !=
        word_at(file, at + 8 + length))
      refuse_damaged(name, tr("the checksum of a chunk is wrong"));
    at += length + 12;
    if (first != (type == "IHDR")) refuse_damaged(name, tr("its first chunk is not a header"));
    if (std::exchange(first, false)) {
      out.header = header_of(body, name);
    } else if (type == "PLTE") {
      if (length % 3 != 0 || length > 768) refuse_damaged(name, tr("its palette is not a list of colours"));
      out.palette = body;
    } else if (type == "tRNS") {
      out.transparency = body;
    } else if (type == "IDAT") {
      out.data.push_back(body);
      out.data_bytes += length;
    } else if (type == "IEND") {
      break;
    } else if (type[0] >= 'A' && type[0] <= 'Z') {
      refuse_damaged(name, tr("it needs a kind of chunk that does not exist"));
    }
  }
  if (out.header.kind == 3 && out.palette.empty()) refuse_damaged(name, tr("its palette is missing"));
  if (out.data.empty()) refuse_damaged(name, tr("it has no pixels"));
  return out;
}

// Pixels x0, x0 + dx, ... of rows y0, y0 + dy, ...
struct Sweep {
  int64_t x0, y0, dx, dy;
  int64_t columns(const Header& h) const { return (h.width - x0 + dx - 1) / dx; }
  int64_t rows(const Header& h) const { return (h.height - y0 + dy - 1) / dy; }
};

std::span<const Sweep> sweeps_of(const Header& h) {
  static constexpr Sweep whole[] = {{0, 0, 1, 1}};
  static constexpr Sweep adam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                    {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  return h.interlaced ? std::span<const Sweep>(adam7) : std::span<const Sweep>(whole);
}

// The rows of all sweeps, each after the byte of its filter.
std::vector<uint8_t> inflated(const Chunks& chunks, const std::string& name) {
  const Header& h = chunks.header;
  uint64_t size = 0;
  for (const Sweep& s : sweeps_of(h))
    if (s.columns(h) > 0 && s.rows(h) > 0) size += static_cast<uint64_t>((h.row_bytes(s.columns(h)) + 1) * s.rows(h));
  require(size / kMostDeflated <= chunks.data_bytes,
          "{name}: says that it has {width} x {height} pixels, but {bytes} bytes are too few for them", "name"_a = name,
          "width"_a = h.width, "height"_a = h.height, "bytes"_a = grouped(chunks.data_bytes));
  std::vector<uint8_t> raw(size);
  z_stream stream{};
  require(inflateInit(&stream) == Z_OK, "{file}: zlib is out of memory", "file"_a = name);
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> closer(&stream, &inflateEnd);
  stream.next_out = raw.data();
  uint64_t left = size;
  for (const Bytes part : chunks.data) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(part.data()));
    stream.avail_in = static_cast<uInt>(part.size());
    while (stream.avail_in > 0 && left > 0) {
      const auto room = static_cast<uInt>(std::min<uint64_t>(left, uint64_t{1} << 30));
      stream.avail_out = room;
      const int code = inflate(&stream, Z_NO_FLUSH);
      left -= room - stream.avail_out;
      if (code == Z_STREAM_END) break;
      if (code != Z_OK) refuse_damaged(name, tr("its pixels cannot be unpacked"));
    }
  }
  if (left > 0) refuse_damaged(name, tr("pixels are missing"));
  return raw;
}

uint8_t paeth(int left, int above, int corner) {
  const int guess = left + above - corner, a = std::abs(guess - left), b = std::abs(guess - above),
            c = std::abs(guess - corner);
  return static_cast<uint8_t>(a <= b && a <= c ? left : b <= c ? above : corner);
}

// Undoes the filter of a row in place. `step`: bytes per pixel, at least 1; above: the row before, absent for the
// first.
void unfilter(int filter, uint8_t* row, const uint8_t* above, int64_t bytes, int64_t step, const std::string& name) {
  if (filter > 4) refuse_damaged(name, tr("a row has a filter that does not exist"));
  if (filter == 0) return;
  for (int64_t i = 0; i < bytes; ++i) {
    const int left = i >= step ? row[i - step] : 0, up = above ? above[i] : 0,
              corner = above && i >= step ? above[i - step] : 0;
    const int guess = filter == 1 ? left : filter == 2 ? up : filter == 3 ? (left + up) / 2 : paeth(left, up, corner);
    row[i] = static_cast<uint8_t>(row[i] + guess);
  }
}

// Turns raw values of a row into bytes of the picture.
class PixelReader {
 public:
  PixelReader(const Chunks& chunks, const std::string& name) : chunks_(chunks), h_(chunks.header), name_(name) {
    if (h_.kind == 3 || h_.has_alpha() || chunks.transparency.empty()) return;
    if (chunks.transparency.size() != (h_.kind == 0 ? 2u : 6u)) refuse_damaged(name, tr("its transparency is wrong"));
    for (size_t i = 0; i < chunks.transparency.size(); i += 2)
      key_.push_back(std::to_integer<int>(chunks.transparency[i]) << 8 |
                     std::to_integer<int>(chunks.transparency[i + 1]));
  }

  void read(const uint8_t* row, int64_t pixel, uint8_t* out) const {
    std::array<int, 4> value{};
    for (int v = 0; v < h_.values(); ++v) value[static_cast<size_t>(v)] = raw(row, pixel * h_.values() + v);
    const int most = (1 << h_.depth) - 1;
    if (h_.kind == 3) return from_palette(static_cast<size_t>(value[0]), out);
    if (h_.has_alpha() && value[static_cast<size_t>(h_.values() - 1)] != most) refuse_transparent();
    const size_t colours = h_.has_colour() ? 3 : 1;
    if (!key_.empty() && std::equal(key_.begin(), key_.end(), value.begin())) refuse_transparent();
    for (size_t c = 0; c < colours; ++c)
      out[c] = static_cast<uint8_t>(h_.depth == 16 ? (value[c] + 128) / 257 : value[c] * 255 / most);
  }

 private:
  int raw(const uint8_t* row, int64_t at) const {
    if (h_.depth == 8) return row[at];
    if (h_.depth == 16) return row[2 * at] << 8 | row[2 * at + 1];
    const int64_t bit = at * h_.depth;
    return row[bit / 8] >> (8 - h_.depth - bit % 8) & ((1 << h_.depth) - 1);
  }
  void from_palette(size_t index, uint8_t* out) const {
    if (3 * index + 3 > chunks_.palette.size()) refuse_damaged(name_, tr("a pixel is outside its palette"));
    if (index < chunks_.transparency.size() && chunks_.transparency[index] != std::byte{255}) refuse_transparent();
    for (size_t c = 0; c < 3; ++c) out[c] = std::to_integer<uint8_t>(chunks_.palette[3 * index + c]);
  }
  [[noreturn]] void refuse_transparent() const {
    throw Error(tr("{name}: has transparent pixels, expected an opaque picture", "name"_a = name_),
                tr("put it on a background, for example with: convert {name} -background black -alpha remove OUT.png",
                   "name"_a = name_));
  }

  const Chunks& chunks_;
  const Header& h_;
  const std::string& name_;
  std::vector<int> key_;  // the colour that means transparent
};

void append_word(std::string& out, uint32_t word) {
  for (int shift : {24, 16, 8, 0}) out += static_cast<char>(word >> shift & 255);
}

void append_chunk(std::string& out, const char* type, const std::string& body) {
  append_word(out, static_cast<uint32_t>(body.size()));
  const std::string typed = type + body;
  out += typed;
  append_word(out, static_cast<uint32_t>(
                       crc32(0, reinterpret_cast<const Bytef*>(typed.data()), static_cast<uInt>(typed.size()))));
}

}  // namespace

Picture decode_png(Bytes file, const std::string& name) {
  const Chunks chunks = chunks_of(file, name);
  const Header& h = chunks.header;
  std::vector<uint8_t> raw = inflated(chunks, name);
  Picture out{h.height, h.width, h.has_colour() ? 3 : 1, {}};
  out.pixels.resize(static_cast<size_t>(h.height * h.width * out.channels));
  const PixelReader reader(chunks, name);
  const int64_t step = std::max<int64_t>(1, h.values() * h.depth / 8);
  uint8_t* at = raw.data();
  for (const Sweep& s : sweeps_of(h)) {
    const int64_t columns = s.columns(h), rows = s.rows(h), bytes = h.row_bytes(columns);
    if (columns <= 0 || rows <= 0) continue;
    for (int64_t r = 0; r < rows; ++r, at += bytes + 1) {
      unfilter(at[0], at + 1, r > 0 ? at - bytes : nullptr, bytes, step, name);
      for (int64_t c = 0; c < columns; ++c)
        reader.read(at + 1, c, out.pixels.data() + ((s.y0 + r * s.dy) * h.width + s.x0 + c * s.dx) * out.channels);
    }
  }
  return out;
}

Picture read_png(const std::string& path) {
  const InputFile file(path);
  require(file.size() > 0, "{path}: is empty, expected a picture", "path"_a = path);
  require(file.size() <= limits::kPictureBytes, "{path}: has {size} bytes, expected at most {limit}", "path"_a = path,
          "size"_a = grouped(file.size()), "limit"_a = grouped(limits::kPictureBytes));
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes);
  return decode_png(bytes, path);
}

// Every row is stored unfiltered.
std::string encode_png(std::span<const uint8_t> pixels, int64_t width, int64_t height, PngPixels kind,
                       const std::string& palette) {
  check(width > 0 && height > 0 && width < (1 << 24) && height < (1 << 24), "[png] cannot write a picture of ", width,
        " x ", height);
  const int64_t bytes = width * (kind == PngPixels::rgb ? 3 : 1);
  std::string raw;
  raw.reserve(static_cast<size_t>((bytes + 1) * height));
  for (int64_t row = 0; row < height; ++row) {
    raw += '\0';
    raw.append(reinterpret_cast<const char*>(pixels.data()) + row * bytes, static_cast<size_t>(bytes));
  }
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  std::string packed(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
                             static_cast<uLong>(raw.size()), 6);
  check(code == Z_OK, "[png] zlib failed with code ", code);
  packed.resize(size);
  std::string header;
  append_word(header, static_cast<uint32_t>(width));
  append_word(header, static_cast<uint32_t>(height));
  header += {8, static_cast<char>(kind), 0, 0, 0};
  std::string out(kSignature);
  append_chunk(out, "IHDR", header);
  if (!palette.empty()) append_chunk(out, "PLTE", palette);
  append_chunk(out, "IDAT", packed);
  append_chunk(out, "IEND", "");
  return out;
}

std::string encode_png(const Picture& p) {
  check(p.channels == 1 || p.channels == 3, "[png] expected 1 or 3 channels, got ", p.channels);
  return encode_png(p.pixels, p.width, p.height, p.channels == 3 ? PngPixels::rgb : PngPixels::grey);
}

}  // namespace qkv
