// Checkpoints as safetensors: counters are in the metadata, with a mark that distinguishes them from plain weights.
#include "qkv/train/checkpoint.h"

#include <charconv>

#include "qkv/core/check.h"
#include "qkv/io/safetensors.h"

namespace qkv {
namespace {
constexpr const char* kMark = "qkv.checkpoint";
constexpr const char* kVersion = "1";
}  // namespace

int64_t Checkpoint::integer(const std::string& name) const {
  const auto found = counters.find(name);
  require(found != counters.end(), "the checkpoint has no counter \"{name}\"", "name"_a = name);
  const std::string& digits = found->second;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  require(error == std::errc() && end == digits.data() + digits.size(),
          "the checkpoint's counter \"{name}\" is \"{digits}\", expected a whole number", "name"_a = name,
          "digits"_a = digits);
  return value;
}

bool is_weight(std::string_view name) {
  return !name.starts_with("adam.") && !name.starts_with("sgd.") && !name.starts_with(kCallbackPrefix);
}

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  require(!checkpoint.counters.contains(kMark), "{path}: a counter cannot be named {mark}", "path"_a = path,
          "mark"_a = kMark);
  std::map<std::string, std::string> metadata = checkpoint.counters;
  metadata.emplace(kMark, kVersion);
  write_safetensors(path, checkpoint.tensors, metadata);
}

Checkpoint load_checkpoint(const std::string& path) {
  const SafetensorsFile file(path);
  Checkpoint out;
  out.file = path;
  out.counters = file.metadata();
  const auto mark = out.counters.find(kMark);
  require(mark != out.counters.end(), "{path}: not a checkpoint, its metadata has no \"{mark}\"", "path"_a = path,
          "mark"_a = kMark);
  require(mark->second == kVersion, "{path}: a checkpoint of version {mark}, expected {version}", "path"_a = path,
          "mark"_a = mark->second, "version"_a = kVersion);
  out.counters.erase(mark);
  for (const std::string& name : file.names()) out.tensors.emplace(name, file.tensor(name));
  return out;
}

}  // namespace qkv
