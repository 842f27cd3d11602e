// Reads, checks and writes weight files.
#include "qkv/run/model_file.h"

#include <algorithm>
#include <map>
#include <set>

#include "qkv/core/check.h"
#include "qkv/train/checkpoint.h"

namespace qkv {

void check_layout(const SafetensorsFile& file, const std::vector<NamedShape>& layout) {
  std::set<std::string> known;
  for (const NamedShape& entry : layout) {
    require(file.has(entry.name),
            "{file}: has no tensor \"{name}\": the weights are of a different model than the configuration",
            "file"_a = file.path(), "name"_a = entry.name);
    require(file.info(entry.name).shape == entry.shape,
            "{file}: \"{name}\" has shape {shape}, but configuration and vocabularies say {shape_2}",
            "file"_a = file.path(), "name"_a = entry.name, "shape"_a = file.info(entry.name).shape,
            "shape_2"_a = entry.shape);
    known.insert(entry.name);
  }
  for (const std::string& name : file.names())
    require(known.contains(name) || !is_weight(name), "{file}: the model of the configuration has no \"{name}\"",
            "file"_a = file.path(), "name"_a = name);
}

void read_weights(const SafetensorsFile& file, const Parameters& parameters) {
  for (size_t i = 0; i < parameters.entries().size(); ++i) {
    const Tensor read = file.tensor(parameters.entries()[i].name);
    std::copy_n(read.ptr(), read.numel(), parameters.values(i).mutable_ptr());
  }
}

LoadedByName load_by_name(const SafetensorsFile& file, const Parameters& parameters,
                          const std::set<std::string>& anew) {
  LoadedByName out;
  std::set<std::string> known;
  const auto loads = [&](const std::string& name) { return file.has(name) && !anew.contains(name); };
  for (const Parameters::Entry& entry : parameters.entries()) {
    if (!anew.contains(entry.name)) known.insert(entry.name);
    if (!loads(entry.name))
      out.fresh.push_back(entry.name);
    else
      require(file.info(entry.name).shape == entry.shape,
              "{file}: \"{name}\" has shape {shape}, but the model of the configuration has {own}",
              "file"_a = file.path(), "name"_a = entry.name, "shape"_a = file.info(entry.name).shape,
              "own"_a = entry.shape);
  }
  for (const std::string& name : file.names())
    if (!known.contains(name) && is_weight(name)) out.dropped.push_back(name);
  for (size_t i = 0; i < parameters.entries().size(); ++i) {
    const std::string& name = parameters.entries()[i].name;
    if (!loads(name)) continue;
    const Tensor read = file.tensor(name);
    std::copy_n(read.ptr(), read.numel(), parameters.values(i).mutable_ptr());
  }
  return out;
}

void write_weights(const std::string& path, const Parameters& parameters) {
  std::map<std::string, Tensor> tensors;
  for (size_t i = 0; i < parameters.entries().size(); ++i) tensors[parameters.entries()[i].name] = parameters.values(i);
  write_safetensors(path, tensors);
}

}  // namespace qkv
