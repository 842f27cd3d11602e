// Reads array files piece by piece: memory does not grow with the file (except for deflated arrays of an .npz).
#include "qkv/report/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "qkv/core/numbers.h"
#include "qkv/core/system_reason.h"
#include "qkv/data/text.h"
#include "qkv/io/file.h"
#include "qkv/io/npy.h"
#include "qkv/io/npz.h"
#include "qkv/io/safetensors.h"

namespace qkv::report {
namespace {

constexpr uint64_t kPiece = 1 << 20;

// Statistics of `bytes` bytes that read(offset, out) provides.
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
  const auto read_data = [&](uint64_t offset, std::span<std::byte> out) {
    file.read(header.data_offset + offset, out);
  };
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
      array.statistics = streamed(*info.dtype, info.bytes,
                                  [&](uint64_t offset, std::span<std::byte> out) { file.read(name, offset, out); });
    report.arrays.push_back(std::move(array));
  }
}

std::string statistics_text(const ArrayReport& array, Language language) {
  if (!array.statistics) return tr("cannot be read").in(language);
  const Statistics& s = *array.statistics;
  std::string out;
  if (s.finite() > 0)
    out = tr("min {min:.6g}  max {max:.6g}  mean {mean:.6g}  sd {sd:.6g}", "min"_a = s.min(), "max"_a = s.max(),
             "mean"_a = s.mean(), "sd"_a = s.deviation())
              .in(language);
  if (s.nan() > 0) out += fmt::format("{}NaN {}", out.empty() ? "" : "  ", grouped(static_cast<uint64_t>(s.nan())));
  if (s.infinite() > 0)
    out += fmt::format("{}inf {}", out.empty() ? "" : "  ", grouped(static_cast<uint64_t>(s.infinite())));
  return out.empty() ? tr("empty").in(language) : out;
}

std::string printed(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);  // a name may contain any bytes
}

}  // namespace

bool is_array_file(const std::string& path) {
  return path.ends_with(".npy") || path.ends_with(".npz") || path.ends_with(".safetensors");
}

FileReport report_file(const std::string& path) {
  FileReport report{path, "", 0, {}, {}};
  if (!is_array_file(path)) {
    const InputFile file(path);  // a missing file is reported as missing
    refuse("{path}: unknown kind of file, expected .npy, .npz or .safetensors", "path"_a = path);
  }
  report.kind = path.substr(path.rfind('.') + 1);
  if (report.kind == "npy")
    report_npy(report);
  else if (report.kind == "npz")
    report_npz(report);
  else
    report_safetensors(report);
  return report;
}

std::string to_text(const FileReport& report, Language language) {
  if (report.kind == "file")
    return tr("{file}: {bytes}", "file"_a = printable(report.path), "bytes"_a = byte_count(report.bytes)).in(language) +
           "\n";
  uint64_t elements = 0;
  size_t name_width = 0, shape_width = 0;
  for (const ArrayReport& array : report.arrays) {
    elements += static_cast<uint64_t>(array.shape.numel());
    name_width = std::max(name_width, std::min<size_t>(printable(array.name).size(), 40));
    shape_width = std::max(shape_width, array.shape.str().size());
  }
  const uint64_t arrays = report.arrays.size();
  const Text array_count = arrays == 1 ? tr("1 array") : tr("{arrays} arrays", "arrays"_a = grouped(arrays));
  const Text element_count =
      elements == 1 ? tr("1 element") : tr("{elements} elements", "elements"_a = grouped(elements));
  std::string out =
      tr("{file}: {kind}, {arrays}, {elements}, {bytes}\n", "file"_a = printable(report.path), "kind"_a = report.kind,
         "arrays"_a = array_count, "elements"_a = element_count, "bytes"_a = byte_count(report.bytes))
          .in(language);
  for (const ArrayReport& array : report.arrays)
    out += fmt::format("  {:<{}}{}{:<{}}  {:<7}  {}\n", printable(array.name), name_width, name_width ? "  " : "",
                       array.shape.str(), shape_width, array.type, statistics_text(array, language));
  for (const auto& [key, value] : report.metadata) out += fmt::format("  {} = {}\n", printable(key), printable(value));
  return out;
}

std::string to_json(const FileReport& report) {
  using Json = nlohmann::ordered_json;
  Json json = {{"path", report.path}, {"kind", report.kind}, {"bytes", report.bytes}};
  if (report.kind == "file") return printed(json);
  Json arrays = Json::array();
  for (const ArrayReport& array : report.arrays) {
    Json row = {{"name", array.name},
                {"dtype", array.type},
                {"shape", std::vector<int64_t>(array.shape.begin(), array.shape.end())},
                {"bytes", array.bytes}};
    if (array.statistics) {
      const Statistics& s = *array.statistics;
      if (s.finite() > 0) row.update({{"min", s.min()}, {"max", s.max()}, {"mean", s.mean()}, {"sd", s.deviation()}});
      row.update({{"nan", s.nan()}, {"inf", s.infinite()}});
    }
    arrays.push_back(std::move(row));
  }
  json["arrays"] = std::move(arrays);
  json["metadata"] = report.metadata;
  return printed(json);
}

std::vector<std::string> files_of(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  try {
    for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied), end; at != end;
         ++at) {
      const bool hidden = at->path().filename().string().starts_with('.');
      if (hidden)
        at.disable_recursion_pending();
      else if (at->is_regular_file())
        paths.push_back(at->path().string());
    }
  } catch (const fs::filesystem_error& error) {
    refuse("cannot read folder {folder}: {message}", "folder"_a = folder,
           "message"_a = system_reason(error.code().value()));
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace qkv::report
