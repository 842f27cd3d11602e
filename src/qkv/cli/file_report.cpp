// Reads array files piece by piece: memory does not grow with the file (deflated arrays of an .npz apart).
#include "qkv/cli/file_report.h"

#include <algorithm>
#include <filesystem>

#include "qkv/io/file.h"
#include "qkv/io/npy.h"
#include "qkv/io/npz.h"
#include "qkv/io/safetensors.h"

namespace qkv::cli {
namespace {

constexpr uint64_t kPiece = 1 << 20;

// Statistics of `bytes` bytes that read(offset, out) delivers.
template <class Read>
Statistics streamed(Dtype type, uint64_t bytes, Read&& read) {
  Statistics statistics;
  std::vector<std::byte> piece(std::min(bytes, kPiece));
  for (uint64_t at = 0; at < bytes; at += kPiece) {
    const auto part = std::span(piece).first(std::min(kPiece, bytes - at));
    read(at, part);
    statistics.add(type, part);
  }
  return statistics;
}

void report_npy(FileReport& report) {
  const InputFile file(report.path);
  const auto read = [&](uint64_t offset, std::span<std::byte> out) { file.read(offset, out); };
  const NpyHeader header = read_npy_header(report.path, file.size(), read);
  const auto read_data = [&](uint64_t offset, std::span<std::byte> out) { file.read(header.data_offset + offset, out); };
  report.bytes = file.size();
  const Statistics statistics = streamed(header.dtype, header.data_bytes, read_data);
  report.arrays.push_back({"", dtype_name(header.dtype), header.shape, header.data_bytes, statistics});
}

void report_npz(FileReport& report) {
  report.bytes = InputFile(report.path).size();
  const NpzFile file(report.path);
  for (const std::string& name : file.names()) {
    const Array array = file.array(name);
    Statistics statistics;
    statistics.add(array.dtype(), array.bytes());
    report.arrays.push_back({name, dtype_name(array.dtype()), array.shape(), array.bytes().size(), statistics});
  }
}

void report_safetensors(FileReport& report) {
  const SafetensorsFile file(report.path);
  report.bytes = file.file_size();
  report.metadata = file.metadata();
  if (report.metadata.contains("qkv.checkpoint")) report.kind = "checkpoint";
  for (const std::string& name : file.names()) {
    const SafetensorsInfo& info = file.info(name);
    ArrayReport array{name, info.dtype ? dtype_name(*info.dtype) : info.type, info.shape, info.bytes, {}};
    if (info.dtype)
      array.statistics =
          streamed(*info.dtype, info.bytes, [&](uint64_t offset, std::span<std::byte> out) { file.read(name, offset, out); });
    report.arrays.push_back(std::move(array));
  }
}

}  // namespace

bool is_array_file(const std::string& path) { return path.ends_with(".npy") || path.ends_with(".npz") || path.ends_with(".safetensors"); }

FileReport report_file(const std::string& path) {
  FileReport report{path, "", 0, {}, {}};
  if (!is_array_file(path)) {
    const InputFile file(path);  // a missing file is said to be missing first
    fail(path, ": not a kind of file that qkv knows, expected .npy, .npz or .safetensors");
  }
  report.kind = path.substr(path.rfind('.') + 1);
  if (report.kind == "npy") report_npy(report);
  else if (report.kind == "npz") report_npz(report);
  else report_safetensors(report);
  return report;
}

std::vector<std::string> files_of(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  try {
    for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied), end; at != end; ++at) {
      const bool hidden = at->path().filename().string().starts_with('.');
      if (hidden) at.disable_recursion_pending();
      else if (at->is_regular_file()) paths.push_back(at->path().string());
    }
  } catch (const fs::filesystem_error& error) {
    fail("cannot read folder ", folder, ": ", error.code().message());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace qkv::cli
