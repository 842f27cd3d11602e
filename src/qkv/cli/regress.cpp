// qkv regress: Nadaraya-Watson and its relatives on the columns of a file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/cli/command.h"
#include "qkv/cli/regress_input.h"
#include "qkv/cli/share_bar.h"
#include "qkv/cli/text_input.h"
#include "qkv/core/numbers.h"
#include "qkv/io/npy.h"
#include "qkv/plot/save.h"

namespace qkv::cli {
namespace {

void check_path(const char* option, const std::string& path, const std::vector<std::string>& endings) {
  Text list;
  for (const std::string& ending : endings) {
    if (path.ends_with(ending)) return;
    list = list.empty() ? verbatim(ending) : tr("{list} or {ending}", "list"_a = list, "ending"_a = ending);
  }
  throw UsageError(tr("{option}: expected a path that ends in {list}, got \"{path}\"", "option"_a = option,
                      "list"_a = list, "path"_a = path));
}

class Regress : public Command {
 public:
  std::string name() const override { return "regress"; }
  Text summary() const override { return tr("kernel regression (Nadaraya-Watson) on a .csv or .npy file"); }
  std::string example() const override {
    return "qkv regress --data waist.csv --x waist --y weight --kernel gaussian --bandwidth 1 --at 57";
  }
  void bind(Options& options) override;
  int run(const Global& global) override;

 private:
  void check_command_line() const;
  std::vector<double> choose_bandwidth(const report::RegressionData& input, const Global& global);
  std::vector<double> given_bandwidth(size_t columns) const;
  Points points(const report::RegressionData& input) const;
  void write(const Table& table) const;
  void print_notes(const report::RegressionData& input, const Global& global) const;

  std::string data_, bandwidth_ = "1";
  std::vector<std::string> x_, y_, at_;
  std::optional<std::string> output_, plot_, weights_, weights_plot_;
  std::optional<int64_t> grid_;
  double level_ = 0.95, rate_ = 0.5;
  int64_t epochs_ = 5;
  bool band_ = false, effective_ = false, drop_missing_ = false, json_ = false;
  RegressionOptions regression_;
  report::RegressionResult result_;
};

void Regress::bind(Options& options) {
  options.option("--data FILE", tr("a .csv file (with or without a header) or an .npy of shape (rows, columns)"),
                 data_);
  options.option("--x NAME", tr("input column, by name or number; repeat for several (default: all but y)"), x_);
  options.option("--y NAME", tr("output column; repeat for several (default: the last one)"), y_);
  options.option("--kernel K", tr("the kernel: how weight falls with distance"), regression_.kernel);
  options.option("--estimator E", tr("average, local-constant (Nadaraya-Watson) or local-linear"),
                 regression_.estimator);
  options.option("--bandwidth H",
                 tr("a number (or one per column of x: 1,2.5), rule, cv (leave-one-out) or learn (by gradient)"),
                 bandwidth_);
  options.option("--at POINT",
                 tr("where to predict: 57, or 57,83 for two columns of x, or a file; repeat for more points"), at_);
  options.option("--grid N", tr("predict at N points over the range of x (100)"), grid_, 1, 10'000'000);
  options.option("-o,--output FILE", tr("write the predictions to a .csv or .npy instead of printing them"), output_);
  options.flag("--band", tr("add a pointwise confidence band"), band_);
  options.option("--level P", tr("the band's level"), level_, 1e-6, 1 - 1e-9);
  options.flag("--effective-keys", tr("add the effective number of keys of each point: exp(entropy of its weights)"),
               effective_);
  options.option("--plot FILE", tr("draw data, fit and band (.svg, .png, .txt)"), plot_);
  options.option("--weights FILE", tr("write the weights (points, rows) as .npy"), weights_);
  options.option("--weights-plot FILE", tr("draw the weights as a heat map"), weights_plot_);
  options.option("--rate R", tr("learn: learning rate"), rate_, 1e-300);
  options.option("--epochs N", tr("learn: steps"), epochs_, 1, 1'000'000);
  options.flag("--drop-missing", tr("drop rows with empty or NaN cells instead of refusing them"), drop_missing_);
  options.flag("--json", tr("print JSON"), json_);
}

void Regress::check_command_line() const {
  if (data_.empty()) throw UsageError(tr("the option --data FILE is missing"));
  if (!at_.empty() && grid_) throw UsageError(tr("--at and --grid exclude each other"));
  for (const auto& written : {output_, plot_, weights_, weights_plot_})
    if (written) refuse_overwriting(*written, {{data_}});
  if (output_ && weights_ && *output_ == *weights_)
    throw UsageError(tr("--output and --weights cannot be the same file"));
  if (output_) check_path("--output", *output_, {".csv", ".npy"});
  if (weights_) check_path("--weights", *weights_, {".npy"});
  if (plot_) check_path("--plot", *plot_, {".svg", ".png", ".txt"});
  if (weights_plot_) check_path("--weights-plot", *weights_plot_, {".svg", ".png", ".txt"});
  if (bandwidth_ == "learn" &&
      (regression_.kernel != KernelShape::gaussian || regression_.estimator != Estimator::local_constant))
    throw UsageError(tr(
        "--bandwidth learn is for the gaussian kernel and the local-constant estimator, got {kernel} and {estimator}",
        "kernel"_a = name_of(regression_.kernel), "estimator"_a = regression_.estimator));
}

std::vector<double> Regress::choose_bandwidth(const report::RegressionData& input, const Global& global) {
  if (bandwidth_ == "rule") return rule_bandwidth(input.x, regression_.kernel);
  if (bandwidth_ == "cv") {
    ShareBar bar(global);
    result_.validated = cross_validate(KernelRegression(input.x, input.y, regression_), [&](const SearchProgress& p) {
      bar.draw(p.share, tr("cross-validation"), tr("{evaluations} widths tried", "evaluations"_a = p.evaluations));
    });
    bar.finish();
    return result_.validated->bandwidth;
  }
  if (bandwidth_ == "learn") {
    result_.learned = learn_bandwidth(input.x, input.y, Rng(global.seed).at("w"),
                                      {.rate = rate_, .epochs = static_cast<int>(epochs_)});
    return result_.learned->bandwidth();
  }
  return given_bandwidth(input.x_names.size());
}

std::vector<double> Regress::given_bandwidth(size_t columns) const {
  std::vector<double> out;
  for (const std::string& part : split(bandwidth_, ',')) {
    const auto value = parse_number(part);
    if (!value)
      throw UsageError(
          tr("--bandwidth: expected a number, rule, cv or learn, got \"{bandwidth}\"", "bandwidth"_a = bandwidth_));
    if (!(*value > 0))
      throw UsageError(tr("--bandwidth: must be positive and finite, got {value}", "value"_a = *value));
    out.push_back(*value);
  }
  if (out.size() != 1 && out.size() != columns)
    throw UsageError(
        tr("--bandwidth: {out} numbers for {columns} columns of x", "out"_a = out.size(), "columns"_a = columns));
  return out;
}

Points Regress::points(const report::RegressionData& input) const {
  if (!at_.empty()) return read_points(at_, input.x_names);
  if (input.x_names.size() > 1) {
    if (grid_)
      throw UsageError(tr("--grid is for one column of x, got {x_names}", "x_names"_a = input.x_names.size()),
                       tr("give points with --at; without --at and --grid the data's own points are used"));
    return input.x;
  }
  const auto [low, high] = std::minmax_element(input.x.values.begin(), input.x.values.end());
  const int64_t n = grid_.value_or(100);
  Points out(n, 1);
  for (int64_t i = 0; i < n; ++i) {  // both ends exactly
    const double share = n > 1 ? static_cast<double>(i) / static_cast<double>(n - 1) : 0.5;
    out.at(i, 0) = *low * (1 - share) + *high * share;
  }
  return out;
}

void Regress::write(const Table& table) const {
  if (!output_) {
    const std::string text = csv_text(table);
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else if (output_->ends_with(".csv")) {
    write_csv(*output_, table);
  } else {
    std::vector<double> values;
    for (int64_t i = 0; i < table.rows(); ++i)
      for (const auto& column : table.columns) values.push_back(column[static_cast<size_t>(i)]);
    write_npy(*output_, Array::of<double>({table.rows(), static_cast<int64_t>(table.columns.size())}, values));
  }
}

void Regress::print_notes(const report::RegressionData& input, const Global& global) const {
  if (input.dropped == 1) global.note(tr("1 row with missing numbers was dropped"));
  if (input.dropped > 1) global.note(tr("{rows} rows with missing numbers were dropped", "rows"_a = input.dropped));
  if (bandwidth_ == "rule" || bandwidth_ == "cv" || bandwidth_ == "learn")
    global.note(tr("bandwidth {width}, chosen by {method}",
                   "width"_a = fmt::format("{}", fmt::join(regression_.bandwidth, ",")), "method"_a = bandwidth_));
  if (result_.predictions.absent == 1)
    global.note(tr("1 of {points} points has no neighbour within the bandwidth, so no prediction",
                   "points"_a = result_.at.rows));
  else if (result_.predictions.absent > 1)
    global.note(tr("{absent} of {points} points have no neighbour within the bandwidth, so no prediction",
                   "absent"_a = result_.predictions.absent, "points"_a = result_.at.rows));
}

int Regress::run(const Global& global) {
  check_command_line();
  const report::RegressionData input =
      read_regress_data(data_, x_, y_, drop_missing_ ? Missing::drop_row : Missing::refuse);
  if (input.x_names.size() > 1 && plot_)
    throw UsageError(tr("--plot is for one column of x, got {x_names}", "x_names"_a = input.x_names.size()));
  regression_.bandwidth = choose_bandwidth(input, global);
  const Points& at = result_.at = points(input);
  const KernelRegression regression(input.x, input.y, regression_);
  result_.options = regression_;
  result_.predictions = band_ ? regression.predict_with_band(at, level_) : regression.predict(at);
  if (band_) result_.level = level_;
  if (effective_) result_.effective_keys = regression.effective_keys(at);
  if (json_) fmt::print("{}\n", to_json(input, result_, output_ ? report::JsonRows::without : report::JsonRows::with));
  if (!json_ || output_) write(prediction_table(input, result_));
  if (weights_) write_npy(*weights_, regression.weights(at));
  if (plot_) save(fit_figure(input, result_), *plot_, global.language);
  if (weights_plot_) save(weights_figure(input, at, regression), *weights_plot_, global.language);
  print_notes(input, global);
  return 0;
}

}  // namespace

std::unique_ptr<Command> regress_command() { return std::make_unique<Regress>(); }

}  // namespace qkv::cli
