// metrics.jsonl: one JSON object per line, for every epoch and, if wanted, every few steps.
#pragma once

#include <string>

#include "qkv/core/api.h"
#include "qkv/train/fit.h"

namespace QKV_API qkv {

class MetricsFile : public Observer {
 public:
  /// every: steps between lines; 0 writes epochs only.
  explicit MetricsFile(std::string path, int64_t every = 0) : path_(std::move(path)), every_(every) {}
  /// Truncates an existing file to the step where the run resumes, so that no step appears twice.
  void started(const Progress& p) override;
  void step(const Progress& p) override;
  void epoch(const Progress& p) override;

 private:
  void append(const char* kind, const Progress& p, double loss);
  std::string path_;
  int64_t every_;
};

}  // namespace qkv
