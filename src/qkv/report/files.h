// The contents of an array file: types, shapes and statistics, as text and JSON.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/counts.h"
#include "qkv/core/language.h"
#include "qkv/core/shape.h"
#include "qkv/io/array.h"

namespace QKV_API qkv {
namespace report {

struct ArrayReport {
  std::string name;  // empty for the only array of an .npy
  std::string type;
  Shape shape;
  uint64_t bytes = 0;
  std::optional<Statistics> statistics;  // absent for types that cannot be read
};

struct FileReport {
  std::string path;
  std::string kind;  // "npy", "npz", "safetensors", "checkpoint"; "file" for another file in a folder
  uint64_t bytes = 0;
  std::vector<ArrayReport> arrays;
  std::map<std::string, std::string> metadata;
};

/// True for names that end in .npy, .npz or .safetensors.
bool is_array_file(const std::string& path);

/// Reads a whole array file; fails for any other kind of file.
FileReport report_file(const std::string& path);

/// A line for the file and one for every array, "  w  (2, 3)  float32  min ...", then the metadata.
std::string to_text(const FileReport& report, Language language);
/// {"path": "w.npy", "kind": "npy", "bytes": 152, "arrays": [{"name": "", "dtype": "float32", ...}], "metadata": {}}
std::string to_json(const FileReport& report);

/// The files of a folder and its subfolders in ascending order; hidden ones are left out.
std::vector<std::string> files_of(const std::string& folder);

}  // namespace report
}  // namespace qkv
