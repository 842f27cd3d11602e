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

Text rate(const Progress& p) {
  const std::string number = grouped(static_cast<uint64_t>(std::nearbyint(std::max(p.per_second(), 0.0))));
  if (p.counted == Counted::images) return tr("{rate} images/s", "rate"_a = number);
  if (p.counted == Counted::texts) return tr("{rate} texts/s", "rate"_a = number);
  return tr("{rate} tok/s", "rate"_a = number);
}

const char* per_second_key(Counted counted) {
  if (counted == Counted::images) return "images_per_second";
  return counted == Counted::texts ? "texts_per_second" : "tokens_per_second";
}

// With ranks: the speed of all, and how much of its time the slowest of them computes.
Text rate_of_all(const Progress& p) {
  if (p.ranks == 1) return rate(p);
  return tr("{rate} ({ranks} ranks, slowest {slowest}: computes {share:.0f} %)", "rate"_a = rate(p),
            "ranks"_a = p.ranks, "slowest"_a = p.slowest_rank, "share"_a = 100 * p.slowest_share);
}

}  // namespace

std::string duration(double seconds) {
  const int64_t s = std::isfinite(seconds) ? std::llround(std::max(seconds, 0.0)) : 0;
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{}:{:02}", s / 60, s % 60);
}

Text progress_head(const Progress& p) { return tr("epoch {epoch}", "epoch"_a = of(p.epoch, p.epochs)); }

Text progress_tail(const Progress& p) {
  const Text time = p.step < p.steps ? tr("{time} left", "time"_a = duration(seconds_left(p)))
                                     : tr("in {time}", "time"_a = duration(p.seconds));
  return tr("step {step}  loss {loss:.4f}  {rate}  {time}", "step"_a = of(p.step, p.steps), "loss"_a = p.epoch_loss,
            "rate"_a = rate_of_all(p), "time"_a = time);
}

Text progress_line(const Progress& p) {
  Text loss = verbatim(fmt::format("{:.4f}", p.epoch_loss));
  if (p.valid_accuracy && p.valid_loss)
    loss = tr("{loss:.4f} valid {valid:.4f} accuracy {accuracy:.4f}", "loss"_a = p.epoch_loss,
              "valid"_a = *p.valid_loss, "accuracy"_a = *p.valid_accuracy);
  else if (p.valid_loss)
    loss = tr("{loss:.4f} valid {valid:.4f}", "loss"_a = p.epoch_loss, "valid"_a = *p.valid_loss);
  return tr("epoch {epoch} step {step} loss {loss} {rate}", "epoch"_a = of(p.epoch, p.epochs),
            "step"_a = of(p.step, p.steps), "loss"_a = loss, "rate"_a = rate_of_all(p));
}

std::string progress_json(const Progress& p) {
  nlohmann::ordered_json line = {{"epoch", p.epoch},
                                 {"epochs", p.epochs},
                                 {"step", p.step},
                                 {"steps", p.steps},
                                 {"loss", p.epoch_loss},
                                 {per_second_key(p.counted), p.per_second()},
                                 {"seconds_left", seconds_left(p)}};
  if (p.ranks > 1) {
    line["ranks"] = p.ranks;
    line["slowest_rank"] = p.slowest_rank;
    line["slowest_share"] = p.slowest_share;
  }
  if (p.valid_loss) line["valid_loss"] = *p.valid_loss;
  if (p.valid_accuracy) line["valid_accuracy"] = *p.valid_accuracy;
  return line.dump();
}

}  // namespace qkv
