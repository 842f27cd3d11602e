// Optimizers: blocks of the flat arena, updated in one pass.
#include "qkv/train/optimizer.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/parallel.h"
#include "qkv/kernels/optimizer.h"

namespace qkv {
namespace {

constexpr int64_t kBlock = 1 << 13;

void check_sizes(const char* name, const Parameters& parameters, const Tensor& gradient) {
  check(gradient.numel() == parameters.flat().numel(), "[", name, "] a gradient of ", gradient.numel(),
        " elements for parameters of ", parameters.flat().numel());
}

// Zeros for every parameter, if there are none yet.
void begin_state(const char* name, const Parameters& parameters, Tensor& state) {
  if (!state.defined()) state = zeros(parameters.flat().shape());
  check(state.numel() == parameters.flat().numel(), "[", name, "] made for ", state.numel(),
        " elements, the model has ", parameters.flat().numel());
}

}  // namespace

double norm(const Tensor& gradient) {
  const int64_t n = gradient.numel(), blocks = (n + kBlock - 1) / kBlock;
  Buffer memory = Buffer::take(static_cast<size_t>(blocks) * sizeof(double));
  double* sums = reinterpret_cast<double*>(memory.data());
  parallel_ranges(n, kBlock, 0.1 * static_cast<double>(n), [&](int64_t begin, int64_t end) {
    sums[begin / kBlock] = kernels::sum_of_squares(gradient.ptr() + begin, end - begin);
  });
  double total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += sums[b];
  return std::sqrt(total);
}

float clip_factor(double norm, double limit) {
  return limit > 0 && norm > limit ? static_cast<float>(limit / norm) : 1.f;
}

Sgd::Sgd(const SgdOptions& options) : options_(options) {
  check(options.momentum >= 0 && options.momentum < 1, "[sgd] momentum must be in [0, 1), got ", options.momentum);
  check(options.l2 >= 0 && std::isfinite(options.l2), "[sgd] weight decay must be 0 or more and finite, got ",
        options.l2);
}

void Sgd::begin(const Parameters& parameters) {
  if (options_.momentum > 0) begin_state("sgd", parameters, velocity_);
}

void Sgd::step(const Parameters& parameters, const Tensor& gradient, float rate, float gradient_scale) {
  check_sizes("sgd", parameters, gradient);
  begin(parameters);
  ++updates_;
  const kernels::SgdStep step{rate, options_.momentum, options_.l2, gradient_scale};
  parallel_ranges(gradient.numel(), kBlock, 0.5 * static_cast<double>(gradient.numel()),
                  [&](int64_t begin, int64_t end) {
                    kernels::sgd(detail::writable(parameters.flat()) + begin, gradient.ptr() + begin,
                                 velocity_.defined() ? velocity_.mutable_ptr() + begin : nullptr, end - begin, step);
                  });
}

std::vector<NamedTensor> Sgd::state() const {
  if (!velocity_.defined()) return {};
  return {{"sgd.velocity", velocity_}};
}

Adam::Adam(const AdamOptions& options) : options_(options) {
  check(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
        "[adam] betas must be in [0, 1), got ", options.beta1, " and ", options.beta2);
  check(options.epsilon > 0, "[adam] epsilon must be above 0, got ", options.epsilon);
  check(options.l2 >= 0 && options.decay >= 0 && std::isfinite(options.l2 + options.decay),
        "[adam] weight decay must be 0 or more and finite, got l2 ", options.l2, " and decay ", options.decay);
}

void Adam::begin(const Parameters& parameters) {
  begin_state("adam", parameters, m_);
  begin_state("adam", parameters, v_);
  if (!stretches_.empty()) return;
  const auto& entries = parameters.entries();
  for (size_t i = 0; i < entries.size(); ++i) {
    const int64_t end = i + 1 < entries.size() ? entries[i + 1].offset : parameters.flat().numel();
    const bool decayed = options_.decay_vectors || entries[i].shape.rank() >= 2;
    if (!stretches_.empty() && stretches_.back().decayed == decayed)
      stretches_.back().end = end;
    else
      stretches_.push_back({entries[i].offset, end, decayed});
  }
}

void Adam::step(const Parameters& parameters, const Tensor& gradient, float rate, float gradient_scale) {
  check_sizes("adam", parameters, gradient);
  begin(parameters);
  ++updates_;
  const double t = static_cast<double>(updates_);
  const kernels::AdamStep step{rate,
                               options_.beta1,
                               options_.beta2,
                               options_.epsilon,
                               static_cast<float>(1 / (1 - std::pow(double{options_.beta1}, t))),
                               static_cast<float>(1 / (1 - std::pow(double{options_.beta2}, t))),
                               options_.decay,
                               options_.l2,
                               gradient_scale};
  kernels::AdamStep undecayed = step;
  undecayed.decay = 0;
  parallel_ranges(
      gradient.numel(), kBlock, 0.6 * static_cast<double>(gradient.numel()), [&](int64_t begin, int64_t end) {
        for (const Stretch& s : stretches_) {
          const int64_t from = std::max(begin, s.begin), to = std::min(end, s.end);
          if (from < to)
            kernels::adam(detail::writable(parameters.flat()) + from, gradient.ptr() + from, m_.mutable_ptr() + from,
                          v_.mutable_ptr() + from, to - from, s.decayed ? step : undecayed);
        }
      });
}

std::vector<NamedTensor> Adam::state() const {
  if (!m_.defined()) return {};
  return {{"adam.m", m_}, {"adam.v", v_}};
}

ParameterAverage::ParameterAverage(double decay) : decay_(decay) {
  check(decay >= 0 && decay < 1, "[average] decay must be in [0, 1), got ", decay);
}

void ParameterAverage::add(const Tensor& flat) {
  if (!average_.defined()) average_ = zeros(flat.shape());
  check(average_.numel() == flat.numel(), "[average] ", flat.numel(), " elements after ", average_.numel());
  ++count_;
  const bool mean = decay_ == 0 || count_ == 1;
  const float share = mean ? 1.0f / static_cast<float>(count_) : static_cast<float>(1 - decay_);
  parallel_ranges(flat.numel(), kBlock, 0.2 * static_cast<double>(flat.numel()), [&](int64_t begin, int64_t end) {
    kernels::approach(average_.mutable_ptr() + begin, flat.ptr() + begin, share, end - begin);
  });
}

void ParameterAverage::restore(Tensor average, int64_t count) {
  average_ = std::move(average);
  count_ = count;
}

}  // namespace qkv
