// qkv info: versions, CPU, kernels and threads; or what is in files and folders.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "qkv/cli/command.h"
#include "qkv/cli/run_report.h"
#include "qkv/cli/terminal.h"
#include "qkv/core/numbers.h"
#include "qkv/core/parallel.h"
#include "qkv/core/version.h"
#include "qkv/data/subwords.h"
#include "qkv/data/text.h"
#include "qkv/io/file.h"
#include "qkv/io/npz.h"
#include "qkv/kernels/target.h"
#include "qkv/report/files.h"

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

using report::counted;
using report::FileReport;
using report::to_json;
using report::to_text;

std::string training_text(const RunReport& run) {
  std::string out = fmt::format("{} of {} epochs", run.epochs, run.config.training.epochs);
  if (run.ended_early) out += ", ended early";
  if (run.loss)
    out += fmt::format(", loss {:.4f}{}", *run.loss, run.config.book.loss == LossUnit::book ? " (the book's)" : "");
  if (run.valid_loss) out += fmt::format(", validation loss {:.4f}", *run.valid_loss);
  if (run.valid_loss != run.lowest_valid_loss)
    out += fmt::format(" (lowest {:.4f}, epoch {})", *run.lowest_valid_loss, run.lowest_epoch);
  return out;
}

std::string to_text(const RunReport& run) {
  std::string out = fmt::format("{}: a run of qkv train\nmodel       {}\ndata        {}\n", printable(run.path),
                                run.config.facts().summary, printable(data_text(run.config.data)));
  out += fmt::format("tokenizer   {}, vocabularies {} and {}\ntraining    {}\n", tokenizer_text(run.config.data),
             grouped(static_cast<uint64_t>(run.source_tokens)), grouped(static_cast<uint64_t>(run.target_tokens)),
             training_text(run));
  if (run.weights.empty())
    out += fmt::format("parameters  no weights are saved yet\n");
  else
    out += fmt::format("parameters  {} in {}\n", grouped(run.parameters), run.weights);
  out += fmt::format("files       {}, {}\n", run.files.size(), counted(run.bytes, "byte", "bytes"));
  size_t width = 0;
  for (const RunFile& file : run.files) width = std::max(width, printable(file.name).size());
  for (const RunFile& file : run.files)
    out += fmt::format("  {:<{}}  {:>{}}\n", printable(file.name), width, grouped(file.bytes), grouped(run.bytes).size());
  return out;
}

std::string to_json(const RunReport& run) {
  const TranslationDataConfig& d = run.config.data;
  TranslationConfig config = run.config;
  const Settings settings = config.settings();
  Json model;
  for (const Setting& setting : settings.all())
    if (setting.block == "model") model[setting.key] = Json::accept(setting.get()) ? Json::parse(setting.get()) : Json(setting.get());
  if (model.contains("decoder_layers")) model["decoder_layers"] = config.facts().source_maps()->layers;  // a number, also where it is open
  Json training = {
      {"epochs", run.config.training.epochs}, {"epochs_done", run.epochs}, {"ended_early", run.ended_early}};
  if (run.loss) training["loss"] = *run.loss;
  if (run.valid_loss) training["valid_loss"] = *run.valid_loss;
  if (run.lowest_valid_loss) training["lowest_valid_loss"] = *run.lowest_valid_loss;
  Json files = Json::array();
  for (const RunFile& file : run.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  const Json json = {{"path", run.path},
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
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
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
      if (!std::filesystem::is_directory(path, ignored)) add(path, [&] { return report::report_file(path); });
      else if (!all_ && is_run_folder(path)) add(path, [&] { return report_run(path); });
      else report_folder(path);
    }
    if (json_) print_json({{"files", files_}});
    return failed_ ? 1 : 0;
  }

 private:
  void report_folder(const std::string& folder) {
    const std::vector<std::string> files = report::files_of(folder);
    if (!json_) fmt::print("{}: {}\n", printable(folder), counted(files.size(), "file", "files"));
    std::set<std::string> runs;
    for (const std::string& path : files) {
      const std::string run = all_ ? "" : run_of(path, folder);
      if (run.empty())
        add(path, [&] { return report::is_array_file(path) ? report::report_file(path) : FileReport{path, "file", InputFile(path).size(), {}, {}}; });
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
      if (json_) files_.push_back(Json::parse(to_json(report)));
      else fmt::print("{}", to_text(report));
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
