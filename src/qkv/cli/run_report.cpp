// Run folders: settings from config.yaml, losses from metrics.jsonl, sizes from the headers of weight files.
#include "qkv/cli/run_report.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/cli/terminal.h"
#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/io/safetensors.h"
#include "qkv/report/files.h"
#include "qkv/run/run_folder.h"
#include "qkv/tasks/translation/data.h"
#include "qkv/train/checkpoint.h"

namespace qkv::cli {
namespace {

namespace fs = std::filesystem;

// A last line that a kill cut off does not count.
void read_metrics(RunReport& report) {
  std::ifstream lines(report.path + "/metrics.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("kind") || entry["kind"] != "epoch") continue;
    const auto number = [&](const char* key) {
      const auto found = entry.find(key);
      return found != entry.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
    };
    report.epochs = static_cast<int64_t>(number("epoch").value_or(0));
    report.loss = number("loss"), report.valid_loss = number("valid_loss");
    if (!report.valid_loss || (report.lowest_valid_loss && *report.valid_loss >= *report.lowest_valid_loss)) continue;
    report.lowest_valid_loss = report.valid_loss, report.lowest_epoch = report.epochs;
  }
}

// A checkpoint has the optimizer's tensors beside the model's.
void read_weights(RunReport& report) {
  if (const std::string last = report.path + "/checkpoints/last.safetensors"; fs::exists(last)) {
    const SafetensorsFile file(last);
    const auto ended = file.metadata().find("ended");
    report.ended_early = ended != file.metadata().end() && ended->second == "1";
  }
  for (const char* name : {"model.safetensors", "checkpoints/best.safetensors", "checkpoints/last.safetensors"}) {
    if (!fs::exists(report.path + "/" + name)) continue;
    report.weights = name;
    const SafetensorsFile file(report.path + "/" + name);
    for (const std::string& tensor : file.names())
      if (is_weight(tensor))
        report.parameters += static_cast<uint64_t>(file.info(tensor).shape.numel());
    return;
  }
}

}  // namespace

void note_unfinished(const std::string& folder, bool quiet) {
  const std::string weights = run_weights(folder);
  if (!quiet && !weights.ends_with("/model.safetensors"))
    fmt::print(stderr, "qkv: note: the run is not finished; its weights so far are used: {}\n", printable(weights));
}

bool is_run_folder(const std::string& folder) {
  std::error_code ignored;
  return fs::exists(folder + "/config.yaml", ignored) && fs::exists(folder + "/tokenizer.source.txt", ignored) &&
         fs::exists(folder + "/tokenizer.target.txt", ignored);
}

RunReport report_run(const std::string& folder) {
  RunReport report;
  report.path = folder;
  report.config = read_run_config(folder + "/config.yaml");
  const Tokenizers tokenizers = load_tokenizers(folder);
  report.source_tokens = tokenizers.source.size(), report.target_tokens = tokenizers.target.size();
  read_metrics(report);
  read_weights(report);
  for (const std::string& path : report::files_of(folder)) {
    std::error_code gone;  // a training may be at work
    const uint64_t bytes = fs::file_size(path, gone);
    if (gone) continue;
    report.files.push_back({fs::path(path).lexically_relative(folder).string(), bytes});
    report.bytes += bytes;
  }
  return report;
}

std::string tokenizer_text(const TranslationDataConfig& d) {
  const bool lower = d.has_subwords() ? d.lowercase : d.tokenizer != TokenizerKind::spaces;
  return text(d.tokenizer, lower ? " of lower-cased text" : "", d.has_subwords() && d.normalize != Normalization::none ? text(", ", d.normalize) : "");
}

std::string data_text(const TranslationDataConfig& d) {
  const std::string files = d.built_in()      ? text("en-fr, the built-in corpus (", grouped(static_cast<uint64_t>(d.corpus_size)), " pairs)")
                            : d.pairs.empty() ? d.source + " and " + d.target
                                              : d.pairs;
  return files + (d.reverse ? ", from the second side into the first" : "");
}

}  // namespace qkv::cli
