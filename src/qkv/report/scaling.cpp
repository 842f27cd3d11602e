// The cost of distributed steps as text, JSON and a figure.
#include "qkv/report/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "qkv/core/numbers.h"

namespace qkv::report {
namespace {

constexpr double kGigabit = 1e9 / 8;
constexpr int kMostMachines = 1024;

// Bytes that a rank sends for a sum over `ranks` ranks, one piece each.
double sent(int64_t parameters, int ranks) { return 8.0 * static_cast<double>(parameters) * (ranks - 1) / ranks; }

std::string milliseconds(double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); }

}  // namespace

double CostModel::communicate(int64_t parameters, int machines, double bytes_per_second) const {
  return latency * (machines - 1) + sent(parameters, machines) * (1 / bytes_per_second + per_byte);
}

// Each machine has its part of the batch, but updates all weights.
double CostModel::compute(const StepTime& step, int measured_ranks, int machines) const {
  return step.compute * measured_ranks / machines + step.update;
}

double CostModel::share(const StepTime& step, int measured_ranks, int machines, double bytes_per_second) const {
  const double messages = communicate(step.parameters, machines, bytes_per_second);
  return messages / (messages + compute(step, measured_ranks, machines));
}

int CostModel::half_point(const StepTime& step, int measured_ranks, double bytes_per_second) const {
  for (int machines = 2; machines <= kMostMachines; ++machines)
    if (share(step, measured_ranks, machines, bytes_per_second) >= 0.5) return machines;
  return 0;
}

// Two unknowns: seconds / s = latency (ranks - 1) / s + per_byte bytes / s, where s is the measured time without what
// the network itself takes.
CostModel fitted_cost(const RankMeasurements& m) {
  if (m.ranks < 2 || m.exchanges.empty()) return {};
  double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
  for (const ExchangeTime& e : m.exchanges) {
    const double bytes = sent(e.floats, m.ranks), network = bytes / m.bandwidth, weight = 1 / e.seconds;
    const double a = (m.ranks - 1) * weight, b = bytes * weight, y = std::max(0.0, e.seconds - network) * weight;
    aa += a * a;
    ab += a * b;
    bb += b * b;
    ay += a * y;
    by += b * y;
  }
  const double determinant = aa * bb - ab * ab;
  CostModel out;
  if (determinant > 0) out = {(ay * bb - by * ab) / determinant, (aa * by - ab * ay) / determinant};
  // A negative cost is noise: the other one then explains everything.
  if (out.per_byte < 0) out = {aa > 0 ? ay / aa : 0, 0};
  if (out.latency < 0) out = {0, bb > 0 ? by / bb : 0};
  return out;
}

std::string to_text(const RankMeasurements& m, Language language) {
  const std::set<std::string> hosts(m.hosts.begin(), m.hosts.end());
  std::string out = tr("{ranks} ranks with {threads} threads each, on {hosts} hosts", "ranks"_a = m.ranks,
                       "threads"_a = m.threads, "hosts"_a = hosts.size())
                        .in(language) +
                    "\n";
  const auto line = [&](const Text& text) { out += text.in(language) + "\n"; };
  if (m.ranks > 1) {
    line(tr("8 bytes there and back: {time:.1f} us", "time"_a = 1e6 * m.ping));
    line(tr("bandwidth, one way: {rate:.2f} GB/s", "rate"_a = 1e-9 * m.bandwidth));
    line(tr("sum of a gradient over all ranks:"));
    for (const ExchangeTime& e : m.exchanges)
      out += fmt::format("  {:>11} floats {:>10} ms {:>7.2f} GB/s\n", grouped(static_cast<uint64_t>(e.floats)),
                         milliseconds(e.seconds), 1e-9 * sent(e.floats, m.ranks) / e.seconds);
  }
  line(tr("a training step in ms: gradient of this rank's part, update, waiting for others, communication"));
  for (const StepTime& s : m.steps)
    out += fmt::format("  {:<22} {:>11} {:>9} {:>9} {:>9} {:>9}  {}\n", s.model,
                       grouped(static_cast<uint64_t>(s.parameters)), milliseconds(s.compute), milliseconds(s.update),
                       milliseconds(s.wait), milliseconds(s.communicate),
                       s.bytes == s.theory ? fmt::format("{} B", grouped(static_cast<uint64_t>(s.bytes)))
                                           : fmt::format("{} B != {} B", s.bytes, s.theory));
  if (m.ranks < 2) return out;
  const CostModel cost = fitted_cost(m);
  if (cost.per_byte > 0)
    line(tr("fitted: {latency:.1f} us per rank, {rate:.2f} GB/s of summing and copying",
            "latency"_a = 1e6 * cost.latency, "rate"_a = 1e-9 / cost.per_byte));
  else
    line(tr("fitted: {latency:.1f} us per rank; summing and copying are hidden by the network",
            "latency"_a = 1e6 * cost.latency));
  line(tr("computed from that, not measured: machines with which communication takes half of a step"));
  std::string head = fmt::format("  {:<22}", "");
  for (const double gigabits : kNetworks) head += fmt::format(" {:>12}", fmt::format("{} Gbit/s", gigabits));
  out += head + "\n";
  for (const StepTime& s : m.steps) {
    std::string row = fmt::format("  {:<22}", s.model);
    for (const double gigabits : kNetworks) {
      const int half = cost.half_point(s, m.ranks, gigabits * kGigabit);
      row += fmt::format(" {:>12}", half > 0 ? std::to_string(half) : fmt::format("> {}", kMostMachines));
    }
    out += row + "\n";
  }
  return out;
}

std::string to_json(const RankMeasurements& m) {
  nlohmann::ordered_json out = {{"ranks", m.ranks},
                                {"threads", m.threads},
                                {"hosts", m.hosts},
                                {"ping_seconds", m.ping},
                                {"bandwidth", m.bandwidth},
                                {"exchanges", nlohmann::json::array()},
                                {"steps", nlohmann::json::array()}};
  for (const ExchangeTime& e : m.exchanges) out["exchanges"].push_back({{"floats", e.floats}, {"seconds", e.seconds}});
  const CostModel cost = fitted_cost(m);
  for (const StepTime& s : m.steps) {
    nlohmann::ordered_json step = {
        {"model", s.model}, {"parameters", s.parameters},   {"compute", s.compute},  {"update", s.update},
        {"wait", s.wait},   {"communicate", s.communicate}, {"bytes_sent", s.bytes}, {"bytes_of_theory", s.theory}};
    if (m.ranks > 1)
      for (const double gigabits : kNetworks)
        step["half_point"][fmt::format("{}", gigabits)] = cost.half_point(s, m.ranks, gigabits * kGigabit);
    out["steps"].push_back(std::move(step));
  }
  if (m.ranks > 1) out["fitted"] = {{"latency", cost.latency}, {"seconds_per_byte", cost.per_byte}};
  return out.dump();
}

Figure scaling_figure(const RankMeasurements& m) {
  const CostModel cost = fitted_cost(m);
  Figure figure;
  figure.rows = 2;
  figure.cols = 2;
  figure.share_x = figure.share_y = true;
  figure.title = tr("Computed from measurements of {ranks} ranks, not measured", "ranks"_a = m.ranks);
  for (const double gigabits : kNetworks) {
    Curves curves;
    for (const StepTime& s : m.steps) {
      Series line{.name = Label(s.model), .x = {}, .y = {}};
      for (int machines = 2; machines <= 64; machines = machines < 8 ? machines + 1 : machines + machines / 8) {
        line.x.push_back(machines);
        line.y.push_back(100 * cost.share(s, m.ranks, machines, gigabits * kGigabit));
      }
      curves.series.push_back(std::move(line));
    }
    curves.series.push_back({.name = tr("half"), .x = {2, 64}, .y = {50, 50}, .style = line_style("k:")});
    figure.panels.push_back({.content = std::move(curves),
                             .title = Label(fmt::format("{} Gbit/s", gigabits)),
                             .x = {.label = tr("Machines"), .low = 2, .high = 64, .scale = AxisScale::log},
                             .y = {.label = tr("Communication, % of a step"), .low = 0, .high = 100}});
  }
  return figure;
}

}  // namespace qkv::report
