// Names and shapes checked before anything is read.
#include "qkv/nn/save.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/io/safetensors.h"

namespace qkv::detail {
namespace {

// "a", or "a" and 2 more.
std::string first_of(const std::vector<std::string>& names) {
  const std::string more = names.size() > 1 ? text(", and ", names.size() - 1, " more") : "";
  return text("\"", names.front(), "\"", more);
}

void check_tensors(const SafetensorsFile& file, const std::vector<NamedTensor>& tensors) {
  std::set<std::string> known;
  std::vector<std::string> missing, unexpected;
  for (const NamedTensor& t : tensors) {
    known.insert(t.name);
    if (!file.has(t.name)) missing.push_back(t.name);
  }
  for (const std::string& name : file.names())
    if (!known.contains(name)) unexpected.push_back(name);
  if (!missing.empty())
    throw Error(text(file.path(), ": lacks tensors of the model: ", first_of(missing)),
                unexpected.empty() ? "" : text("it has some that the model lacks: ", first_of(unexpected)));
  check(unexpected.empty(), file.path(),
        ": has tensors that the model lacks: ", unexpected.empty() ? "" : first_of(unexpected));
  for (const NamedTensor& t : tensors)
    check(file.info(t.name).shape == t.tensor.shape(), file.path(), ": \"", t.name, "\" has shape ",
          file.info(t.name).shape, ", in the model ", t.tensor.shape());
}

}  // namespace

void save_tensors(const std::vector<NamedTensor>& tensors, const std::string& path,
                  const std::map<std::string, std::string>& metadata) {
  std::map<std::string, Tensor> all;
  for (const NamedTensor& t : tensors)
    check(all.emplace(t.name, t.tensor).second, "[save] visit() names two tensors \"", t.name, "\"");
  write_safetensors(path, all, metadata);
}

std::map<std::string, std::string> load_tensors(const std::vector<NamedTensor>& tensors, const std::string& path) {
  const SafetensorsFile file(path);
  check_tensors(file, tensors);
  std::vector<Tensor> read;
  for (const NamedTensor& t : tensors) read.push_back(file.tensor(t.name));
  for (size_t i = 0; i < tensors.size(); ++i)
    std::copy_n(read[i].ptr(), read[i].numel(), detail::writable(tensors[i].tensor));
  return file.metadata();
}

}  // namespace qkv::detail
