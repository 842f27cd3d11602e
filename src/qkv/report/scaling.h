// What a distributed job costs: measurements of its messages and steps, a model of the cost fitted to them, and what
// that model says about more machines and other networks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/language.h"
#include "qkv/plot/figure.h"

namespace QKV_API qkv {
namespace report {

/// One sum of a gradient over all ranks.
struct ExchangeTime {
  int64_t floats = 0;
  double seconds = 0;
};

/// A step of a model, the mean of several; seconds of the slowest rank.
struct StepTime {
  std::string model;
  int64_t parameters = 0;
  double compute = 0;  // the gradient of a rank's part of the batch
  double update = 0;   // of all weights, the same on every rank
  double wait = 0;     // for the slowest rank
  double communicate = 0;
  int64_t bytes = 0;   // that rank 0 sent per step
  int64_t theory = 0;  // what it must send: the gradients of the plan, and a message to each rank
  double sum() const { return compute + update + wait + communicate; }
};

struct RankMeasurements {
  int ranks = 1;
  int64_t threads = 1;  // per rank
  std::vector<std::string> hosts = {};
  double ping = 0;       // seconds for 8 bytes there and back, the slowest pair with rank 0
  double bandwidth = 0;  // bytes per second one way, the slowest pair
  std::vector<ExchangeTime> exchanges = {};
  std::vector<StepTime> steps = {};
};

/// seconds = latency (ranks - 1) + bytes (1 / bandwidth + per_byte): bytes are those that a rank sends; per_byte is
/// what summing and copying a byte costs on this machine, for any network.
struct CostModel {
  double latency = 0, per_byte = 0;
  double communicate(int64_t parameters, int machines, double bytes_per_second) const;
  double compute(const StepTime& step, int measured_ranks, int machines) const;
  /// Share of communication in a step.
  double share(const StepTime& step, int measured_ranks, int machines, double bytes_per_second) const;
  /// The fewest machines, up to 1024, with which communication takes half of the time; 0: more than that.
  int half_point(const StepTime& step, int measured_ranks, double bytes_per_second) const;
};
/// By least squares of relative errors, with the bandwidth as measured taken as that of this network.
CostModel fitted_cost(const RankMeasurements& measured);

inline constexpr double kNetworks[] = {1, 10, 25, 100};  // Gbit/s

std::string to_text(const RankMeasurements& measured, Language language);
std::string to_json(const RankMeasurements& measured);
/// Shares of communication for 2 to 64 machines, a panel per network, a line per model; with a table of half points.
Figure scaling_figure(const RankMeasurements& measured);

}  // namespace report
}  // namespace qkv
