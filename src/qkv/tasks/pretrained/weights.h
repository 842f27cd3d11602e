// PretrainedWeights: the weight files of a pretrained folder, one or several, as one set of named tensors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/safetensors.h"

namespace QKV_API qkv {

class PretrainedWeights {
 public:
  /// model.safetensors of a folder, or the files that its model.safetensors.index.json names. Only headers are read.
  /// Refuses pickled weights, a missing shard, and a shard outside the folder; links are followed.
  explicit PretrainedWeights(const std::string& folder);

  const std::string& folder() const { return folder_; }
  std::vector<std::string> names() const;
  bool has(const std::string& name) const { return file_of_.contains(name); }
  const SafetensorsInfo& info(const std::string& name) const { return file(name).info(name); }
  /// The file that holds a tensor.
  const SafetensorsFile& file(const std::string& name) const;
  /// Number types and the bytes of all files: "F32", 310,000,000.
  std::vector<std::string> types() const;
  uint64_t bytes() const;
  const std::vector<SafetensorsFile>& files() const { return files_; }

  /// F32 stays in the pages of its file; other types become float32. A value that is not finite is refused.
  Tensor tensor(const std::string& name) const;

 private:
  void read_shards(const std::string& index);
  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> file_of_;
};

}  // namespace qkv
