// What fit needs outside its loop: reading, writing and refusing.
#include "qkv/train/fit.h"

#include <bit>
#include <cmath>
#include <filesystem>

#include "qkv/train/checkpoint.h"

namespace qkv::detail {
namespace {

// Doubles travel as their bits: a resumed run reports the very same loss.
std::string bits_of(double x) { return std::to_string(std::bit_cast<int64_t>(x)); }
double from_bits(int64_t bits) { return std::bit_cast<double>(bits); }

// Copies tensor `name` of the checkpoint over `to`.
void copy_in(const std::string& file, const Checkpoint& saved, const std::string& name, const Tensor& to) {
  const auto found = saved.tensors.find(name);
  if (found == saved.tensors.end()) fail(file, ": has no tensor \"", name, "\": it is a checkpoint of another model or optimizer");
  check(found->second.shape() == to.shape(), file, ": \"", name, "\" has shape ", found->second.shape(), ", the model needs ", to.shape());
  std::copy_n(found->second.ptr(), to.numel(), to.mutable_ptr());
}

}  // namespace

bool restore(const std::string& file, const Parameters& parameters, Optimizer& optimizer, uint64_t seed, FitState& state) {
  if (file.empty() || !std::filesystem::exists(file)) return false;
  const Checkpoint saved = load_checkpoint(file);
  check(saved.integer("seed") == static_cast<int64_t>(seed), file, ": was trained with seed ", saved.integer("seed"), ", not ",
        static_cast<int64_t>(seed));
  size_t expected = 0;
  for (size_t i = 0; i < parameters.entries().size(); ++i, ++expected)
    copy_in(file, saved, parameters.entries()[i].name, parameters.values(i));
  for (const auto& buffer : optimizer.state())
    for (size_t i = 0; i < parameters.entries().size(); ++i, ++expected)
      copy_in(file, saved, buffer.name + "." + parameters.entries()[i].name, parameters.in(buffer.tensor, i));
  check(saved.tensors.size() == expected, file, ": has ", saved.tensors.size(), " tensors, the model and its optimizer need ", expected);
  optimizer.set_updates(saved.integer("updates"));
  state = {saved.integer("epoch"), saved.integer("batch"), saved.integer("step"),
           from_bits(saved.integer("loss_sum_bits")), from_bits(saved.integer("count_bits"))};
  return true;
}

void save(const std::string& file, const Parameters& parameters, const Optimizer& optimizer, uint64_t seed, const FitState& state) {
  if (file.empty()) return;
  Checkpoint saved;
  for (size_t i = 0; i < parameters.entries().size(); ++i) {
    const std::string& name = parameters.entries()[i].name;
    saved.tensors[name] = parameters.values(i);
    for (const auto& buffer : optimizer.state()) saved.tensors[buffer.name + "." + name] = parameters.in(buffer.tensor, i);
  }
  saved.counters = {{"seed", std::to_string(static_cast<int64_t>(seed))},
                    {"updates", std::to_string(optimizer.updates())},
                    {"epoch", std::to_string(state.epoch)},
                    {"batch", std::to_string(state.batch)},
                    {"step", std::to_string(state.step)},
                    {"loss_sum_bits", bits_of(state.loss_sum)},
                    {"count_bits", bits_of(state.count)}};
  save_checkpoint(file, saved);
}

void check_finite(const BatchLoss& loss, double gradient_norm, int64_t step) {
  check(std::isfinite(loss.sum) && std::isfinite(gradient_norm), "[fit] step ", step + 1, ": the loss is ", loss.sum,
        " and the gradient's norm ", gradient_norm, "; the weights are as they were before it");
}

}  // namespace qkv::detail
