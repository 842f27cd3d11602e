// Loads by name, and writes down where the weights came from.
#include "qkv/tasks/pretrained/start.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "qkv/core/check.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/sha256.h"
#include "qkv/run/run_folder.h"
#include "qkv/tasks/pretrained/bert.h"
#include "qkv/tasks/pretrained/ctranslate2.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/gpt2.h"
#include "qkv/tasks/pretrained/llama.h"
#include "qkv/tasks/pretrained/llama2c.h"
#include "qkv/tasks/pretrained/marian.h"
#include "qkv/tasks/pretrained/model_json.h"
#include "qkv/tasks/pretrained/vit.h"

namespace qkv {
namespace {

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

TrainingStart start_of_run(const std::string& folder, const Parameters& parameters, const std::set<std::string>& anew) {
  const SafetensorsFile file(run_weights(folder));
  TrainingStart out{.folder = folder, .model = "run", .licence = {}, .sha256 = {}, .weights = {}};
  out.weights = load_by_name(file, parameters, anew);
  out.sha256[file_name(file.path())] = sha256_of_file(file.path());
  return out;
}

TrainingStart start_of_pretrained(const std::string& folder, const Parameters& parameters,
                                  const std::set<std::string>& anew) {
  const PretrainedSource source = pretrained_source(folder);
  TrainingStart out{.folder = folder,
                    .model = std::string(name_of(architecture_of(folder))),
                    .licence = licence_of(folder),
                    .sha256 = {},
                    .weights = load_by_name(*source.weights, source.table, parameters, anew)};
  for (const std::string& name : source.weights->names()) {
    std::string& digest = out.sha256[file_name(source.weights->path(name))];
    if (digest.empty()) digest = sha256_of_file(source.weights->path(name));
  }
  return out;
}

}  // namespace

std::unique_ptr<WeightSource> pretrained_weights(const std::string& folder) {
  if (is_llama2c_folder(folder)) return std::make_unique<Llama2cWeights>(folder);
  if (is_ctranslate2_folder(folder)) return std::make_unique<Ctranslate2Weights>(folder);
  return std::make_unique<PretrainedWeights>(folder);
}

PretrainedSource pretrained_source(const std::string& folder) {
  const Architecture architecture = architecture_of(folder);
  auto weights = pretrained_weights(folder);
  const auto with = [&](WeightTable table) { return PretrainedSource{std::move(weights), std::move(table), {}}; };
  if (is_llama2c_folder(folder)) return with(llama2c_table(!weights->has("output.weight")));
  if (is_ctranslate2_folder(folder)) return with(ctranslate2_table());
  switch (architecture) {
    case Architecture::llama:
      return with(llama_table(read_llama_settings(folder).config.model.transformer.tied));
    case Architecture::gpt2:
      return with(gpt2_table(weights->has("transformer.wte.weight")));
    case Architecture::bert:
    case Architecture::roberta:
    case Architecture::xlm_roberta: {
      std::shared_ptr<const BertTable> made =
          bert_table(architecture, read_bert_config(folder, architecture), weights.get());
      return {std::move(weights), made->table, made};
    }
    case Architecture::vit:
      return with(vit_table());
    case Architecture::marian:
      break;
  }
  return with(marian_table());
}

void set_fine_tuning(TrainingConfig& training) {
  training.epochs = 3;
  training.batch_rows = 16;
  training.rate = 2e-5;
}

TrainingStart start_from(const std::string& folder, const Parameters& parameters, const std::set<std::string>& anew) {
  TrainingStart out = is_pretrained_folder(folder) ? start_of_pretrained(folder, parameters, anew)
                                                   : start_of_run(folder, parameters, anew);
  require(out.weights.fresh.size() < parameters.entries().size(),
          "training.init: {folder} has no tensor of this model: it is another kind of model", "folder"_a = folder);
  return out;
}

void save(const TrainingStart& start, const std::string& run_folder) {
  nlohmann::ordered_json json = {{"folder", start.folder}, {"model", start.model}};
  if (!start.licence.empty()) json["licence"] = start.licence;
  json["sha256"] = start.sha256;
  json["new"] = start.weights.fresh;
  json["dropped"] = start.weights.dropped;
  write_file(run_folder + "/" + kStartFile,
             json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

std::optional<TrainingStart> read_start(const std::string& run_folder) {
  const std::string path = run_folder + "/" + kStartFile;
  if (!std::filesystem::exists(path)) return {};
  const ModelJson json(path);
  TrainingStart out;
  out.folder = json.word("folder");
  out.model = json.word("model");
  out.licence = json.word("licence");
  for (const auto& [file, digest] : json.strings("sha256")) out.sha256[file] = digest;
  out.weights = {json.words("new"), json.words("dropped")};
  return out;
}

}  // namespace qkv
