// Reads, checks and writes weight files.
#include "qkv/run/model_file.h"

#include <algorithm>
#include <map>
#include <set>

#include "qkv/core/check.h"
#include "qkv/run/run_folder.h"
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

void start_from(const std::string& folder, const Parameters& parameters) {
  const SafetensorsFile file(run_weights(folder));
  std::vector<NamedShape> layout;
  for (const Parameters::Entry& entry : parameters.entries()) layout.push_back({entry.name, entry.shape});
  try {
    check_layout(file, layout);
  } catch (const Error& e) {
    throw Error(tr("training.init_from: {why}", "why"_a = e.message()),
                tr("train with the model settings of {folder}/config.yaml: its heads, width, layers and vocabulary",
                   "folder"_a = folder));
  }
  read_weights(file, parameters);
}

void write_weights(const std::string& path, const Parameters& parameters) {
  std::map<std::string, Tensor> tensors;
  for (size_t i = 0; i < parameters.entries().size(); ++i) tensors[parameters.entries()[i].name] = parameters.values(i);
  write_safetensors(path, tensors);
}

}  // namespace qkv
