// qkv info: versions, CPU, kernels and threads; or what is in files and folders.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/cli/command.h"
#include "qkv/cli/file_report.h"
#include "qkv/cli/terminal.h"
#include "qkv/core/parallel.h"
#include "qkv/core/version.h"
#include "qkv/data/subwords.h"
#include "qkv/data/text.h"
#include "qkv/io/file.h"
#include "qkv/io/npz.h"
#include "qkv/kernels/target.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string cpu_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("model name") && line.find(": ") != std::string::npos) return line.substr(line.find(": ") + 2);
  utsname machine{};
  return ::uname(&machine) == 0 ? machine.machine : "unknown";
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

std::vector<std::string> libraries() {
  return {kernels::simd_library(),
          thread_library(),
          zip_library(),
          unicode_library(),
          subword_library(),
          option_library(),
          fmt::format("fmt {}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100),
          fmt::format("nlohmann-json {}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)};
}

void print_json(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));  // a name may be any bytes
}

void print_system(bool as_json) {
  const auto targets = kernels::available_targets();
  const std::string running = kernels::running_target();
  if (as_json) {
    Json versions = Json::object();
    for (const std::string& library : libraries()) versions[library.substr(0, library.find(' '))] = library.substr(library.find(' ') + 1);
    return print_json({{"qkv", version()},
                       {"compiler", compiler()},
                       {"libraries", versions},
                       {"cpu", cpu_name()},
                       {"kernels", {{"running", running}, {"available", targets}}},
                       {"threads", threads()}});
  }
  fmt::print("qkv        {}\ncompiler   {}\nlibraries  {}\n", version(), compiler(), fmt::join(libraries(), ", "));
  fmt::print("cpu        {}\nkernels    {} (available: {})\nthreads    {}\n", printable(cpu_name()), running, fmt::join(targets, ", "),
             threads());
}

std::string counted(uint64_t count, const char* one, const char* many) { return grouped(count) + " " + (count == 1 ? one : many); }

std::string statistics_text(const ArrayReport& array) {
  if (!array.statistics) return "not readable here";
  const Statistics& s = *array.statistics;
  std::string out;
  if (s.finite() > 0) out = fmt::format("min {:.6g}  max {:.6g}  mean {:.6g}  sd {:.6g}", s.min(), s.max(), s.mean(), s.deviation());
  if (s.nan() > 0) out += fmt::format("{}NaN {}", out.empty() ? "" : "  ", grouped(static_cast<uint64_t>(s.nan())));
  if (s.infinite() > 0) out += fmt::format("{}inf {}", out.empty() ? "" : "  ", grouped(static_cast<uint64_t>(s.infinite())));
  return out.empty() ? "empty" : out;
}

void print_report(const FileReport& report) {
  if (report.kind == "file") return fmt::print("{}: {}\n", printable(report.path), counted(report.bytes, "byte", "bytes"));
  uint64_t elements = 0;
  size_t name_width = 0, shape_width = 0;
  for (const ArrayReport& array : report.arrays) {
    elements += static_cast<uint64_t>(array.shape.numel());
    name_width = std::max(name_width, std::min<size_t>(printable(array.name).size(), 40));
    shape_width = std::max(shape_width, array.shape.str().size());
  }
  fmt::print("{}: {}, {}, {}, {}\n", printable(report.path), report.kind, counted(report.arrays.size(), "array", "arrays"),
             counted(elements, "element", "elements"), counted(report.bytes, "byte", "bytes"));
  for (const ArrayReport& array : report.arrays)
    fmt::print("  {:<{}}{}{:<{}}  {:<7}  {}\n", printable(array.name), name_width, name_width ? "  " : "", array.shape.str(), shape_width,
               array.type, statistics_text(array));
  for (const auto& [key, value] : report.metadata) fmt::print("  {} = {}\n", printable(key), printable(value));
}

Json report_json(const FileReport& report) {
  Json json = {{"path", report.path}, {"kind", report.kind}, {"bytes", report.bytes}};
  if (report.kind == "file") return json;
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
  return json;
}

class Info : public Command {
 public:
  std::string name() const override { return "info"; }
  Text summary() const override {
    return {"versions, CPU, kernels and threads; or what is in array files, checkpoints and folders",
            "版本、CPU、内核与线程；或数组文件、检查点与文件夹的内容"};
  }
  std::string example() const override { return "qkv info model.safetensors"; }
  void bind(Options& options) override {
    options.positionals("FILE", {".npy, .npz or .safetensors files, or folders", ".npy、.npz、.safetensors 文件或文件夹"}, paths_);
    options.flag("--json", {"print JSON", "输出 JSON"}, json_);
  }

  int run(const Global&) override {
    if (paths_.empty()) {
      print_system(json_);
      return 0;
    }
    for (const std::string& path : paths_) {
      std::error_code ignored;
      if (std::filesystem::is_directory(path, ignored)) report_folder(path);
      else add(path, [&] { return report_file(path); });
    }
    if (json_) print_json({{"files", files_}});
    return failed_ ? 1 : 0;
  }

 private:
  void report_folder(const std::string& folder) {
    const std::vector<std::string> files = files_of(folder);
    if (!json_) fmt::print("{}: {}\n", printable(folder), counted(files.size(), "file", "files"));
    for (const std::string& path : files)
      add(path, [&] {
        return is_array_file(path) ? report_file(path) : FileReport{path, "file", InputFile(path).size(), {}, {}};
      });
  }

  // One bad file does not hide the others; the exit code remembers it.
  template <class MakeReport>
  void add(const std::string& path, MakeReport&& make_report) {
    try {
      const FileReport report = make_report();
      if (json_) files_.push_back(report_json(report));
      else print_report(report);
    } catch (const Error& error) {
      if (json_) files_.push_back({{"path", path}, {"error", error.what()}});
      print_error(error.what(), error.hint());
      failed_ = true;
    }
  }

  std::vector<std::string> paths_;
  bool json_ = false, failed_ = false;
  Json files_ = Json::array();
};

}  // namespace

std::unique_ptr<Command> info_command() { return std::make_unique<Info>(); }

}  // namespace qkv::cli
