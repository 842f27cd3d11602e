// qkv info: versions, CPU, kernels and threads; or the contents of files and folders.
#include <fmt/format.h>
#include <sys/utsname.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "qkv/cli/command.h"
#include "qkv/cli/machine.h"
#include "qkv/cli/terminal.h"
#include "qkv/core/counts.h"
#include "qkv/core/numbers.h"
#include "qkv/core/parallel.h"
#include "qkv/core/version.h"
#include "qkv/data/subwords.h"
#include "qkv/data/text.h"
#include "qkv/io/file.h"
#include "qkv/io/npz.h"
#include "qkv/kernels/target.h"
#include "qkv/report/pretrained.h"
#include "qkv/report/runs.h"

namespace qkv::cli {
namespace {

using Json = nlohmann::ordered_json;

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
          fmt::format("nlohmann-json {}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                      NLOHMANN_JSON_VERSION_PATCH)};
}

void print_json(const Json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));  // a name may contain any bytes
}

void print_system(bool as_json, Language language) {
  const auto targets = kernels::available_targets();
  const std::string running = kernels::running_target();
  if (as_json) {
    Json versions = Json::object();
    for (const std::string& library : libraries())
      versions[library.substr(0, library.find(' '))] = library.substr(library.find(' ') + 1);
    return print_json({{"qkv", version()},
                       {"compiler", compiler()},
                       {"libraries", versions},
                       {"cpu", cpu_name()},
                       {"kernels", {{"running", running}, {"available", targets}}},
                       {"threads", threads()}});
  }
  const Text rows = tr(
      "qkv        {version}\ncompiler   {compiler}\nlibraries  {libraries}\ncpu        {cpu}\n"
      "kernels    {running} (available: {targets})\nthreads    {threads}\n",
      "version"_a = version(), "compiler"_a = compiler(), "libraries"_a = listed(libraries()),
      "cpu"_a = printable(cpu_name()), "running"_a = running, "targets"_a = listed(targets), "threads"_a = threads());
  fmt::print("{}", rows.in(language));
}

class Info : public Command {
 public:
  std::string name() const override { return "info"; }
  Text summary() const override {
    return tr("versions, CPU, kernels and threads; or the contents of array files, checkpoints and folders");
  }
  std::string example() const override { return "qkv info model.safetensors\n  qkv info runs/bahdanau"; }
  void bind(Options& options) override {
    options.positionals("FILE", tr(".npy, .npz or .safetensors files, or folders"), paths_);
    options.flag("--all",
                 tr("for folders that qkv train wrote, and pretrained ones: every array of every file instead of "
                    "a summary"),
                 all_);
    options.flag("--json", tr("print JSON"), json_);
  }

  int run(const Global& global) override {
    language_ = global.language;
    if (paths_.empty()) {
      print_system(json_, global.language);
      return 0;
    }
    for (const std::string& path : paths_) {
      std::error_code ignored;
      if (!std::filesystem::is_directory(path, ignored))
        add(path, [&] { return report::report_file(path); });
      else if (!all_ && is_pretrained_folder(path))
        add(path, [&] { return report::report_pretrained(path); });
      else if (!all_ && report::is_run_folder(path))
        add(path, [&] { return report::report_run(path); });
      else
        report_folder(path);
    }
    if (json_) print_json({{"files", files_}});
    return failed_ ? 1 : 0;
  }

 private:
  void report_folder(const std::string& folder) {
    const std::vector<std::string> files = report::files_of(folder);
    if (!json_)
      fmt::print(
          "{}\n",
          tr("{folder}: {files}", "folder"_a = printable(folder), "files"_a = file_count(files.size())).in(language_));
    std::set<std::string> runs;
    for (const std::string& path : files) {
      const std::string run = all_ ? "" : run_of(path, folder);
      if (run.empty())
        add(path, [&] {
          return report::is_array_file(path) ? report::report_file(path)
                                             : report::FileReport{path, "file", InputFile(path).size(), {}, {}};
        });
      else if (runs.insert(run).second)
        add(run, [&] { return report::report_run(run); });
    }
  }

  // The run inside `folder` that a file belongs to, or nothing.
  static std::string run_of(const std::string& path, const std::string& folder) {
    for (auto at = std::filesystem::path(path).parent_path(); at.native().size() > folder.size(); at = at.parent_path())
      if (report::is_run_folder(at.string())) return at.string();
    return "";
  }

  // One bad file does not hide the others, but it sets the exit code.
  template <class MakeReport>
  void add(const std::string& path, MakeReport&& make_report) {
    try {
      const auto report = make_report();
      if (json_)
        files_.push_back(Json::parse(to_json(report)));
      else
        fmt::print("{}", to_text(report, language_));
    } catch (const Error& error) {
      if (json_) files_.push_back({{"path", path}, {"error", error.what()}});
      print_error(error.message(), error.hint(), language_);
      failed_ = true;
    }
  }

  Language language_ = Language::en;
  std::vector<std::string> paths_;
  bool all_ = false, json_ = false, failed_ = false;
  Json files_ = Json::array();
};

}  // namespace

std::unique_ptr<Command> info_command() { return std::make_unique<Info>(); }

}  // namespace qkv::cli
