// safetensors: named tensors and metadata in one file, every rule checked before memory is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/array.h"
#include "qkv/io/file.h"

namespace QKV_API qkv {

/// One tensor as the header describes it.
struct SafetensorsInfo {
  std::string type;            // as in the file: "F32", "BF16", ...
  std::optional<Dtype> dtype;  // absent for types that can be listed but not read
  Shape shape;
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
};

/// An open file: the header is read and checked at once, a tensor on request.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  uint64_t file_size() const { return file_.size(); }
  /// Names in ascending order.
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return tensors_.contains(name); }
  const SafetensorsInfo& info(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  /// The elements, as float32 or as stored. Only `tensor` reads F16 and BF16.
  Tensor tensor(const std::string& name) const;
  Array array(const std::string& name) const;
  /// The same as tensor(), but F32 stays in the file's own pages (InputFile::mapped) if it is aligned there.
  Tensor mapped(const std::string& name) const;
  /// Whether mapped() leaves it in the file's pages.
  bool stays(const std::string& name) const;
  /// Reads bytes of one tensor starting at `offset`, for streaming.
  void read(const std::string& name, uint64_t offset, std::span<std::byte> out) const;

 private:
  void check_layout(uint64_t data_bytes) const;
  Tensor widened(const std::string& name, const SafetensorsInfo& found) const;
  Text label(const std::string& name) const;
  InputFile file_;
  mutable std::shared_ptr<std::byte> pages_;  // the whole file, once something is mapped
  std::map<std::string, SafetensorsInfo> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writes arrays and metadata atomically; the same contents give the same bytes.
void write_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                       const std::map<std::string, std::string>& metadata = {});
/// The same for float32 tensors, without copying them.
void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace qkv
