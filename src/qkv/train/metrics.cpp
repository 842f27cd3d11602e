// Writes and truncates metrics.jsonl.
#include "qkv/train/metrics.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/core/system_reason.h"
#include "qkv/io/atomic_file.h"

namespace qkv {

void MetricsFile::started(const Progress& p) {
  std::string kept;
  if (std::ifstream old(path_); old) {
    for (std::string line;
         std::getline(old, line) && !old.eof();) {  // a last line without a line end was cut off by a kill
      const auto entry = nlohmann::json::parse(line, nullptr, false);
      if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number_integer())
        refuse("{path}: not a metrics file: {substr}", "path"_a = path_, "substr"_a = line.substr(0, 60));
      if (entry["step"].get<int64_t>() <= p.step) kept += line + "\n";
    }
  }
  write_file(path_, kept);
}

void MetricsFile::step(const Progress& p) {
  if (every_ > 0 && p.step % every_ == 0) append("step", p, p.batch_loss);
}

void MetricsFile::epoch(const Progress& p) { append("epoch", p, p.epoch_loss); }

void MetricsFile::append(const char* kind, const Progress& p, double loss) {
  nlohmann::ordered_json line = {{"kind", kind},
                                 {"epoch", p.epoch},
                                 {"step", p.step},
                                 {"loss", loss},
                                 {"rate", p.rate},
                                 {"gradient_norm", p.gradient_norm},
                                 {"count", p.count},
                                 {"seconds", p.epoch_seconds},
                                 {"per_second", p.per_second()}};
  if (p.valid_loss) line["valid_loss"] = *p.valid_loss;
  if (p.valid_accuracy) line["valid_accuracy"] = *p.valid_accuracy;
  std::ofstream out(path_, std::ios::app);
  out << line.dump() << '\n' << std::flush;
  if (!out) refuse("cannot write {path}: {errno}", "path"_a = path_, "errno"_a = system_reason(errno));
}

}  // namespace qkv
