// Run folders: settings from config.yaml, losses from metrics.jsonl, sizes from the headers of weight files.
#include "qkv/report/runs.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/io/safetensors.h"
#include "qkv/report/files.h"
#include "qkv/train/checkpoint.h"

namespace qkv::report {
namespace {

namespace fs = std::filesystem;

// A last line that was cut off by a kill is ignored.
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
    report.loss = number("loss");
    report.valid_loss = number("valid_loss");
    report.valid_accuracy = number("valid_accuracy");
    if (!report.valid_loss || (report.lowest_valid_loss && *report.valid_loss >= *report.lowest_valid_loss)) continue;
    report.lowest_valid_loss = report.valid_loss;
    report.lowest_epoch = report.epochs;
  }
}

// A checkpoint has the optimizer's tensors in addition to the model's.
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
      if (is_weight(tensor)) report.parameters += static_cast<uint64_t>(file.info(tensor).shape.numel());
    return;
  }
}

Text training_text(const RunReport& run) {
  Text out = tr("{done} of {all} epochs", "done"_a = run.epochs, "all"_a = run.config.training().epochs);
  if (run.ended_early) out = tr("{before}, ended early", "before"_a = out);
  if (run.loss && run.facts.book_loss)
    out = tr("{before}, loss {loss:.4f} (the book's)", "before"_a = out, "loss"_a = *run.loss);
  else if (run.loss)
    out = tr("{before}, loss {loss:.4f}", "before"_a = out, "loss"_a = *run.loss);
  if (run.valid_loss) out = tr("{before}, validation loss {loss:.4f}", "before"_a = out, "loss"_a = *run.valid_loss);
  if (run.valid_loss != run.lowest_valid_loss)
    out = tr("{before} (lowest {loss:.4f}, epoch {epoch})", "before"_a = out, "loss"_a = *run.lowest_valid_loss,
             "epoch"_a = run.lowest_epoch);
  if (run.valid_accuracy)
    out = tr("{before}, accuracy {accuracy:.4f}", "before"_a = out, "accuracy"_a = *run.valid_accuracy);
  return out;
}

Text start_text(const TrainingStart& start) {
  const Text from = tr("started     from {folder} ({model})\n", "folder"_a = printable(start.folder),
                       "model"_a = printable(start.model));
  return start.licence.empty()
             ? from
             : tr("{from}licence     {licence}\n", "from"_a = from, "licence"_a = printable(start.licence));
}

}  // namespace

bool is_run_folder(const std::string& folder) { return task_in(folder).has_value(); }

RunReport report_run(const std::string& folder) {
  RunReport report;
  report.path = folder;
  report.config = read_folder_config(folder);
  report.facts = std::visit([&](const auto& config) { return run_facts(config, folder); }, report.config.of);
  report.start = read_start(folder);
  read_metrics(report);
  read_weights(report);
  for (const std::string& path : files_of(folder)) {
    std::error_code gone;  // another process may be training
    const uint64_t bytes = fs::file_size(path, gone);
    if (gone) continue;
    report.files.push_back({fs::path(path).lexically_relative(folder).string(), bytes});
    report.bytes += bytes;
  }
  return report;
}

RunReport report_pretrained_as_run(const std::string& folder) {
  RunReport report;
  report.path = folder;
  report.config = read_folder_config(folder);
  report.facts.model = std::visit([](const auto& config) { return config.facts().summary; }, report.config.of);
  const PretrainedSource source = pretrained_source(folder);
  report.parameters = static_cast<uint64_t>(count_values(*source.weights, source.table));
  const std::vector<std::string> names = source.weights->names();
  if (!names.empty()) report.weights = fs::path(source.weights->path(names.front())).filename().string();
  return report;
}

std::string to_text(const RunReport& run, Language language) {
  std::string out = tr("{folder}: a run of qkv train\nmodel       {model}\n", "folder"_a = printable(run.path),
                       "model"_a = run.facts.model)
                        .in(language);
  for (const Text& line : run.facts.lines) out += line.in(language);
  if (run.start) out += start_text(*run.start).in(language);
  out += tr("training    {training}\n", "training"_a = training_text(run)).in(language);
  const Text weights = run.weights.empty() ? tr("parameters  no weights are saved yet\n")
                                           : tr("parameters  {count} in {file}\n", "count"_a = grouped(run.parameters),
                                                "file"_a = run.weights);
  const Text files =
      tr("files       {files}, {bytes}\n", "files"_a = run.files.size(), "bytes"_a = byte_count(run.bytes));
  out += weights.in(language) + files.in(language);
  size_t width = 0;
  for (const RunFile& file : run.files) width = std::max(width, printable(file.name).size());
  for (const RunFile& file : run.files)
    out +=
        fmt::format("  {:<{}}  {:>{}}\n", printable(file.name), width, grouped(file.bytes), grouped(run.bytes).size());
  return out;
}

std::string to_json(const RunReport& run) {
  using Json = nlohmann::ordered_json;
  RunConfig config = run.config;
  const Settings settings = config.settings();
  Json json = {{"path", run.path}, {"kind", "run"}, {"bytes", run.bytes}};
  for (const Setting& setting : settings.all())
    if (setting.block == "model")
      json["model"][setting.key] = Json::accept(setting.get()) ? Json::parse(setting.get()) : Json(setting.get());
  json.update(Json::parse(run.facts.json), true);
  Json training = {
      {"epochs", run.config.training().epochs}, {"epochs_done", run.epochs}, {"ended_early", run.ended_early}};
  if (run.start) {
    training["started_from"] = {
        {"folder", run.start->folder}, {"model", run.start->model}, {"sha256", run.start->sha256}};
    if (!run.start->licence.empty()) training["started_from"]["licence"] = run.start->licence;
  }
  if (run.loss) training["loss"] = *run.loss;
  if (run.valid_loss) training["valid_loss"] = *run.valid_loss;
  if (run.valid_accuracy) training["valid_accuracy"] = *run.valid_accuracy;
  if (run.lowest_valid_loss) training["lowest_valid_loss"] = *run.lowest_valid_loss;
  Json files = Json::array();
  for (const RunFile& file : run.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  json["training"] = training;
  json["weights"] = run.weights;
  json["parameters"] = run.parameters;
  json["files"] = files;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace qkv::report
