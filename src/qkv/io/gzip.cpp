// Gzip over zlib.
#include "qkv/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "qkv/core/check.h"
#include "qkv/io/zip.h"

namespace qkv {
namespace {

constexpr size_t kPart = size_t{1} << 20;

[[noreturn]] void refuse_gzip(const std::string& path, bool cut_off, const char* reason) {
  require(!cut_off, "{path}: the gzip file is cut off", "path"_a = path);
  require(reason != nullptr, "{path}: the gzip file is damaged", "path"_a = path);
  refuse("{path}: the gzip file is damaged: {reason}", "path"_a = path, "reason"_a = reason);
}

}  // namespace

bool is_gzip(const InputFile& file) {
  unsigned char magic[2] = {};
  if (file.size() >= 2) file.read(0, std::as_writable_bytes(std::span(magic)));
  return magic[0] == 0x1f && magic[1] == 0x8b;
}

struct GzipStream::State {
  explicit State(const InputFile& input) : file(input), in(kPart) {
    require(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK, "{file}: zlib is out of memory", "file"_a = file.path());
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool ended() const { return code == Z_STREAM_END && at == file.size() && stream.avail_in == 0; }
  void refill() {
    if (stream.avail_in > 0 || at == file.size()) return;
    const size_t size = static_cast<size_t>(std::min<uint64_t>(kPart, file.size() - at));
    file.read(at, std::as_writable_bytes(std::span(in.data(), size)));
    stream.next_in = in.data();
    stream.avail_in = static_cast<uInt>(size);
    at += size;
  }

  const InputFile& file;
  std::vector<Bytef> in;
  z_stream stream{};
  uint64_t at = 0;
  int code = Z_OK;
};

GzipStream::GzipStream(const InputFile& file) : state_(std::make_unique<State>(file)) {}
GzipStream::~GzipStream() = default;

size_t GzipStream::read(std::span<std::byte> out) {
  State& s = *state_;
  size_t done = 0;
  while (done < out.size() && !s.ended()) {
    s.refill();
    if (s.code == Z_STREAM_END)  // another member follows
      require(inflateReset(&s.stream) == Z_OK, "{file}: zlib cannot continue", "file"_a = s.file.path());
    const size_t room = std::min(out.size() - done, kPart);
    s.stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    s.stream.avail_out = static_cast<uInt>(room);
    s.code = inflate(&s.stream, Z_NO_FLUSH);
    if (s.code != Z_OK && s.code != Z_STREAM_END) refuse_gzip(s.file.path(), s.code == Z_BUF_ERROR, s.stream.msg);
    done += room - s.stream.avail_out;
  }
  return done;
}

std::string gzipped(std::string_view bytes) {
  const auto data = std::as_bytes(std::span(bytes));
  const std::vector<std::byte> body = deflated(data);
  std::string out{"\x1f\x8b\x08\0\0\0\0\0\x02\x03", 10};  // no name, no time; as small as it can be
  out.append(reinterpret_cast<const char*>(body.data()), body.size());
  for (const uint32_t number : {crc_of(data), static_cast<uint32_t>(bytes.size())})
    for (int i = 0; i < 4; ++i) out += static_cast<char>(number >> 8 * i & 0xff);
  return out;
}

}  // namespace qkv
