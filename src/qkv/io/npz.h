// .npz, NumPy's archive of named arrays: a zip file of .npy files, stored or deflated.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/array.h"
#include "qkv/io/npy.h"
#include "qkv/io/zip.h"

namespace QKV_API qkv {

/// An open archive: the directory is read and checked at once, an array on request.
class NpzFile {
 public:
  explicit NpzFile(const std::string& path);

  /// Names of the arrays in archive order, without ".npy".
  std::vector<std::string> names() const;
  /// One array; its bytes are checked against the archive's CRC.
  Array array(const std::string& name) const;

 private:
  ZipFile zip_;
};

enum class Compression { stored, deflate };

/// All arrays of an archive.
std::map<std::string, Array> read_npz(const std::string& path);
/// Writes an archive in the order of the names; the same arrays always give the same bytes.
void write_npz(const std::string& path, const std::map<std::string, Array>& arrays,
               Compression compression = Compression::stored);

}  // namespace qkv
