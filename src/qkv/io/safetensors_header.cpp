// A handler for nlohmann's stream parser. The format is three levels deep, so the nesting is limited.
#include "qkv/io/safetensors_header.h"

#include <nlohmann/json.hpp>

#include <set>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/shape.h"

namespace qkv {
namespace {

class Handler {
 public:
  Handler(const std::string& path, SafetensorsHeader& out) : path_(path), out_(out) {}

  bool start_object(size_t) {
    switch (place_) {
      case Place::before:
        place_ = Place::top;
        break;
      case Place::tensor_value:
        place_ = Place::tensor;
        break;
      case Place::metadata_value:
        place_ = Place::metadata;
        break;
      default:
        wrong(tr("an object"));
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor && fields_.size() != 3)
      refuse("{where} has no \"{key}\"", "where"_a = where(),
             "key"_a = !fields_.contains("dtype")   ? "dtype"
                       : !fields_.contains("shape") ? "shape"
                                                    : "data_offsets");
    place_ = place_ == Place::top ? Place::after : Place::top;
    return true;
  }

  bool key(std::string& name) {
    if (place_ == Place::top) {
      require(names_.insert(name).second, "{path}: \"{name}\" is in the header twice", "path"_a = path_,
              "name"_a = name);
      require(names_.size() <= limits::kTensors, "{path}: has more than {most} tensors", "path"_a = path_,
              "most"_a = limits::kTensors);
      name_ = name;
      place_ = name == "__metadata__" ? Place::metadata_value : Place::tensor_value;
      if (place_ == Place::tensor_value) tensor_ = &out_.tensors[name];
      fields_.clear();
    } else if (place_ == Place::metadata) {
      require(out_.metadata.emplace(name, "").second, "{path}: the metadata has \"{name}\" twice", "path"_a = path_,
              "name"_a = name);
      require(out_.metadata.size() <= limits::kTensors, "{path}: the metadata has more than {most} entries",
              "path"_a = path_, "most"_a = limits::kTensors);
      metadata_key_ = name;
      place_ = Place::metadata_text;
    } else {  // in a tensor
      if (name != "dtype" && name != "shape" && name != "data_offsets")
        refuse("{where} has a field \"{name}\", expected dtype, shape and data_offsets", "where"_a = where(),
               "name"_a = name);
      if (!fields_.insert(name).second) refuse("{where} has \"{name}\" twice", "where"_a = where(), "name"_a = name);
      place_ = name == "dtype" ? Place::dtype : name == "shape" ? Place::shape_value : Place::offsets_value;
    }
    return true;
  }

  bool string(std::string& value) {
    if (place_ == Place::dtype) {
      tensor_->type = value;
      place_ = Place::tensor;
    } else if (place_ == Place::metadata_text) {
      out_.metadata[metadata_key_] = value;
      place_ = Place::metadata;
    } else {
      wrong(tr("a string"));
    }
    return true;
  }

  bool start_array(size_t) {
    if (place_ == Place::shape_value)
      place_ = Place::shape;
    else if (place_ == Place::offsets_value)
      place_ = Place::offsets;
    else
      wrong(tr("a list"));
    return true;
  }

  bool end_array() {
    if (place_ == Place::offsets && tensor_->offsets.size() != 2)
      refuse("{where} has {count} data_offsets, expected begin and end", "where"_a = where(),
             "count"_a = tensor_->offsets.size());
    place_ = Place::tensor;
    return true;
  }

  bool number_unsigned(uint64_t value) {
    if (place_ == Place::shape) {
      if (value > INT64_MAX)
        refuse("{where} has a size of {size}, expected at most {most}", "where"_a = where(), "size"_a = value,
               "most"_a = INT64_MAX);
      if (tensor_->shape.size() >= Shape::kMaxRank)
        refuse("{where} has more than {most} axes", "where"_a = where(), "most"_a = Shape::kMaxRank);
      tensor_->shape.push_back(static_cast<int64_t>(value));
    } else if (place_ == Place::offsets) {
      if (tensor_->offsets.size() >= 2)
        refuse("{where} has more than two data_offsets, expected begin and end", "where"_a = where());
      tensor_->offsets.push_back(value);
    } else {
      wrong(tr("a number"));
    }
    return true;
  }

  bool number_integer(int64_t value) { wrong(std::to_string(value)); }
  bool number_float(double, const std::string& digits) { wrong(digits.substr(0, 30)); }
  bool boolean(bool value) { wrong(verbatim(value ? "true" : "false")); }
  bool null() { wrong(verbatim("null")); }
  bool binary(std::vector<uint8_t>&) { wrong(tr("binary data")); }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    refuse("{path}: the header is not JSON: error at byte {position}", "path"_a = path_, "position"_a = position);
  }

 private:
  // What the next value belongs to.
  enum class Place {
    before,
    top,
    tensor_value,
    tensor,
    dtype,
    shape_value,
    shape,
    offsets_value,
    offsets,
    metadata_value,
    metadata,
    metadata_text,
    after
  };

  Text where() const { return tr("{path}: tensor \"{name}\"", "path"_a = path_, "name"_a = name_); }

  [[noreturn]] void wrong(const Text& got) const {
    switch (place_) {
      case Place::tensor_value:
        refuse("{where} is {got}, expected an object", "where"_a = where(), "got"_a = got);
      case Place::dtype:
        refuse("{where} has {got} as dtype, expected a string", "where"_a = where(), "got"_a = got);
      case Place::shape_value:
        refuse("{where} has {got} as shape, expected a list of whole numbers", "where"_a = where(), "got"_a = got);
      case Place::shape:
        refuse("{where} has {got} in its shape, expected whole numbers of 0 or more", "where"_a = where(),
               "got"_a = got);
      case Place::offsets_value:
        refuse("{where} has {got} as data_offsets, expected a list of two", "where"_a = where(), "got"_a = got);
      case Place::offsets:
        refuse("{where} has {got} in its data_offsets, expected whole numbers of 0 or more", "where"_a = where(),
               "got"_a = got);
      case Place::metadata_value:
        refuse("{path}: __metadata__ is {got}, expected an object of strings", "path"_a = path_, "got"_a = got);
      case Place::metadata_text:
        refuse("{path}: the metadata \"{key}\" is {got}, expected a string", "path"_a = path_, "key"_a = metadata_key_,
               "got"_a = got);
      default:
        refuse("{path}: the header is {got}, expected an object", "path"_a = path_, "got"_a = got);
    }
  }

  const std::string& path_;
  SafetensorsHeader& out_;
  Place place_ = Place::before;
  std::string name_, metadata_key_;
  SafetensorsHeader::Tensor* tensor_ = nullptr;
  std::set<std::string> names_, fields_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text) {
  require(!text.empty() && text.front() == '{', "{path}: the header does not begin with {", "path"_a = path);
  SafetensorsHeader header;
  Handler handler(path, header);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  return header;
}

}  // namespace qkv
