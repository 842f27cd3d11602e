// CTranslate2's model.bin of a Marian model: named variables, of which rows of int8 have a scale each.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/file.h"
#include "qkv/models/transformer_config.h"
#include "qkv/tasks/pretrained/weight_table.h"

namespace QKV_API qkv {

/// The variables of model.bin as float32, by the names that they have there. Its layout and every size are checked
/// before anything is read. Where the decoder starts from an embedding of zeros, the vocabulary gets one more row of
/// zeros, which stands for <pad>.
class Ctranslate2Weights : public WeightSource {
 public:
  explicit Ctranslate2Weights(const std::string& folder);

  /// What the variables that are numbers, and the shapes of the others, say of the model.
  TransformerConfig config() const;
  /// Rows of the embedding.
  int64_t words() const { return shape("decoder/embeddings/weight")[0]; }

  const std::string& folder() const override { return folder_; }
  std::vector<std::string> names() const override;
  bool has(const std::string& name) const override;
  const Shape& shape(const std::string& name) const override { return place(name).shape; }
  const std::string& path(const std::string&) const override { return file_.path(); }
  std::vector<std::string> types() const override;
  /// Read once and kept as long as this object, because parts of it become several weights.
  Tensor tensor(const std::string& name) const override;
  void release(const std::string&) const override {}

 private:
  enum class Type : uint8_t { float32, int8, int16, int32, float16, bfloat16 };
  struct Place {
    Shape shape;          // with the row of zeros, if it gets one
    uint64_t offset = 0;  // in the file
    uint64_t bytes = 0;
    Type type = Type::float32;
    bool zeros = false;
  };
  class Reader;
  void read_places();
  const Place& place(const std::string& name) const;
  bool is_number(const Place& place) const { return place.shape.rank() == 0; }
  int64_t number(const std::string& name, int64_t absent) const;
  void expect(const std::string& name, int64_t wanted, int64_t absent) const;
  int64_t layers(const std::string& side) const;
  void check_positions(const TransformerConfig& config) const;
  Tensor float_values(const Place& place) const;

  std::string folder_;
  InputFile file_;
  std::map<std::string, Place> places_;
  std::map<std::string, std::string> aliases_;
  mutable std::map<std::string, Tensor> read_;
};

/// Their names: the projections to queries, keys and values are rows of one matrix.
WeightTable ctranslate2_table();

}  // namespace qkv
