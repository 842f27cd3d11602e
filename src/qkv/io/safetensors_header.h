// The JSON header of a safetensors file, parsed as a stream: only what the format defines is kept.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

struct SafetensorsHeader {
  struct Tensor {
    std::string type;
    std::vector<int64_t> shape;
    std::vector<uint64_t> offsets;  // begin and end in the data section
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

/// Parses it; every error message starts with `path`. Duplicate, missing and unknown names and values of the wrong kind
/// are errors.
SafetensorsHeader parse_safetensors_header(const std::string& path, std::string_view text);

}  // namespace qkv
