// The callbacks of a run, and the names of their state in a checkpoint.
#include "qkv/run/callbacks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/npz.h"

namespace qkv {
namespace {

// All begin with kCallbackPrefix.
constexpr const char* kData = "companion.data";
constexpr const char* kBestLoss = "companion.best_bits";
constexpr const char* kWaited = "companion.waited";
constexpr const char* kBestWeights = "companion.best";
constexpr const char* kAverage = "companion.average";
constexpr const char* kAveraged = "companion.averaged";

// A tensor of the checkpoint, laid out like the parameters.
Tensor weights_of(const Checkpoint& in, const char* name, const Parameters& parameters) {
  const auto found = in.tensors.find(name);
  const Shape& shape = parameters.flat().shape();
  require(found != in.tensors.end(), "{file}: has no tensor \"{name}\"", "file"_a = in.file, "name"_a = name);
  require(found->second.shape() == shape, "{file}: \"{name}\" has shape {shape}, but the model needs {shape_2}",
          "file"_a = in.file, "name"_a = name, "shape"_a = found->second.shape(), "shape_2"_a = shape);
  return found->second.copied();
}

}  // namespace

void RunRecord::save(Checkpoint& out) const {
  if (!written_ && !folder_.empty()) write_file(folder_ + "/config.yaml", config_);
  written_ = true;
  out.set(kData, data_);
}

void RunRecord::saved() const {
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove(folder_ + "/model.safetensors", ignored);
}

void RunRecord::restore(const Checkpoint& in) {
  if (in.integer(kData) == data_) return;
  throw Error(tr("{file}: was trained on data that differs from the files as they are now", "file"_a = in.file),
              tr("--restart starts over; -o names another folder"));
}

void Validation::after_epoch(Progress& p) {
  const Validated measured = measure_();
  const double loss = measured.loss;
  require(
      !std::isnan(loss),
      "the validation loss after epoch {epoch} is not a number: the weights are too large; they were not written to "
      "any file",
      "epoch"_a = p.epoch);
  require(
      std::isfinite(loss),
      "the validation loss after epoch {epoch} is infinite: the weights are too large; they were not written to any "
      "file",
      "epoch"_a = p.epoch);
  p.valid_loss = loss;
  p.valid_accuracy = measured.accuracy;
  if (loss < best_) {
    best_ = loss;
    waited_ = 0;
  } else {
    ++waited_;
  }
}

void Validation::save(Checkpoint& out) const {
  out.set(kBestLoss, std::bit_cast<int64_t>(best_));
  out.set(kWaited, waited_);
}

void Validation::restore(const Checkpoint& in) {
  best_ = std::bit_cast<double>(in.integer(kBestLoss));
  waited_ = in.integer(kWaited);
}

void BestWeights::after_epoch(Progress&) {
  if (!validation_.improved()) return;
  if (keep_) weights_ = parameters_.flat().copied();
  improved_();
}

void BestWeights::save(Checkpoint& out) const {
  if (weights_.defined()) out.tensors[kBestWeights] = weights_;
}

void BestWeights::restore(const Checkpoint& in) {
  if (keep_ && std::isfinite(validation_.best())) weights_ = weights_of(in, kBestWeights, parameters_);
}

void WeightAverage::after_epoch(Progress& p) {
  if (is_running() || p.epoch >= options_.first_epoch) {
    average_.add(parameters_.flat());
    require(std::isfinite(norm(average_.average())),
            "the mean of the weights is not finite: they are too large to be averaged; it was not written to any file");
  }
  if (is_running()) swap_weights();
  Callbacks::after_epoch(p);
  if (is_running()) swap_weights();
}

void WeightAverage::swap_weights() {
  Tensor average = average_.average(), weights = parameters_.flat();
  std::swap_ranges(average.mutable_ptr(), average.mutable_ptr() + average.numel(), weights.mutable_ptr());
}

void WeightAverage::save(Checkpoint& out) const {
  Callbacks::save(out);
  out.set(kAveraged, average_.count());
  if (average_.count() > 0) out.tensors[kAverage] = average_.average();
}

void WeightAverage::restore(const Checkpoint& in) {
  Callbacks::restore(in);
  const int64_t count = in.integer(kAveraged);
  require(count >= 0, "{file}: {averaged} is {count}", "file"_a = in.file, "averaged"_a = kAveraged, "count"_a = count);
  if (count > 0) average_.restore(weights_of(in, kAverage, parameters_), count);
}

void AttentionSnapshots::after_epoch(Progress& p) {
  if (p.epoch % every_ != 0) return;
  const Maps maps = maps_();
  if (maps.empty()) return;
  make_folder(folder_ + "/attention");
  const std::string digits = std::to_string(p.epoch), zeros(digits.size() < 4 ? 4 - digits.size() : 0, '0');
  write_npz(text(folder_, "/attention/epoch_", zeros, digits, ".npz"), maps);
}

}  // namespace qkv
