// The contents of a run folder: model, data, progress and files, as text and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/report/files.h"
#include "qkv/tasks/pretrained/start.h"
#include "qkv/tasks/run_config.h"

namespace QKV_API qkv {
namespace report {

struct RunFile {
  std::string name;  // within the folder
  uint64_t bytes = 0;
};

/// What only the task of a run can say.
struct RunFacts {
  Text model;               // its summary
  std::vector<Text> lines;  // "data        fra.txt\n" and so on
  std::string json = "{}";  // {"model": {...}, "data": {...}, "tokenizer": {...}}; "model" overrides its settings
  bool book_loss = false;   // the loss has the book's unit
};
RunFacts run_facts(const TranslationConfig& config, const std::string& folder);
RunFacts run_facts(const VisionConfig& config, const std::string& folder);
RunFacts run_facts(const LanguageConfig& config, const std::string& folder);
RunFacts run_facts(const EncodingConfig& config, const std::string& folder);

struct RunReport {
  std::string path;
  RunConfig config;
  RunFacts facts;
  int64_t epochs = 0;  // done, of the configured ones
  bool ended_early = false;
  std::optional<double> loss, valid_loss, lowest_valid_loss;  // of the last epoch, and the lowest of all
  std::optional<double> valid_accuracy;                       // of the last epoch
  std::optional<TrainingStart> start;                         // the folder that the training started from
  int64_t lowest_epoch = 0;
  std::string weights;  // the weight file, within the folder; empty before the first checkpoint
  uint64_t parameters = 0;
  std::vector<RunFile> files;
  uint64_t bytes = 0;  // of all files
};

/// True if it has a configuration and the files of its task.
bool is_run_folder(const std::string& folder);

/// Reads settings, metrics and the headers of weight files, but not the weights.
RunReport report_run(const std::string& folder);
/// The same of a pretrained folder, as far as it has that: configuration, model, parameters.
RunReport report_pretrained_as_run(const std::string& folder);

/// A line for the model, the data, the tokenizers, the training and the weights, then the files.
std::string to_text(const RunReport& run, Language language);
/// {"path": "runs/a", "kind": "run", "bytes": 1000, "model": {"kind": "seq2seq", ...}, "data": ..., "training": ...,
/// "files": [...]}
std::string to_json(const RunReport& run);

/// "bpe of lower-cased text, nfkc", "spaces".
Text tokenizer_text(const TranslationDataConfig& data);
/// "pairs.tsv", "a.txt and b.txt", "en-fr, the built-in corpus".
Text data_text(const TranslationDataConfig& data);
/// "pictures, the built-in set (20,000 pictures)", "Fashion-MNIST", "a/folder".
Text data_text(const VisionDataConfig& data);
Text tokenizer_text(const LanguageDataConfig& data);
Text data_text(const LanguageDataConfig& data);

}  // namespace report
}  // namespace qkv
