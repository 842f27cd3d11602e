// .npz, NumPy's archive of named arrays: a zip file of .npy files, stored or deflated.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qkv/io/array.h"
#include "qkv/io/file.h"
#include "qkv/io/npy.h"

namespace qkv {

/// An open archive: the directory is read and checked at once, an array when asked for.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);

  /// Names of the arrays in the order of the archive, without ".npy".
  std::vector<std::string> names() const;
  /// One array; its bytes are checked against the archive's CRC.
  Array array(const std::string& name) const;

 private:
  struct Entry {
    std::string name;  // with ".npy"
    uint16_t method = 0;
    uint32_t crc = 0;
    uint64_t packed = 0, size = 0, offset = 0;
  };
  void read_directory();
  uint64_t find_directory_end() const;
  void read_entries(const std::vector<unsigned char>& directory, unsigned count);
  void check_layout(uint64_t directory_offset) const;
  std::vector<std::byte> unpack(const Entry& entry) const;
  std::string label(const Entry& entry) const { return file_.path() + ": " + entry.name; }

  InputFile file_;
  std::vector<Entry> entries_;
};

enum class Compression { stored, deflate };

/// All arrays of an archive.
std::map<std::string, Array> read_npz(const std::string& path);
/// Writes an archive, in the order of the names and always the same bytes for the same arrays.
void write_npz(const std::string& path, const std::map<std::string, Array>& arrays, Compression compression = Compression::stored);

/// "zlib 1.2.13".
std::string zip_library();

}  // namespace qkv
