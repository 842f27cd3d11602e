// The contents of a pretrained folder: model, tokenizer, weights and licence, as text and JSON.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/report/runs.h"
#include "qkv/tasks/pretrained/folder.h"

namespace QKV_API qkv {
namespace report {

struct PretrainedReport {
  std::string path;
  Architecture architecture = Architecture::marian;
  Text model;                            // its summary
  std::string tokenizer;                 // its kind; "" without one
  int64_t tokens = 0;                    // of the tokenizer
  int64_t positions = 0;                 // the most tokens of a text
  std::optional<ImageSize> images = {};  // that it sees
  std::vector<std::string> classes;
  std::string head;     // of an encoder: "words", "classes"; "" without one
  std::string vectors;  // of an encoder: "mean, length 1"
  uint64_t parameters = 0;
  std::vector<std::string> types;  // of the weights: "F32"
  std::string licence;             // "" if the folder names none
  std::vector<RunFile> files;
  uint64_t bytes = 0;  // of all files
};

/// Reads config.json, the tokenizer, and the headers of weight files; the weights must fit config.json.
PretrainedReport report_pretrained(const std::string& folder);

std::string to_text(const PretrainedReport& report, Language language);
/// {"path": "opus-mt", "kind": "pretrained", "architecture": "marian", ...}
std::string to_json(const PretrainedReport& report);

}  // namespace report
}  // namespace qkv
