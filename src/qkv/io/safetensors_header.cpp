// A handler for nlohmann's stream parser. The format is three levels deep, so the depth is limited by its shape.
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
        wrong("an object");
    }
    return true;
  }

  bool end_object() {
    if (place_ == Place::tensor)
      check(fields_.size() == 3, where(), " has no \"",
            !fields_.contains("dtype")   ? "dtype"
            : !fields_.contains("shape") ? "shape"
                                         : "data_offsets",
            "\"");
    place_ = place_ == Place::top ? Place::after : Place::top;
    return true;
  }

  bool key(std::string& name) {
    if (place_ == Place::top) {
      check(names_.insert(name).second, path_, ": \"", name, "\" is in the header twice");
      check(names_.size() <= limits::kTensors, path_, ": has more than ", limits::kTensors, " tensors");
      name_ = name;
      place_ = name == "__metadata__" ? Place::metadata_value : Place::tensor_value;
      if (place_ == Place::tensor_value) tensor_ = &out_.tensors[name];
      fields_.clear();
    } else if (place_ == Place::metadata) {
      check(out_.metadata.emplace(name, "").second, path_, ": the metadata has \"", name, "\" twice");
      check(out_.metadata.size() <= limits::kTensors, path_, ": the metadata has more than ", limits::kTensors,
            " texts");
      metadata_key_ = name;
      place_ = Place::metadata_text;
    } else {  // in a tensor
      check(name == "dtype" || name == "shape" || name == "data_offsets", where(), " has a field \"", name,
            "\", expected dtype, shape and data_offsets");
      check(fields_.insert(name).second, where(), " has \"", name, "\" twice");
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
      wrong("a text");
    }
    return true;
  }

  bool start_array(size_t) {
    if (place_ == Place::shape_value)
      place_ = Place::shape;
    else if (place_ == Place::offsets_value)
      place_ = Place::offsets;
    else
      wrong("a list");
    return true;
  }

  bool end_array() {
    if (place_ == Place::offsets)
      check(tensor_->offsets.size() == 2, where(), " has ", tensor_->offsets.size(),
            " data_offsets, expected begin and end");
    place_ = Place::tensor;
    return true;
  }

  bool number_unsigned(uint64_t value) {
    if (place_ == Place::shape) {
      check(value <= INT64_MAX, where(), " has a size of ", value, ", expected at most ", INT64_MAX);
      check(tensor_->shape.size() < Shape::kMaxRank, where(), " has more than ", Shape::kMaxRank, " axes");
      tensor_->shape.push_back(static_cast<int64_t>(value));
    } else if (place_ == Place::offsets) {
      check(tensor_->offsets.size() < 2, where(), " has more than two data_offsets, expected begin and end");
      tensor_->offsets.push_back(value);
    } else {
      wrong("a number");
    }
    return true;
  }

  bool number_integer(int64_t value) { wrong(std::to_string(value)); }
  bool number_float(double, const std::string& digits) { wrong(digits.substr(0, 30)); }
  bool boolean(bool value) { wrong(value ? "true" : "false"); }
  bool null() { wrong("null"); }
  bool binary(std::vector<uint8_t>&) { wrong("binary data"); }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) {
    fail(path_, ": the header is no JSON: wrong at byte ", position, " of it");
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

  std::string where() const { return text(path_, ": tensor \"", name_, "\""); }

  [[noreturn]] void wrong(const std::string& got) const {
    switch (place_) {
      case Place::tensor_value:
        fail(where(), " is ", got, ", expected an object");
      case Place::dtype:
        fail(where(), " has ", got, " as dtype, expected a text");
      case Place::shape_value:
        fail(where(), " has ", got, " as shape, expected a list of whole numbers");
      case Place::shape:
        fail(where(), " has ", got, " in its shape, expected whole numbers from 0 on");
      case Place::offsets_value:
        fail(where(), " has ", got, " as data_offsets, expected a list of two");
      case Place::offsets:
        fail(where(), " has ", got, " in its data_offsets, expected whole numbers from 0 on");
      case Place::metadata_value:
        fail(path_, ": __metadata__ is ", got, ", expected an object of texts");
      case Place::metadata_text:
        fail(path_, ": the metadata \"", metadata_key_, "\" is ", got, ", expected a text");
      default:
        fail(path_, ": the header is ", got, ", expected an object");
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
  check(!text.empty() && text.front() == '{', path, ": the header does not begin with {");
  SafetensorsHeader header;
  Handler handler(path, header);
  nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  return header;
}

}  // namespace qkv
