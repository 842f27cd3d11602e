// A small zip reader over zlib. It trusts the central directory, not the local headers.
#include "qkv/io/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <span>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"

namespace qkv {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22;
constexpr uint64_t kMax32 = 0xffffffff;
constexpr uint64_t kLargestRatio = 1032;  // deflate cannot compress further

uint16_t get16(const unsigned char* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }
uint32_t get32(const unsigned char* p) { return get16(p) | uint32_t{get16(p + 2)} << 16; }

std::span<std::byte> raw(std::vector<unsigned char>& bytes) { return std::as_writable_bytes(std::span(bytes)); }

// Feeds the stream in parts, because zlib counts in 32 bits, and calls `step` until it ends or fails.
template <class Step>
int pump(z_stream& stream, std::span<const std::byte> in, std::span<std::byte> out, Step&& step) {
  constexpr size_t kPart = size_t{1} << 30;
  size_t in_left = in.size(), out_left = out.size();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  int code = Z_OK;
  while (code == Z_OK) {
    if (stream.avail_in == 0) in_left -= stream.avail_in = static_cast<uInt>(std::min(in_left, kPart));
    if (stream.avail_out == 0) out_left -= stream.avail_out = static_cast<uInt>(std::min(out_left, kPart));
    code = step(in_left == 0);
  }
  return code;
}

}  // namespace

uint32_t crc_of(std::span<const std::byte> bytes) {
  return static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

std::vector<std::byte> deflated(std::span<const std::byte> bytes) {
  z_stream stream{};
  check(deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
        "[zip] zlib is out of memory");
  const std::unique_ptr<z_stream, decltype(&deflateEnd)> closer(&stream, &deflateEnd);
  std::vector<std::byte> out(deflateBound(&stream, bytes.size()));
  const int code = pump(stream, bytes, out, [&](bool last) { return deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH); });
  check(code == Z_STREAM_END, "[zip] zlib failed with code ", code);
  out.resize(stream.total_out);
  return out;
}

ZipFile::ZipFile(const std::string& path, Text what) : file_(path), what_(std::move(what)) { read_directory(); }

// The end record is the last 22 bytes, or is followed by a comment of up to 65,535.
uint64_t ZipFile::find_directory_end() const {
  const std::string& path = file_.path();
  require(file_.size() >= kEndSize, "{path}: {size} bytes are too few for {what}", "path"_a = path,
          "size"_a = grouped(file_.size()), "what"_a = what_);
  std::vector<unsigned char> tail(std::min<uint64_t>(file_.size(), kEndSize + 0xffff));
  const uint64_t tail_offset = file_.size() - tail.size();
  file_.read(tail_offset, raw(tail));
  for (size_t at = tail.size() - kEndSize + 1; at-- > 0;)
    if (get32(&tail[at]) == kEnd && at + kEndSize + get16(&tail[at + 20]) == tail.size()) return tail_offset + at;
  refuse("{path}: not {what}, or cut off: it has no zip directory at its end", "path"_a = path, "what"_a = what_);
}

void ZipFile::read_directory() {
  const std::string& path = file_.path();
  const uint64_t end_offset = find_directory_end();
  std::vector<unsigned char> end(kEndSize);
  file_.read(end_offset, raw(end));
  const unsigned count = get16(&end[10]);
  const uint64_t length = get32(&end[12]), offset = get32(&end[16]);
  require(count != 0xffff && length != kMax32 && offset != kMax32,
          "{path}: zip64 archives (4 GB or 65,535 arrays and more) are not supported", "path"_a = path);
  require(get16(&end[4]) == 0 && get16(&end[6]) == 0 && get16(&end[8]) == count,
          "{path}: zip archives in several parts are not supported", "path"_a = path);
  require(offset <= end_offset && length == end_offset - offset,
          "{path}: the zip directory says {length} bytes at offset {offset}, it must end at {end_offset}",
          "path"_a = path, "length"_a = length, "offset"_a = offset, "end_offset"_a = grouped(end_offset));
  std::vector<unsigned char> directory(length);
  file_.read(offset, raw(directory));
  read_entries(directory, count);
  check_layout(offset);
}

void ZipFile::read_entries(const std::vector<unsigned char>& directory, unsigned count) {
  const std::string& path = file_.path();
  std::set<std::string> seen;
  uint64_t at = 0;
  for (unsigned i = 0; i < count; ++i) {
    require(directory.size() - at >= kCentralSize && get32(&directory[at]) == kCentral,
            "{path}: entry {i} of {count} of the zip directory is damaged", "path"_a = path, "i"_a = i + 1,
            "count"_a = count);
    const unsigned char* p = &directory[at];
    const uint64_t name_length = get16(p + 28), rest = uint64_t{get16(p + 30)} + get16(p + 32);
    require(directory.size() - at - kCentralSize >= name_length + rest,
            "{path}: entry {i} of {count} of the zip directory is cut off", "path"_a = path, "i"_a = i + 1,
            "count"_a = count);
    Entry entry;
    entry.name.assign(reinterpret_cast<const char*>(p) + kCentralSize, name_length);
    entry.method = get16(p + 10);
    entry.crc = get32(p + 16);
    entry.packed = get32(p + 20);
    entry.size = get32(p + 24);
    entry.offset = get32(p + 42);
    at += kCentralSize + name_length + rest;
    require(entry.packed != kMax32 && entry.size != kMax32 && entry.offset != kMax32,
            "{path}: zip64 archives (4 GB or 65,535 arrays and more) are not supported", "path"_a = label(entry));
    require((get16(p + 8) & 1) == 0, "{entry}: encrypted zip entries are not supported", "entry"_a = label(entry));
    require(entry.method == 0 || entry.method == 8, "{entry}: zip method {method}, expected 0 (stored) or 8 (deflate)",
            "entry"_a = label(entry), "method"_a = entry.method);
    require(seen.insert(entry.name).second, "{entry}: the name appears twice", "entry"_a = label(entry));
    entries_.push_back(std::move(entry));
  }
  require(at == directory.size(), "{path}: the zip directory has {left} bytes after its {count} entries",
          "path"_a = path, "left"_a = grouped(directory.size() - at), "count"_a = count);
}

// Entries must come before the directory and not overlap; their unpacked size is bounded by their packed size.
void ZipFile::check_layout(uint64_t directory_offset) const {
  std::vector<const Entry*> order;
  for (const Entry& entry : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) { return a->offset < b->offset; });
  for (size_t i = 0; i < order.size(); ++i) {
    const Entry& entry = *order[i];
    const uint64_t limit = i + 1 < order.size() ? order[i + 1]->offset : directory_offset;
    const uint64_t least = kLocalSize + entry.name.size() + entry.packed;
    require(limit <= directory_offset && entry.offset <= limit && least <= limit - entry.offset,
            "{entry}: says {packed} bytes at offset {offset}, which run into what follows at {limit}",
            "entry"_a = label(entry), "packed"_a = entry.packed, "offset"_a = entry.offset, "limit"_a = grouped(limit));
    const uint64_t most = entry.method == 0 ? entry.packed : entry.packed * kLargestRatio;
    require(entry.size <= most && (entry.method != 0 || entry.size == entry.packed),
            "{entry}: says that {packed} packed bytes make {size}", "entry"_a = label(entry), "packed"_a = entry.packed,
            "size"_a = entry.size);
  }
}

struct ZipFile::Stream::State {
  const InputFile& file;
  const Entry& entry;
  std::string label;
  uint64_t packed_at = 0, packed_left = 0, at = 0;
  uint32_t crc = 0;
  std::vector<std::byte> part;  // some of the packed bytes
  z_stream stream{};

  State(const InputFile& f, const Entry& e, std::string l) : file(f), entry(e), label(std::move(l)) {
    if (entry.method != 0)
      require(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "{label}: zlib is out of memory", "label"_a = label);
  }
  ~State() {
    if (entry.method != 0) inflateEnd(&stream);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // Fills `out` with inflated bytes; an empty `out` reads to the end of the stream. Returns zlib's last code.
  int inflate_into(std::span<std::byte> out) {
    std::byte none{};  // zlib wants an address even for no bytes
    stream.next_out = reinterpret_cast<Bytef*>(out.empty() ? &none : out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    int code = Z_OK;
    while (code == Z_OK && (stream.avail_out > 0 || out.empty())) {
      if (stream.avail_in == 0 && packed_left > 0) {
        part.resize(static_cast<size_t>(std::min<uint64_t>(packed_left, size_t{1} << 18)));
        file.read(packed_at, part);
        packed_at += part.size();
        packed_left -= part.size();
        stream.next_in = reinterpret_cast<Bytef*>(part.data());
        stream.avail_in = static_cast<uInt>(part.size());
      }
      code = inflate(&stream, Z_NO_FLUSH);
    }
    return code;
  }

  void check_packed(bool ok) const {
    if (ok) return;
    require(stream.msg != nullptr, "{label}: the packed bytes are damaged", "label"_a = label);
    refuse("{label}: the packed bytes are damaged: {reason}", "label"_a = label, "reason"_a = stream.msg);
  }
};

ZipFile::Stream::Stream(const ZipFile& zip, const Entry& entry)
    : state_(std::make_unique<State>(zip.file_, entry, zip.label(entry))) {
  std::vector<unsigned char> local(kLocalSize + entry.name.size());
  zip.file_.read(entry.offset, raw(local));
  require(get32(local.data()) == kLocal && get16(&local[26]) == entry.name.size() &&
              std::memcmp(&local[kLocalSize], entry.name.data(), entry.name.size()) == 0,
          "{label}: no such zip entry at offset {offset}", "label"_a = state_->label, "offset"_a = entry.offset);
  state_->packed_at = entry.offset + local.size() + get16(&local[28]);
  state_->packed_left = entry.packed;
}

ZipFile::Stream::~Stream() = default;

void ZipFile::Stream::read(uint64_t offset, std::span<std::byte> out) {
  State& s = *state_;
  require(offset == s.at && out.size() <= s.entry.size - s.at,
          "{label}: {count} bytes at {offset} were requested after reading {at} of {size}", "label"_a = s.label,
          "count"_a = out.size(), "offset"_a = offset, "at"_a = s.at, "size"_a = s.entry.size);
  for (std::span<std::byte> left = out; !left.empty();) {
    const std::span<std::byte> next =
        left.first(std::min<size_t>(left.size(), size_t{1} << 30));  // zlib counts in 32 bits
    if (s.entry.method == 0) {
      s.file.read(s.packed_at, next);
      s.packed_at += next.size();
      s.packed_left -= next.size();
    } else {
      const int code = s.inflate_into(next);
      s.check_packed((code == Z_OK || code == Z_STREAM_END) && s.stream.avail_out == 0);
    }
    left = left.subspan(next.size());
  }
  if (!out.empty())
    s.crc = static_cast<uint32_t>(crc32_z(s.crc, reinterpret_cast<const Bytef*>(out.data()), out.size()));
  s.at += out.size();
}

void ZipFile::Stream::finish() {
  State& s = *state_;
  require(s.at == s.entry.size, "{label}: has {left} bytes more than were read", "label"_a = s.label,
          "left"_a = grouped(s.entry.size - s.at));
  if (s.entry.method != 0)
    s.check_packed(s.inflate_into({}) == Z_STREAM_END && s.stream.total_out == s.entry.size && s.stream.avail_in == 0);
  s.check_packed(s.packed_left == 0);
  require(s.crc == s.entry.crc, "{label}: the bytes are damaged, CRC {crc}, expected {expected}", "label"_a = s.label,
          "crc"_a = s.crc, "expected"_a = s.entry.crc);
}

std::vector<std::byte> ZipFile::unpack(const Entry& entry) const {
  Stream stream(*this, entry);
  std::vector<std::byte> bytes(entry.size);
  stream.read(0, bytes);
  stream.finish();
  return bytes;
}

std::string zip_library() { return std::string("zlib ") + zlibVersion(); }

}  // namespace qkv
