// qkv info: versions, CPU, kernels and threads; or what is in files and folders.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "qkv/cli/command.h"
#include "qkv/cli/file_report.h"
#include "qkv/cli/run_report.h"
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

std::string training_text(const RunReport& run) {
  std::string out = fmt::format("{} of {} epochs", run.epochs, run.config.training.epochs);
  if (run.ended_early) out += ", ended early";
  if (run.loss)
    out += fmt::format(", loss {:.4f}{}", *run.loss, run.config.training.loss == LossUnit::book ? " (the book's)" : "");
  if (run.valid_loss) out += fmt::format(", validation loss {:.4f}", *run.valid_loss);
  if (run.valid_loss != run.lowest_valid_loss)
    out += fmt::format(" (lowest {:.4f}, epoch {})", *run.lowest_valid_loss, run.lowest_epoch);
  return out;
}

void print_report(const RunReport& run) {
  fmt::print("{}: a run of qkv train\nmodel       {}\ndata        {}\n", printable(run.path),
             model_text(run.config.model), printable(data_text(run.config.data)));
  fmt::print("tokenizer   {}, vocabularies {} and {}\ntraining    {}\n", tokenizer_text(run.config.data),
             grouped(static_cast<uint64_t>(run.source_tokens)), grouped(static_cast<uint64_t>(run.target_tokens)),
             training_text(run));
  if (run.weights.empty())
    fmt::print("parameters  no weights are saved yet\n");
  else
    fmt::print("parameters  {} in {}\n", grouped(run.parameters), run.weights);
  fmt::print("files       {}, {}\n", run.files.size(), counted(run.bytes, "byte", "bytes"));
  size_t width = 0;
  for (const RunFile& file : run.files) width = std::max(width, printable(file.name).size());
  for (const RunFile& file : run.files)
    fmt::print("  {:<{}}  {:>{}}\n", printable(file.name), width, grouped(file.bytes), grouped(run.bytes).size());
}

Json report_json(const RunReport& run) {
  const TranslationModelConfig& m = run.config.model;
  const TranslationDataConfig& d = run.config.data;
  Json model = {{"kind", name_of(m.kind)}, {"attention", name_of(m.scorer())}, {"layers", m.layers}, {"hidden", m.hidden}};
  if (m.kind == ModelKind::transformer)
    model.update({{"decoder_layers", m.decoder_layers > 0 ? m.decoder_layers : m.layers},
                  {"heads", m.heads},
                  {"ffn", m.ffn},
                  {"positions", name_of(m.positions)},
                  {"norm", name_of(m.norm)}});
  else
    model.update({{"cell", name_of(m.cell)}, {"embed", m.embed}, {"bidirectional", m.bidirectional}});
  Json training = {
      {"epochs", run.config.training.epochs}, {"epochs_done", run.epochs}, {"ended_early", run.ended_early}};
  if (run.loss) training["loss"] = *run.loss;
  if (run.valid_loss) training["valid_loss"] = *run.valid_loss;
  if (run.lowest_valid_loss) training["lowest_valid_loss"] = *run.lowest_valid_loss;
  Json files = Json::array();
  for (const RunFile& file : run.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return {{"path", run.path},
          {"kind", "run"},
          {"bytes", run.bytes},
          {"model", model},
          {"data", {{"pairs", d.pairs}, {"source", d.source}, {"target", d.target}, {"reverse", d.reverse}}},
          {"tokenizer",
           {{"kind", name_of(d.tokenizer)},
            {"lowercase", d.has_subwords() ? d.lowercase : d.tokenizer != TokenizerKind::spaces},
            {"normalize", name_of(d.has_subwords() ? d.normalize : Normalization::none)},
            {"source_tokens", run.source_tokens}, {"target_tokens", run.target_tokens}}},
          {"training", training},
          {"weights", run.weights},
          {"parameters", run.parameters},
          {"files", files}};
}

class Info : public Command {
 public:
  std::string name() const override { return "info"; }
  Text summary() const override {
    return {"versions, CPU, kernels and threads; or what is in array files, checkpoints and folders",
            "版本、CPU、内核与线程；或数组文件、检查点与文件夹的内容"};
  }
  std::string example() const override { return "qkv info model.safetensors\n  qkv info runs/bahdanau"; }
  void bind(Options& options) override {
    options.positionals("FILE", {".npy, .npz or .safetensors files, or folders", ".npy、.npz、.safetensors 文件或文件夹"}, paths_);
    options.flag("--all", {"of folders that qkv train wrote: every array of every file, in place of a summary",
                           "对 qkv train 输出的文件夹：列出每个文件的每个数组，而不是摘要"}, all_);
    options.flag("--json", {"print JSON", "输出 JSON"}, json_);
  }

  int run(const Global&) override {
    if (paths_.empty()) {
      print_system(json_);
      return 0;
    }
    for (const std::string& path : paths_) {
      std::error_code ignored;
      if (!std::filesystem::is_directory(path, ignored)) add(path, [&] { return report_file(path); });
      else if (!all_ && is_run_folder(path)) add(path, [&] { return report_run(path); });
      else report_folder(path);
    }
    if (json_) print_json({{"files", files_}});
    return failed_ ? 1 : 0;
  }

 private:
  void report_folder(const std::string& folder) {
    const std::vector<std::string> files = files_of(folder);
    if (!json_) fmt::print("{}: {}\n", printable(folder), counted(files.size(), "file", "files"));
    std::set<std::string> runs;
    for (const std::string& path : files) {
      const std::string run = all_ ? "" : run_of(path, folder);
      if (run.empty())
        add(path, [&] { return is_array_file(path) ? report_file(path) : FileReport{path, "file", InputFile(path).size(), {}, {}}; });
      else if (runs.insert(run).second)
        add(run, [&] { return report_run(run); });
    }
  }

  // The run inside `folder` that a file belongs to, or nothing.
  static std::string run_of(const std::string& path, const std::string& folder) {
    for (auto at = std::filesystem::path(path).parent_path(); at.native().size() > folder.size(); at = at.parent_path())
      if (is_run_folder(at.string())) return at.string();
    return "";
  }

  // One bad file does not hide the others; the exit code remembers it.
  template <class MakeReport>
  void add(const std::string& path, MakeReport&& make_report) {
    try {
      const auto report = make_report();
      if (json_) files_.push_back(report_json(report));
      else print_report(report);
    } catch (const Error& error) {
      if (json_) files_.push_back({{"path", path}, {"error", error.what()}});
      print_error(error.what(), error.hint());
      failed_ = true;
    }
  }

  std::vector<std::string> paths_;
  bool all_ = false, json_ = false, failed_ = false;
  Json files_ = Json::array();
};

}  // namespace

std::unique_ptr<Command> info_command() { return std::make_unique<Info>(); }

}  // namespace qkv::cli
