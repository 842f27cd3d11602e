// Finds weight files, and reads tensors with a check of their values.
#include "qkv/tasks/pretrained/weights.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <filesystem>
#include <set>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/tasks/pretrained/model_json.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr double kFloatsPerNanosecond = 2;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// Weights in a format that runs code when it is opened, or that is another program's own.
void refuse_other_formats(const std::string& folder) {
  for (const char* name : {"pytorch_model.bin", "pytorch_model.bin.index.json", "consolidated.00.pth"})
    if (is_there(folder + "/" + name))
      throw Error(tr("{folder}: its weights are pickled ({name}): opening such a file runs whatever code it contains, "
                     "so qkv does not read it",
                     "folder"_a = folder, "name"_a = name),
                  tr("transformers writes the same weights as model.safetensors: "
                     "AutoModel.from_pretrained(\"{folder}\").save_pretrained(\"NEW FOLDER\")",
                     "folder"_a = folder));
  for (const char* name : {"tf_model.h5", "flax_model.msgpack"})
    if (is_there(folder + "/" + name))
      refuse("{folder}: has its weights in {name}, expected model.safetensors", "folder"_a = folder, "name"_a = name);
}

// The place of the first value that is not finite, or the number of values.
int64_t first_bad(const float* x, int64_t count) {
  constexpr uint32_t kExponent = 0x7f800000;
  constexpr int64_t kStretch = 1 << 12;
  for (int64_t begin = 0; begin < count; begin += kStretch) {
    const int64_t end = std::min(count, begin + kStretch);
    uint32_t bad = 0;
    for (int64_t i = begin; i < end; ++i) bad |= (std::bit_cast<uint32_t>(x[i]) & kExponent) == kExponent ? 1 : 0;
    if (bad == 0) continue;
    for (int64_t i = begin; i < end; ++i)
      if ((std::bit_cast<uint32_t>(x[i]) & kExponent) == kExponent) return i;
  }
  return count;
}

}  // namespace

PretrainedWeights::PretrainedWeights(const std::string& folder) : folder_(folder) {
  const std::string one = folder + "/" + kWeights, index = folder + "/" + kIndex;
  if (is_there(one) || fs::is_symlink(one)) {
    files_.emplace_back(one);
    for (const std::string& name : files_[0].names()) file_of_.emplace(name, 0);
  } else if (is_there(index)) {
    read_shards(index);
  } else {
    refuse_other_formats(folder);
    refuse("{folder}: has no model.safetensors", "folder"_a = folder);
  }
}

void PretrainedWeights::read_shards(const std::string& index) {
  const ModelJson json(index);
  const auto map = json.strings("weight_map");
  require(!map.empty(), "{path}: has no \"weight_map\"", "path"_a = index);
  std::map<std::string, size_t> place;
  for (const auto& [name, shard] : map) {
    const bool plain = !shard.empty() && shard.find('/') == std::string::npos &&
                       shard.find('\\') == std::string::npos && shard.find('\0') == std::string::npos &&
                       shard.ends_with(".safetensors");
    require(plain, "{path}: \"{name}\" is in \"{shard}\", expected a .safetensors file of this folder",
            "path"_a = index, "name"_a = name, "shard"_a = shard);
    if (place.contains(shard)) continue;
    require(is_there(folder_ + "/" + shard), "{folder}: the file {shard} is missing, which {index} names",
            "folder"_a = folder_, "shard"_a = shard, "index"_a = kIndex);
    place.emplace(shard, files_.size());
    files_.emplace_back(folder_ + "/" + shard);
  }
  for (const auto& [name, shard] : map) {
    const SafetensorsFile& file = files_[place.at(shard)];
    require(file.has(name), "{path}: has no tensor \"{name}\", although {index} says so", "path"_a = file.path(),
            "name"_a = name, "index"_a = kIndex);
  }
  for (size_t i = 0; i < files_.size(); ++i)
    for (const std::string& name : files_[i].names()) {
      const auto [found, fresh] = file_of_.emplace(name, i);
      require(fresh, "{path}: tensor \"{name}\" is in {other} too", "path"_a = files_[i].path(), "name"_a = name,
              "other"_a = files_[found->second].path());
    }
}

std::vector<std::string> PretrainedWeights::names() const {
  std::vector<std::string> out;
  for (const auto& [name, file] : file_of_) out.push_back(name);
  return out;
}

const SafetensorsFile& PretrainedWeights::file(const std::string& name) const {
  const auto found = file_of_.find(name);
  require(found != file_of_.end(), "{folder}: has no tensor \"{name}\"", "folder"_a = folder_, "name"_a = name);
  return files_[found->second];
}

std::vector<std::string> PretrainedWeights::types() const {
  std::set<std::string> found;
  for (const auto& [name, file] : file_of_) found.insert(this->file(name).info(name).type);
  return {found.begin(), found.end()};
}

void check_finite(const Tensor& x, const std::string& path, const std::string& name) {
  constexpr int64_t kBlock = 1 << 18;
  std::atomic<int64_t> bad = x.numel();
  parallel_ranges(x.numel(), kBlock, static_cast<double>(x.numel()) / kFloatsPerNanosecond,
                  [&](int64_t begin, int64_t end) {
                    const int64_t at = begin + first_bad(x.ptr() + begin, end - begin);
                    if (at == end) return;
                    for (int64_t seen = bad; at < seen && !bad.compare_exchange_weak(seen, at);) continue;
                  });
  require(bad == x.numel(), "{path}: tensor \"{name}\": value {place} is {value}, expected finite numbers",
          "path"_a = path, "name"_a = name, "place"_a = bad.load() + 1,
          "value"_a = x.ptr()[bad % std::max<int64_t>(x.numel(), 1)]);
}

Tensor PretrainedWeights::tensor(const std::string& name) const {
  const SafetensorsFile& from = file(name);
  const std::string& type = from.info(name).type;
  require(type == "F32" || type == "F16" || type == "BF16",
          "{path}: tensor \"{name}\" is {type}, expected F32, F16 or BF16", "path"_a = from.path(), "name"_a = name,
          "type"_a = type);
  Tensor out = from.mapped(name);
  check_finite(out, from.path(), name);
  return out;
}

void PretrainedWeights::release(const std::string& name) const {
  const SafetensorsFile& from = file(name);
  if (from.stays(name)) drop_pages(from.mapped(name).ptr(), static_cast<size_t>(from.info(name).bytes));
}

}  // namespace qkv
