// llama2.c's model.bin: a header of seven numbers, then the weights of a Llama in float32, one kind after the other.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/file.h"
#include "qkv/models/language_model.h"
#include "qkv/tasks/pretrained/language_settings.h"
#include "qkv/tasks/pretrained/weight_table.h"

namespace QKV_API qkv {

/// The weights of model.bin, in the pages of the file, by the names that Llama's own files have:
/// "layers.0.attention.wq.weight". The header and the size of the file are checked before anything is read.
class Llama2cWeights : public WeightSource {
 public:
  explicit Llama2cWeights(const std::string& folder);

  const LanguageSettings& settings() const { return settings_; }
  const std::string& folder() const override { return folder_; }
  std::vector<std::string> names() const override;
  bool has(const std::string& name) const override { return places_.contains(name); }
  const Shape& shape(const std::string& name) const override { return places_.at(name).shape; }
  const std::string& path(const std::string&) const override { return file_.path(); }
  std::vector<std::string> types() const override { return {"F32"}; }
  Tensor tensor(const std::string& name) const override;
  void release(const std::string& name) const override;

 private:
  struct Place {
    Shape shape;
    uint64_t offset;  // in the file
  };
  void read_header();
  void place_tensors();

  std::string folder_;
  InputFile file_;
  std::shared_ptr<std::byte> pages_;
  LanguageSettings settings_;
  std::map<std::string, Place> places_;
};

/// Our names of the weights of model.bin; `tied`: the output layer is the embedding.
WeightTable llama2c_table(bool tied);
std::unique_ptr<LanguageModel> open_llama2c_model(const Llama2cWeights& weights);

}  // namespace qkv
