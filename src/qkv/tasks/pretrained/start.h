// Where a training starts from: a pretrained folder or another run, loaded by name and recorded.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "qkv/core/api.h"
#include "qkv/run/model_file.h"
#include "qkv/run/training_config.h"
#include "qkv/tasks/pretrained/weight_table.h"

namespace QKV_API qkv {

/// The weights of a pretrained folder, and the table of their names.
struct PretrainedSource {
  std::unique_ptr<WeightSource> weights;
  WeightTable table;
  std::shared_ptr<const void> kept = {};  // what the table refers to, if that depends on the folder
};
PretrainedSource pretrained_source(const std::string& folder);
/// The weights alone, of every architecture.
std::unique_ptr<WeightSource> pretrained_weights(const std::string& folder);

/// How a pretrained model is trained further unless settings say otherwise: few epochs at a low rate.
void set_fine_tuning(TrainingConfig& training);

/// What a run remembers of the folder that it started from.
struct TrainingStart {
  std::string folder;                         // as it was given
  std::string model;                          // "marian"; "run"
  std::string licence;                        // that a pretrained folder names
  std::map<std::string, std::string> sha256;  // of its weight files
  LoadedByName weights;
};

/// Loads the weights of a pretrained folder or of a run into the parameters, by name. A tensor of another shape is
/// refused, as is a folder that has none of them. Those named in `anew` are not loaded: they count as absent.
TrainingStart start_from(const std::string& folder, const Parameters& parameters,
                         const std::set<std::string>& anew = {});

/// The file of a run that holds its start.
inline constexpr const char* kStartFile = "init.json";
void save(const TrainingStart& start, const std::string& run_folder);
/// Nothing if the run started from random weights.
std::optional<TrainingStart> read_start(const std::string& run_folder);

}  // namespace qkv
