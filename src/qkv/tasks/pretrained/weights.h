// WeightSource: the named tensors of a pretrained model; PretrainedWeights: those of safetensors files, one or several.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/safetensors.h"

namespace QKV_API qkv {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual const std::string& folder() const = 0;
  /// In ascending order.
  virtual std::vector<std::string> names() const = 0;
  virtual bool has(const std::string& name) const = 0;
  virtual const Shape& shape(const std::string& name) const = 0;
  /// The file that holds a tensor.
  virtual const std::string& path(const std::string& name) const = 0;
  /// Number types: "F32".
  virtual std::vector<std::string> types() const = 0;
  /// F32 stays in the pages of its file; other types become float32. A value that is not finite is refused.
  virtual Tensor tensor(const std::string& name) const = 0;
  /// After a tensor was copied: its pages in memory are not needed.
  virtual void release(const std::string& name) const = 0;
};

/// Refuses a value that is not finite; `path` is the file and `name` the tensor.
void check_finite(const Tensor& x, const std::string& path, const std::string& name);

class PretrainedWeights : public WeightSource {
 public:
  /// model.safetensors of a folder, or the files that its model.safetensors.index.json names. Only headers are read.
  /// Refuses pickled weights, a missing shard, and a shard outside the folder; links are followed.
  explicit PretrainedWeights(const std::string& folder);

  const std::string& folder() const override { return folder_; }
  std::vector<std::string> names() const override;
  bool has(const std::string& name) const override { return file_of_.contains(name); }
  const Shape& shape(const std::string& name) const override { return file(name).info(name).shape; }
  const std::string& path(const std::string& name) const override { return file(name).path(); }
  std::vector<std::string> types() const override;
  Tensor tensor(const std::string& name) const override;
  void release(const std::string& name) const override;
  const std::vector<SafetensorsFile>& files() const { return files_; }

 private:
  const SafetensorsFile& file(const std::string& name) const;
  void read_shards(const std::string& index);
  std::string folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, size_t> file_of_;
};

}  // namespace qkv
