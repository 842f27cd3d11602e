// The weights of a model as a file: written without anything else, and checked against the model before memory is
// taken.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/io/safetensors.h"
#include "qkv/nn/module.h"

namespace QKV_API qkv {

/// Fails, naming the first difference, unless the file has exactly these tensors; state of an optimizer or a callback
/// beside them is ignored, so a checkpoint will do.
void check_layout(const SafetensorsFile& file, const std::vector<NamedShape>& layout);
/// Copies the tensors of a file that was checked into the parameters.
void read_weights(const SafetensorsFile& file, const Parameters& parameters);
/// What loading by name did: parameters that the source lacks, which keep their values, and tensors of the source that
/// the model lacks.
struct LoadedByName {
  std::vector<std::string> fresh, dropped;
};
/// The weights of a file, by name, into the parameters. A tensor of another shape is refused before anything is read.
/// Those named in `anew` keep their values.
LoadedByName load_by_name(const SafetensorsFile& file, const Parameters& parameters,
                          const std::set<std::string>& anew = {});
/// Writes the parameters by name.
void write_weights(const std::string& path, const Parameters& parameters);

}  // namespace qkv
