// safetensors: 8 bytes of header length, a JSON header, the data without gaps.
#include "qkv/io/safetensors.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/core/numbers.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/half.h"
#include "qkv/io/safetensors_header.h"

namespace qkv {
namespace {

constexpr const char* kMetadata = "__metadata__";

struct TypeRow {
  std::string_view name;
  uint64_t bytes;
  std::optional<Dtype> dtype;
};
constexpr std::array<TypeRow, 16> kTypes = {{{"F32", 4, Dtype::float32},
                                             {"F64", 8, Dtype::float64},
                                             {"I32", 4, Dtype::int32},
                                             {"I64", 8, Dtype::int64},
                                             {"BOOL", 1, Dtype::boolean},
                                             {"U8", 1, Dtype::uint8},
                                             {"F16", 2, {}},
                                             {"BF16", 2, {}},
                                             {"F8_E4M3", 1, {}},
                                             {"F8_E5M2", 1, {}},
                                             {"I8", 1, {}},
                                             {"I16", 2, {}},
                                             {"U16", 2, {}},
                                             {"U32", 4, {}},
                                             {"U64", 8, {}},
                                             {"C64", 8, {}}}};

const char* type_name(Dtype type) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == type) return row.name.data();
  fail("[safetensors] no name for ", dtype_name(type));
}

// Checks one tensor on its own: a known type, begin <= end <= data_bytes, and exactly the bytes its shape needs.
SafetensorsInfo checked_info(const Text& label, const SafetensorsHeader::Tensor& tensor, uint64_t data_offset,
                             uint64_t data_bytes) {
  const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const TypeRow& r) { return r.name == tensor.type; });
  require(row != kTypes.end(), "{label}: unknown dtype \"{type}\"", "label"_a = label,
          "type"_a = tensor.type.substr(0, 30));
  const uint64_t begin = tensor.offsets[0], end = tensor.offsets[1];
  require(begin <= end, "{label}: data_offsets [{begin}, {end}] run backwards", "label"_a = label, "begin"_a = begin,
          "end"_a = end);
  require(end <= data_bytes, "{label}: data_offsets end at {end}, the data has {data_bytes} bytes", "label"_a = label,
          "end"_a = end, "data_bytes"_a = grouped(data_bytes));
  const Shape shape = checked_shape(label, tensor.shape);
  uint64_t needed = 0;
  const bool fits =
      !__builtin_mul_overflow(static_cast<uint64_t>(shape.numel()), row->bytes, &needed) && needed == end - begin;
  require(fits, "{label}: shape {shape} of {type} does not fit the {bytes} bytes of its data_offsets",
          "label"_a = label, "shape"_a = shape, "type"_a = tensor.type, "bytes"_a = end - begin);
  return {tensor.type, row->dtype, shape, data_offset + begin, end - begin};
}

// One tensor to write.
struct Part {
  std::string name;
  Dtype dtype;
  Shape shape;
  std::span<const std::byte> bytes;
};

void write_parts(const std::string& path, std::vector<Part> parts, const std::map<std::string, std::string>& metadata) {
  // Wider types first, so that every element is aligned in the file; then by name.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return dtype_size(a.dtype) > dtype_size(b.dtype); });
  nlohmann::json header = nlohmann::json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  uint64_t offset = 0;
  for (const Part& part : parts) {
    require(part.name != kMetadata, "{path}: a tensor cannot be named {metadata}", "path"_a = path,
            "metadata"_a = kMetadata);
    header[part.name] = {{"dtype", type_name(part.dtype)},
                         {"shape", std::vector<int64_t>(part.shape.begin(), part.shape.end())},
                         {"data_offsets", {offset, offset + part.bytes.size()}}};
    offset += part.bytes.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    refuse("{path}: a name or a metadata value is not valid UTF-8", "path"_a = path);
  }
  text.append((8 - text.size() % 8) % 8, ' ');
  require(text.size() <= limits::kSafetensorsHeaderBytes,
          "{path}: the header would have {size} bytes, expected at most {most}", "path"_a = path,
          "size"_a = text.size(), "most"_a = limits::kSafetensorsHeaderBytes);
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(uint64_t{text.size()} >> (8 * i) & 0xff);

  AtomicFile file(path);
  file.write(length + text);
  for (const Part& part : parts) file.write(part.bytes);
  file.commit();
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  require(file_.size() >= 8, "{path}: {size} bytes are too few for a safetensors file", "path"_a = path,
          "size"_a = grouped(file_.size()));
  std::array<unsigned char, 8> start{};
  file_.read(0, std::as_writable_bytes(std::span(start)));
  uint64_t length = 0;
  for (size_t i = 0; i < 8; ++i) length |= uint64_t{start[i]} << (8 * i);
  require(length <= file_.size() - 8, "{path}: header says {length} bytes, the file has {size}", "path"_a = path,
          "length"_a = length, "size"_a = grouped(file_.size()));
  require(length <= limits::kSafetensorsHeaderBytes, "{path}: header says {length} bytes, expected at most {most}",
          "path"_a = path, "length"_a = length, "most"_a = grouped(limits::kSafetensorsHeaderBytes));
  std::string text(length, '\0');
  file_.read(8, std::as_writable_bytes(std::span(text)));
  SafetensorsHeader header = parse_safetensors_header(path, text);
  metadata_ = std::move(header.metadata);
  const uint64_t data_offset = 8 + length, data_bytes = file_.size() - data_offset;
  for (const auto& [name, tensor] : header.tensors)
    tensors_.emplace(name, checked_info(label(name), tensor, data_offset, data_bytes));
  check_layout(data_bytes);
}

// Sorted by offset, the tensors cover the data from its first byte to its last.
void SafetensorsFile::check_layout(uint64_t data_bytes) const {
  std::vector<std::pair<const std::string*, const SafetensorsInfo*>> order;
  for (const auto& [name, info] : tensors_) order.emplace_back(&name, &info);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second->offset, a.second->bytes) < std::pair(b.second->offset, b.second->bytes);
  });
  const uint64_t data_offset = file_.size() - data_bytes;
  uint64_t end = data_offset;
  const std::string* before = nullptr;
  for (const auto& [name, info] : order) {
    require(info->offset >= end, "{path}: tensors \"{before}\" and \"{name}\" overlap", "path"_a = path(),
            "before"_a = before ? *before : std::string(), "name"_a = *name);
    require(info->offset == end, "{path}: {count} bytes before tensor \"{name}\" belong to no tensor",
            "path"_a = path(), "count"_a = grouped(info->offset - end), "name"_a = *name);
    end += info->bytes;
    before = name;
  }
  require(end == file_.size(), "{path}: tensors end at byte {end} of the data, the data has {data_bytes}",
          "path"_a = path(), "end"_a = end - data_offset, "data_bytes"_a = grouped(data_bytes));
}

Text SafetensorsFile::label(const std::string& name) const {
  return tr("{path}: tensor \"{name}\"", "path"_a = path(), "name"_a = name);
}

std::vector<std::string> SafetensorsFile::names() const {
  std::vector<std::string> out;
  for (const auto& [name, info] : tensors_) out.push_back(name);
  return out;
}

const SafetensorsInfo& SafetensorsFile::info(const std::string& name) const {
  const auto found = tensors_.find(name);
  require(found != tensors_.end(), "{path}: has no tensor \"{name}\"", "path"_a = path(), "name"_a = name);
  return found->second;
}

void SafetensorsFile::read(const std::string& name, uint64_t offset, std::span<std::byte> out) const {
  const SafetensorsInfo& tensor = info(name);
  require(offset <= tensor.bytes && out.size() <= tensor.bytes - offset,
          "{label}: {count} bytes at {offset} are outside its {bytes}", "label"_a = label(name), "count"_a = out.size(),
          "offset"_a = offset, "bytes"_a = tensor.bytes);
  file_.read(tensor.offset + offset, out);
}

Array SafetensorsFile::array(const std::string& name) const {
  const SafetensorsInfo& tensor = info(name);
  require(tensor.dtype.has_value(), "{label}: {type} is not supported, expected F32, F64, I32, I64, BOOL or U8",
          "label"_a = label(name), "type"_a = tensor.type);
  Array out(*tensor.dtype, tensor.shape);
  read(name, 0, out.mutable_bytes());
  return out;
}

Tensor SafetensorsFile::tensor(const std::string& name) const {
  const SafetensorsInfo& found = info(name);
  if (found.type == "F16" || found.type == "BF16") return widened(name, found);
  if (found.dtype != Dtype::float32) return array(name).to_tensor(label(name));
  Tensor out = Tensor::empty(found.shape);
  read(name, 0, std::as_writable_bytes(std::span(out.mutable_ptr(), static_cast<size_t>(out.numel()))));
  return out;
}

// Halves as floats, a stretch at a time, so that the file is never in memory twice.
Tensor SafetensorsFile::widened(const std::string& name, const SafetensorsInfo& found) const {
  constexpr int64_t kStretch = 1 << 16;
  Tensor out = Tensor::empty(found.shape);
  std::vector<uint16_t> halves(static_cast<size_t>(std::min(kStretch, out.numel())));
  for (int64_t done = 0; done < out.numel(); done += kStretch) {
    const auto count = static_cast<size_t>(std::min(kStretch, out.numel() - done));
    const std::span part(halves.data(), count);
    read(name, static_cast<uint64_t>(done) * 2, std::as_writable_bytes(part));
    float* to = out.mutable_ptr() + done;
    std::transform(part.begin(), part.end(), to, found.type == "F16" ? float_of_half : float_of_bfloat);
  }
  return out;
}

bool SafetensorsFile::stays(const std::string& name) const {
  const SafetensorsInfo& found = info(name);
  return found.dtype == Dtype::float32 && found.offset % sizeof(float) == 0 && found.bytes > 0;
}

Tensor SafetensorsFile::mapped(const std::string& name) const {
  const SafetensorsInfo& found = info(name);
  if (!stays(name)) return tensor(name);
  if (!pages_) pages_ = file_.mapped();
  return Tensor::borrowed(found.shape, reinterpret_cast<float*>(pages_.get() + found.offset), pages_);
}

void write_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<Part> parts;
  for (const auto& [name, array] : arrays) parts.push_back({name, array.dtype(), array.shape(), array.bytes()});
  write_parts(path, std::move(parts), metadata);
}

void write_safetensors(const std::string& path, const std::map<std::string, Tensor>& tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<Part> parts;
  for (const auto& [name, tensor] : tensors) {
    require(tensor.defined(), "{path}: tensor \"{name}\" has no values", "path"_a = path, "name"_a = name);
    parts.push_back({name, Dtype::float32, tensor.shape(), std::as_bytes(tensor.data())});
  }
  write_parts(path, std::move(parts), metadata);
}

}  // namespace qkv
