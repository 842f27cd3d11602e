// .npz: arrays from a zip file, and a zip writer with reproducible output.
#include "qkv/io/npz.h"

#include <algorithm>
#include <span>

#include "qkv/core/check.h"
#include "qkv/io/atomic_file.h"

namespace qkv {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr uint64_t kMax32 = 0xffffffff;

void put16(std::string& out, uint64_t value) {
  out += {static_cast<char>(value & 0xff), static_cast<char>(value >> 8 & 0xff)};
}
void put32(std::string& out, uint64_t value) {
  put16(out, value);
  put16(out, value >> 16);
}

void check_zip32(bool ok, const std::string& path) {
  require(ok, "{path}: zip64 archives (4 GB or 65,535 arrays and more) are not supported", "path"_a = path);
}

std::vector<std::byte> npy_bytes(const Array& array) {
  const std::string header = npy_header_text(array);
  const auto head = std::as_bytes(std::span(header));
  std::vector<std::byte> out(head.begin(), head.end());
  out.insert(out.end(), array.bytes().begin(), array.bytes().end());
  return out;
}

}  // namespace

NpzFile::NpzFile(const std::string& path) : zip_(path, tr("an .npz file")) {
  for (const ZipFile::Entry& entry : zip_.entries())
    require(entry.name.size() > 4 && entry.name.ends_with(".npy"),
            "{entry}: not an array, expected a name that ends in .npy", "entry"_a = zip_.label(entry));
}

std::vector<std::string> NpzFile::names() const {
  std::vector<std::string> out;
  for (const ZipFile::Entry& entry : zip_.entries()) out.push_back(entry.name.substr(0, entry.name.size() - 4));
  return out;
}

Array NpzFile::array(const std::string& name) const {
  const auto& entries = zip_.entries();
  const auto entry =
      std::find_if(entries.begin(), entries.end(), [&](const ZipFile::Entry& e) { return e.name == name + ".npy"; });
  require(entry != entries.end(), "{path}: has no array \"{name}\"", "path"_a = zip_.path(), "name"_a = name);
  ZipFile::Stream stream(zip_, *entry);
  Array array = read_npy_array(zip_.label(*entry), entry->size,
                               [&](uint64_t offset, std::span<std::byte> out) { stream.read(offset, out); });
  stream.finish();
  return array;
}

std::map<std::string, Array> read_npz(const std::string& path) {
  const NpzFile file(path);
  std::map<std::string, Array> arrays;
  for (const std::string& name : file.names()) arrays.emplace(name, file.array(name));
  return arrays;
}

void write_npz(const std::string& path, const std::map<std::string, Array>& arrays, Compression compression) {
  check_zip32(arrays.size() < 0xffff, path);
  AtomicFile file(path);
  std::string directory;
  uint64_t offset = 0;
  for (const auto& [key, array] : arrays) {
    const std::string name = key + ".npy";
    require(!key.empty() && name.size() <= 0xffff, "{path}: an array's name has {size} bytes, expected 1 to 65,531",
            "path"_a = path, "size"_a = key.size());
    std::vector<std::byte> bytes = npy_bytes(array);
    check_zip32(bytes.size() < kMax32, path + ": " + name);
    const uint32_t crc = crc_of(bytes);
    const uint64_t size = bytes.size();
    if (compression == Compression::deflate) bytes = deflated(bytes);

    std::string fields;    // shared by the local header and the directory
    put16(fields, 20);     // version needed: 2.0
    put16(fields, 0x800);  // names are UTF-8
    put16(fields, compression == Compression::deflate ? 8 : 0);
    put32(fields, 0x00210000);  // 1980-01-01, so that the same arrays give the same bytes
    put32(fields, crc);
    put32(fields, bytes.size());
    put32(fields, size);
    put16(fields, name.size());
    put16(fields, 0);

    std::string local;
    put32(local, kLocal);
    local += fields + name;
    put32(directory, kCentral);
    put16(directory, 0x0314);  // made by 2.0 on Unix
    directory += fields;
    directory.append(6, '\0');         // no comment, disk 0, internal attributes
    put32(directory, 0100644u << 16);  // a plain file
    put32(directory, offset);
    directory += name;
    file.write(local);
    file.write(bytes);
    offset += local.size() + bytes.size();
    check_zip32(offset + directory.size() < kMax32, path);
  }
  std::string end;
  put32(end, kEnd);
  put32(end, 0);
  put16(end, arrays.size());
  put16(end, arrays.size());
  put32(end, directory.size());
  put32(end, offset);
  put16(end, 0);
  file.write(directory + end);
  file.commit();
}

}  // namespace qkv
