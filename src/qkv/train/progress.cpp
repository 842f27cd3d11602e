// Progress as text.
#include "qkv/train/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "qkv/core/numbers.h"

namespace qkv {
namespace {

double seconds_left(const Progress& p) {
  return p.steps_here > 0 && p.steps > p.step
             ? p.seconds / static_cast<double>(p.steps_here) * static_cast<double>(p.steps - p.step)
             : 0;
}

// "3/10", or "3" where nobody knows how many there will be.
std::string of(int64_t done, int64_t all) { return all > 0 ? fmt::format("{}/{}", done, all) : std::to_string(done); }

// Tokens or rows.
std::string rate(const Progress& p) {
  return grouped(static_cast<uint64_t>(std::nearbyint(std::max(p.per_second(), 0.0))));
}

}  // namespace

std::string duration(double seconds) {
  const int64_t s = std::isfinite(seconds) ? std::llround(std::max(seconds, 0.0)) : 0;
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string progress_bar(const Progress& p, int columns) {
  const std::string head = fmt::format("epoch {} ", of(p.epoch, p.epochs));
  const std::string time = p.step < p.steps ? duration(seconds_left(p)) + " left" : "in " + duration(p.seconds);
  const std::string tail =
      fmt::format(" step {}  loss {:.4f}  {} tok/s  {}", of(p.step, p.steps), p.epoch_loss, rate(p), time);
  const int room = columns - static_cast<int>(head.size() + tail.size()) - 3;
  std::string bar;
  if (room >= 6) {
    const int width = std::min(room, 30);
    const double share = p.steps > 0 ? std::min(1.0, static_cast<double>(p.step) / static_cast<double>(p.steps)) : 0;
    const int done = static_cast<int>(width * share);
    bar = "[" + std::string(static_cast<size_t>(done), '#') + std::string(static_cast<size_t>(width - done), '-') + "]";
  }
  return (head + bar + tail).substr(0, static_cast<size_t>(std::max(columns - 1, 0)));
}

std::string progress_line(const Progress& p) {
  const std::string valid = p.valid_loss ? fmt::format(" valid {:.4f}", *p.valid_loss) : "";
  return fmt::format("epoch {} step {} loss {:.4f}{} {} tok/s", of(p.epoch, p.epochs), of(p.step, p.steps),
                     p.epoch_loss, valid, rate(p));
}

std::string progress_json(const Progress& p) {
  nlohmann::ordered_json line = {{"epoch", p.epoch},
                                 {"epochs", p.epochs},
                                 {"step", p.step},
                                 {"steps", p.steps},
                                 {"loss", p.epoch_loss},
                                 {"tokens_per_second", p.per_second()},
                                 {"seconds_left", seconds_left(p)}};
  if (p.valid_loss) line["valid_loss"] = *p.valid_loss;
  return line.dump();
}

}  // namespace qkv
