// POST /regress and /regress/learn: kernel regression as attention.
#include <cmath>

#include "qkv/regression/bandwidth.h"
#include "qkv/serve/call.h"

namespace qkv::serve {
namespace {

constexpr size_t kMostPoints = 5000;
constexpr int64_t kMostCells = 64 * 1024;  // of the map of weights

struct Data {
  Points x, y;
};

Data read_data(const Fields& in) {
  const auto x = in.numbers("x", kMostPoints), y = in.numbers("y", kMostPoints);
  require(x.size() == y.size(), "x has {x} numbers and y has {y}: they must be equally many", "x"_a = x.size(),
          "y"_a = y.size());
  require(x.size() >= 2, "x: at least 2 points are needed, got {count}", "count"_a = x.size());
  return {Points::of(x), Points::of(y)};
}

Json finite(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double v : values) out.push_back(std::isfinite(v) ? Json(v) : Json());
  return out;
}

std::vector<double> evenly(double low, double high, int64_t count) {
  std::vector<double> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(count == 1 ? low : low + (high - low) * static_cast<double>(i) / static_cast<double>(count - 1));
  return out;
}

Estimator read_estimator(const Fields& in) {
  const std::string word = in.text("fit", "constant");
  if (word == "average") return Estimator::average;
  if (word == "linear") return Estimator::local_linear;
  if (word == "constant") return Estimator::local_constant;
  return parse_name<Estimator>(word, "fit");
}

double read_bandwidth(const Fields& in, const Data& data, KernelShape kernel, Estimator estimator) {
  if (!in.has("bandwidth") || in.at("bandwidth").is_string()) {
    const std::string word = in.text("bandwidth", "rule");
    if (word == "cv")
      return cross_validate(KernelRegression(data.x, data.y, {.kernel = kernel, .estimator = estimator})).bandwidth[0];
    if (word != "rule") refuse_word("bandwidth", word, {"rule", "cv"});
    return rule_bandwidth(data.x, kernel)[0];
  }
  return in.number("bandwidth", 1e-300, 1e300);
}

// The leave-one-out error over widths around the present one.
Json leave_one_out(const KernelRegression& regression, double bandwidth, const Call& call) {
  constexpr int kSteps = 32;
  const double spread = [&] {
    const auto [low, high] = std::minmax_element(regression.x().values.begin(), regression.x().values.end());
    return *high - *low;
  }();
  Json widths = Json::array(), errors = Json::array();
  for (int i = 0; spread > 0 && i <= kSteps; ++i) {
    call.go_on();
    const double width = spread * std::pow(10.0, -2.5 + 3.0 * i / kSteps);
    RegressionOptions options = regression.options();
    options.bandwidth = {width};
    widths.push_back(width);
    errors.push_back(regression.with(options).leave_one_out_score());
  }
  return {{"bandwidths", widths}, {"errors", errors}, {"now", regression.leave_one_out_score()}, {"at", bandwidth}};
}

Json rows_of(const Tensor& weights) { return nested(weights); }

}  // namespace

Json regress(const Call& call) {
  const Fields in = call.fields();
  const Data data = read_data(in);
  const KernelShape kernel = in.choice("kernel", KernelShape::gaussian);
  const Estimator estimator = read_estimator(in);
  const double bandwidth = read_bandwidth(in, data, kernel, estimator);
  call.go_on();
  const KernelRegression regression(data.x, data.y,
                                    {.kernel = kernel, .estimator = estimator, .bandwidth = {bandwidth}});
  const auto [least, most] = std::minmax_element(data.x.values.begin(), data.x.values.end());
  double low = *least, high = *most;
  int64_t count = 101;
  if (in.has("grid")) {
    const Fields grid = in.object("grid");
    low = grid.number("low", -1e100, 1e100);
    high = grid.number("high", low, 1e100);
    count = grid.whole("count", 1, 2000);
  }
  const Points at = Points::of(evenly(low, high, count));
  const double level = in.number("level", 0.01, 0.9999, 0.95);
  // Where no row has a neighbour there are no residuals to make a band from; the fit is there all the same.
  const bool band = regression.leave_one_out().absent < data.x.rows;
  const Predictions fit = band ? regression.predict_with_band(at, level) : regression.predict(at);
  Json out = {{"bandwidth", bandwidth},
              {"w", 1 / bandwidth},
              {"temperature", bandwidth * bandwidth},
              {"kernel", name_of(kernel)},
              {"estimator", name_of(estimator)},
              {"level", level},
              {"grid", at.values},
              {"fit", finite(fit.values.values)},
              {"low", band ? finite(fit.low.values) : Json()},
              {"high", band ? finite(fit.high.values) : Json()},
              {"deviation", band ? Json(fit.deviation[0]) : Json()},
              {"absent", fit.absent}};
  if (in.has("at")) {
    const Points one = Points::of({in.number("at", -1e100, 1e100)});
    const Predictions there = regression.predict(one);
    out["at"] = {{"x", one.values[0]},
                 {"prediction", finite(there.values.values)[0]},
                 {"weights", rows_of(regression.weights(one))[0]},
                 {"effective", regression.effective_keys(one)[0]}};
  }
  if (in.flag("map", true)) {
    const int64_t rows = std::max<int64_t>(1, std::min<int64_t>({64, count, kMostCells / data.x.rows}));
    const Points some = Points::of(evenly(low, high, rows));
    out["map"] = {{"rows", some.values}, {"weights", rows_of(regression.weights(some))}};
  }
  call.go_on();
  if (in.flag("leave_one_out", true)) out["leave_one_out"] = leave_one_out(regression, bandwidth, call);
  out["command"] = command_line({"regress", "DATA.csv", "--kernel", std::string(name_of(kernel)), "--estimator",
                                 std::string(name_of(estimator)), "--bandwidth", Json(bandwidth).dump()});
  return out;
}

Json regress_learn(const Call& call) {
  const Fields in = call.fields();
  const Data data = read_data(in);
  LearnOptions options{.rate = in.number("rate", 1e-12, 1e6, 0.5),
                       .epochs = static_cast<int>(in.whole("epochs", 1, 200, 5))};
  if (in.has("start")) options.start = in.number("start", -1e6, 1e6);
  const int epochs = options.epochs;
  Json w = Json::array(), losses;
  Learned learned;
  const Rng rng(static_cast<uint64_t>(in.whole("seed", 0, INT64_C(1) << 53, 0)));
  // One step per epoch: the path of w is that of trainings of 1, 2, ... epochs, each continuing the one before.
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    call.go_on();
    options.epochs = epoch;
    learned = learn_bandwidth(data.x, data.y, rng, options);
    w.push_back(learned.w[0]);
  }
  Json out = {{"start", learned.start[0]}, {"w", w}, {"loss", learned.losses}};
  if (learned.w[0] != 0 && std::isfinite(learned.w[0])) out["bandwidth"] = learned.bandwidth()[0];
  return out;
}

}  // namespace qkv::serve
