// Models as files: every tensor that visit() names, by its dotted name, in one safetensors file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/nn/module.h"

namespace QKV_API qkv {

namespace detail {

/// Every tensor of a module that has values, a tied one once.
template <Module M>
std::vector<NamedTensor> tensors_of(M module) {
  std::vector<NamedTensor> list;
  std::set<const float*> seen;
  each_tensor(module, [&](const std::string& name, Tensor& t) {
    if (t.numel() == 0 || seen.insert(t.ptr()).second) list.push_back({name, t});
  });
  return list;
}

void save_tensors(const std::vector<NamedTensor>& tensors, const std::string& path,
                  const std::map<std::string, std::string>& metadata);
std::map<std::string, std::string> load_tensors(const std::vector<NamedTensor>& tensors, const std::string& path);

}  // namespace detail

/// Writes the tensors of a model, and whatever else should be remembered, to a file. An older file is replaced in one
/// step: it is the old one or the new one, whatever happens.
template <Module M>
void save(const M& model, const std::string& path, const std::map<std::string, std::string>& metadata = {}) {
  detail::save_tensors(detail::tensors_of(model), path, metadata);
}

/// Reads the tensors of a model from such a file, into the memory that it has, and returns the file's metadata. Names
/// and shapes must be the model's, no more and no fewer; they are checked first, and the model changes only if all of
/// them fit.
template <Module M>
std::map<std::string, std::string> load(M& model, const std::string& path) {
  return detail::load_tensors(detail::tensors_of(model), path);
}

}  // namespace qkv
