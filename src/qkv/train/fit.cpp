// The parts of fit outside its loop: reading and writing checkpoints, and checks.
#include "qkv/train/fit.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>

#include "qkv/io/atomic_file.h"

namespace qkv::detail {
namespace {

// Doubles are saved as bits, so that a resumed run reports exactly the same loss.
std::string bits_of(double x) { return std::to_string(std::bit_cast<int64_t>(x)); }
double from_bits(int64_t bits) { return std::bit_cast<double>(bits); }

// Tensor `name` of the checkpoint, which must have that shape.
const Tensor& tensor_of(const std::string& file, const Checkpoint& saved, const std::string& name, const Shape& shape) {
  const auto found = saved.tensors.find(name);
  if (found == saved.tensors.end())
    refuse("{file}: has no tensor \"{name}\": it is a checkpoint of a different model or optimizer", "file"_a = file,
           "name"_a = name);
  require(found->second.shape() == shape, "{file}: \"{name}\" has shape {shape}, but the model needs {shape_2}",
          "file"_a = file, "name"_a = name, "shape"_a = found->second.shape(), "shape_2"_a = shape);
  return found->second;
}

// The position of a function after as many updates; the loss is that of its epoch so far, unless the epochs have
// changed.
FitState at_step(const FunctionEpochs& epochs, const FitState& saved) {
  FitState at = saved;
  at.epoch = epochs.epoch_of(saved.step);
  const bool ended = epochs.steps && saved.step >= *epochs.steps;
  at.batch = ended ? 0 : (saved.step - epochs.updates_before(at.epoch)) * epochs.accumulate;
  if (at.epoch != saved.epoch || at.batch != saved.batch) at.loss = {};
  return at;
}

}  // namespace

void check_start(const FitOptions& options, int64_t batches) {
  check(options.epochs.value_or(0) >= 0, "[fit] epochs must be 0 or more, got ", options.epochs.value_or(0));
  check(options.steps.value_or(0) >= 0, "[fit] steps must be 0 or more, got ", options.steps.value_or(0));
  check(options.seconds.value_or(0) >= 0, "[fit] seconds must be 0 or more, got ", options.seconds.value_or(0));
  check(options.accumulate >= 1, "[fit] accumulate, the batches per update, must be 1 or more, got ",
        options.accumulate);
  check(batches >= 1, "[fit] the task has no batches: there is nothing to learn from");
  check(options.clip >= 0, "[fit] the limit of the gradient norm must be 0 (none) or more, got ", options.clip);
  if (options.shards)
    check(options.shards->most >= 1 && options.shards->most <= ShardPolicy::kMost && options.shards->multiple >= 1,
          "[fit] a batch must be cut into 1 to ", ShardPolicy::kMost, " shards of 1 or more rows, got ",
          options.shards->most, " and ", options.shards->multiple);
  check(options.checkpoint_every >= 0, "[fit] steps between checkpoints must be 0 (by the clock) or more, got ",
        options.checkpoint_every);
  if (!options.checkpoint.empty())
    AtomicFile probe(options.checkpoint);  // checks that it can be written; the file is unchanged
}

Limits limits_of(const FitOptions& options) {
  const bool none = !options.epochs && !options.steps && !options.seconds;
  return {none ? 1 : options.epochs.value_or(kNoLimit), options.steps.value_or(kNoLimit)};
}

FunctionEpochs epochs_of_function(const FitOptions& options) {
  if (!options.steps) return {.steps = {}, .accumulate = options.accumulate};
  const int64_t steps = std::max<int64_t>(1, *options.steps);
  return {.steps = steps,
          .epochs = std::clamp<int64_t>(options.epochs.value_or(1), 1, steps),
          .accumulate = options.accumulate};
}

int64_t FunctionEpochs::updates_before(int64_t epoch) const {
  return steps ? *steps / epochs * epoch + std::min(epoch, *steps % epochs) : epoch;
}

int64_t FunctionEpochs::epoch_of(int64_t step) const {
  if (!steps) return step;
  if (step >= *steps) return epochs;
  const int64_t length = *steps / epochs, longer = *steps % epochs;
  return step < longer * (length + 1) ? step / (length + 1) : (step - longer) / length;
}

void check_count(double counted, double expected, const char* by) {
  if (std::abs(counted - expected) <= 1e-6 * std::abs(expected)) return;
  throw Error(
      text("[fit] the losses of a batch count ", counted, ", but its ", by, " is ", expected),
      verbatim("loss() returns the sum over its rows and how many it summed; from_mean(mean, rows) makes it of a mean, "
               "and count(batch) says what is counted if it is not rows"));
}

void check_first_gradient(const Parameters& parameters, const Shards& shards, int64_t step) {
  const std::vector<OutsideLeaf> outside = shards.outside();
  for (const OutsideLeaf& leaf : outside)
    if (const std::string name = parameters.name_before(leaf.number); !name.empty())
      throw Error(
          text("[fit] the loss uses \"", name, "\" as it was before flatten(): the model was copied too early"),
          verbatim("copy the model after flatten(), or refer to it; fit(model, ...) flattens the model itself"));
  if (!outside.empty())
    throw Error(
        text("[fit] the loss depends on a parameter of shape ", outside.front().shape, " that is not among the model's",
             outside.size() > 1 ? text(", and on ", outside.size() - 1, " more") : ""),
        verbatim("name it in visit(), so that it is trained and saved, or pass frozen(module) to keep it as it is"));
  if (step == 0 && norm(shards.gradient()) == 0)
    throw Error(
        verbatim("[fit] no parameter got a gradient: the first one is exactly zero"),
        verbatim("the loss must depend on the model that is trained; is something between them constant, or every relu "
                 "off?"));
}

bool restore(const FitOptions& options, const Parameters& parameters, Optimizer& optimizer, int64_t batches,
             const FunctionEpochs* epochs, FitState& state) {
  std::string file = options.checkpoint;
  std::optional<Checkpoint> read_here;
  if (!file.empty() && std::filesystem::exists(file)) read_here = load_checkpoint(file);
  if (options.ranks) read_here = shared_checkpoint(*options.ranks, std::move(read_here));
  if (!read_here) return false;
  const Checkpoint& saved = *read_here;
  file = saved.file;
  require(saved.integer("seed") == static_cast<int64_t>(options.seed),
          "{file}: was trained with seed {saved}, not {seed}", "file"_a = file, "saved"_a = saved.integer("seed"),
          "seed"_a = static_cast<int64_t>(options.seed));
  FitState read{.epoch = saved.integer("epoch"),
                .batch = saved.integer("batch"),
                .step = saved.integer("step"),
                .loss = {from_bits(saved.integer("loss_sum_bits")), from_bits(saved.integer("count_bits"))},
                .ended = saved.integer("ended") != 0};
  const int64_t updates = saved.integer("updates");
  if (epochs && read.step >= 0) read = at_step(*epochs, read);
  require(
      read.epoch >= 0 && read.batch >= 0 && read.batch < batches && read.step >= 0 && updates >= 0,
      "{file}: is at epoch {epoch}, batch {batch}, step {step}, but an epoch has {batches} batches: it was trained on "
      "different data",
      "file"_a = file, "epoch"_a = read.epoch, "batch"_a = read.batch, "step"_a = read.step, "batches"_a = batches);
  require(read.batch % options.accumulate == 0,
          "{file}: is at batch {batch}, which is not a multiple of the {accumulate} batches per update",
          "file"_a = file, "batch"_a = read.batch, "accumulate"_a = options.accumulate);
  require(
      epochs || read.step == read.epoch * updates_of(batches, options.accumulate) + read.batch / options.accumulate,
      "{file}: has made {step} updates in {epoch} epochs and {batch} batches, which does not fit {accumulate} batches "
      "per update",
      "file"_a = file, "step"_a = read.step, "epoch"_a = read.epoch, "batch"_a = read.batch,
      "accumulate"_a = options.accumulate);
  std::vector<std::pair<const Tensor*, Tensor>> copies;  // from, to
  const auto plan = [&](const std::string& name, const Tensor& to) {
    copies.emplace_back(&tensor_of(file, saved, name, to.shape()), to);
  };
  for (size_t i = 0; i < parameters.entries().size(); ++i) plan(parameters.entries()[i].name, parameters.values(i));
  for (const auto& buffer : optimizer.state())
    for (size_t i = 0; i < parameters.entries().size(); ++i)
      plan(buffer.name + "." + parameters.entries()[i].name, parameters.in(buffer.tensor, i));
  const auto own = static_cast<size_t>(std::count_if(saved.tensors.begin(), saved.tensors.end(), [](const auto& entry) {
    return !entry.first.starts_with(kCallbackPrefix);
  }));
  require(own == copies.size(), "{file}: has {own} tensors, but the model and its optimizer need {copies}",
          "file"_a = file, "own"_a = own, "copies"_a = copies.size());
  Callbacks callbacks(options.callbacks);
  callbacks.restore(saved);
  for (const auto& [from, to] : copies) std::copy_n(from->ptr(), to.numel(), detail::writable(to));
  optimizer.set_updates(updates);
  state = read;
  if (state.ended && !options.callbacks.empty()) state.ended = callbacks.ends_training();
  return true;
}

void save(const FitOptions& options, const Parameters& parameters, const Optimizer& optimizer, const FitState& state) {
  if (options.checkpoint.empty()) return;
  Checkpoint saved;
  for (size_t i = 0; i < parameters.entries().size(); ++i) {
    const std::string& name = parameters.entries()[i].name;
    saved.tensors[name] = parameters.values(i);
    for (const auto& buffer : optimizer.state())
      saved.tensors[buffer.name + "." + name] = parameters.in(buffer.tensor, i);
  }
  saved.counters = {{"seed", std::to_string(static_cast<int64_t>(options.seed))},
                    {"updates", std::to_string(optimizer.updates())},
                    {"epoch", std::to_string(state.epoch)},
                    {"batch", std::to_string(state.batch)},
                    {"step", std::to_string(state.step)},
                    {"loss_sum_bits", bits_of(state.loss.sum)},
                    {"count_bits", bits_of(state.loss.count)},
                    {"ended", state.ended ? "1" : "0"}};
  const Callbacks callbacks(options.callbacks);
  callbacks.save(saved);
  for (const auto& [name, tensor] : saved.tensors)
    check(std::isfinite(norm(tensor)), "[fit] step ", state.step, ": \"", name,
          "\" has values that are not finite; no checkpoint was written");
  save_checkpoint(options.checkpoint, saved);
  callbacks.saved();
}

Update update(const Parameters& parameters, Optimizer& optimizer, const Tensor& gradient, const BatchLoss& loss,
              const FitOptions& options, int64_t step) {
  Update update{.gradient_norm = norm(gradient), .rate = options.rate(step)};
  check(std::isfinite(loss.sum) && std::isfinite(update.gradient_norm), "[fit] step ", step + 1, ": the loss is ",
        loss.sum, " and the gradient norm is ", update.gradient_norm, "; the weights are unchanged");
  check(std::isfinite(update.rate) && update.rate >= 0, "[fit] step ", step + 1, ": the learning rate is ", update.rate,
        ", expected 0 or more");
  optimizer.step(parameters, gradient, static_cast<float>(update.rate),
                 clip_factor(update.gradient_norm, options.clip));
  // A norm of floats in double precision is finite exactly if all of them are finite.
  update.weight_norm = norm(parameters.flat());
  if (!std::isfinite(update.weight_norm))
    throw Error(text("[fit] step ", step + 1,
                     ": the update made weights that are not finite; they were not written to any file"),
                tr("use a smaller learning rate, or less weight decay"));
  return update;
}

bool CheckpointClock::due(int64_t step, bool epoch_done) const {
  if (options_.checkpoint_every > 0) return step % options_.checkpoint_every == 0;
  if (options_.checkpoint_seconds <= 0) return epoch_done;
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  return seconds(Clock::now() - saved_) >= std::max(options_.checkpoint_seconds, 20 * seconds(took_));
}

ProgressMeter::ProgressMeter(Progress& progress, const FitOptions& options, int64_t batches,
                             const FunctionEpochs* epochs, const FitState& at)
    : progress_(progress), epochs_(epochs) {
  Progress& p = progress_;
  const Limits limits = limits_of(options);
  const int64_t updates = updates_of(batches, options.accumulate);
  p.batches = batches;
  // 0 where only the clock knows.
  p.steps = limits.epochs < kNoLimit / updates ? std::min(limits.epochs * updates, limits.steps) : limits.steps;
  if (p.steps == kNoLimit) p.steps = 0;
  p.epochs = epochs && epochs->steps && p.steps > 0 ? epochs->epochs : (p.steps + updates - 1) / updates;
  p.epoch = p.epochs > 0 || limits.epochs == 0 ? std::min(at.epoch + 1, p.epochs) : at.epoch + 1;
  p.step = at.step;
  p.batch = at.batch;
}

void ProgressMeter::begin_epoch(const FitState& at) {
  epoch_start_ = Clock::now();
  count_before_ = at.loss.count;
  progress_.epoch = at.epoch + 1;
  if (epochs_) progress_.batches = epochs_->batches(at.epoch);
  progress_.valid_loss.reset();
  progress_.valid_accuracy.reset();
}

void ProgressMeter::count(const FitState& at, const BatchLoss& loss, const Update& update) {
  Progress& p = progress_;
  p.steps_here += 1;
  p.step = at.step;
  p.batch = at.batch;
  p.batch_loss = loss.mean();
  p.epoch_loss = at.loss.mean();
  p.rate = update.rate;
  p.gradient_norm = update.gradient_norm;
  p.count = at.loss.count;
  p.count_here = at.loss.count - count_before_;
  const auto seconds = [now = Clock::now()](Clock::time_point t) {
    return std::chrono::duration<double>(now - t).count();
  };
  p.epoch_seconds = seconds(epoch_start_);
  p.seconds = seconds(start_);
}

}  // namespace qkv::detail
