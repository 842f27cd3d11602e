// qkv regress: Nadaraya-Watson and its relatives on the columns of a file.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "qkv/cli/command.h"
#include "qkv/cli/regress_input.h"
#include "qkv/cli/share_bar.h"
#include "qkv/cli/text_input.h"
#include "qkv/io/npy.h"
#include "qkv/plot/save.h"

namespace qkv::cli {
namespace {

void check_path(const char* option, const std::string& path, const std::vector<std::string>& endings) {
  std::string list;
  for (const std::string& ending : endings) {
    if (path.ends_with(ending)) return;
    list += (list.empty() ? "" : " or ") + ending;
  }
  throw UsageError(text(option, ": expected a path that ends in ", list, ", got \"", path, "\""));
}

class Regress : public Command {
 public:
  std::string name() const override { return "regress"; }
  Text summary() const override {
    return {"kernel regression (Nadaraya-Watson) on a .csv or .npy file",
            "对 .csv 或 .npy 文件做核回归（Nadaraya-Watson）"};
  }
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
  void print_notes(const report::RegressionData& input) const;

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
  options.option("--data FILE",
                 {"a .csv file (header or not) or an .npy of shape (rows, columns)",
                  ".csv 文件（有无表头均可）或形状为 (行, 列) 的 .npy"},
                 data_);
  options.option("--x NAME",
                 {"a column of inputs, by name or number; repeat for several; all but y when absent",
                  "输入列（列名或序号），可重复；默认为 y 以外的所有列"},
                 x_);
  options.option(
      "--y NAME",
      {"a column of outputs; repeat for several; the last one when absent", "输出列，可重复；默认为最后一列"}, y_);
  options.option("--kernel K", {"the weight of a distance", "核函数"}, regression_.kernel);
  options.option("--estimator E",
                 {"average, local-constant (Nadaraya-Watson) or local-linear",
                  "average、local-constant（Nadaraya-Watson）或 local-linear"},
                 regression_.estimator);
  options.option("--bandwidth H",
                 {"a number (or one a column of x: 1,2.5), rule, cv (leave-one-out) or learn (by gradient)",
                  "带宽：数值（或每列一个：1,2.5）、rule、cv（留一法）或 learn（梯度学习）"},
                 bandwidth_);
  options.option("--at POINT",
                 {"where to predict: 57, or 57,83 for two columns of x, or a file; repeat for several",
                  "预测位置：57，两列输入时为 57,83，或文件；可重复"},
                 at_);
  options.option("--grid N", {"predict at N points over the range of x (100)", "在 x 的范围内取 N 个点预测（100）"},
                 grid_, 1, 10'000'000);
  options.option("-o,--output FILE",
                 {"write the predictions to a .csv or .npy instead of printing them", "把预测写入 .csv 或 .npy 文件"},
                 output_);
  options.flag("--band", {"add a pointwise confidence band", "加上逐点置信带"}, band_);
  options.option("--level P", {"the band's level", "置信水平"}, level_, 1e-6, 1 - 1e-9);
  options.flag("--effective-keys",
               {"add how many keys each point really looks at: exp(entropy of its weights)",
                "加上每个点的有效键数：exp(权重的熵)"},
               effective_);
  options.option("--plot FILE",
                 {"draw data, fit and band (.svg, .png, .txt)", "绘制数据、拟合与置信带（.svg、.png、.txt）"}, plot_);
  options.option("--weights FILE", {"write the weights (points, rows) as .npy", "把权重 (点, 行) 写成 .npy"}, weights_);
  options.option("--weights-plot FILE", {"draw the weights as a heat map", "把权重画成热图"}, weights_plot_);
  options.option("--rate R", {"learn: learning rate", "learn：学习率"}, rate_, 1e-300);
  options.option("--epochs N", {"learn: steps", "learn：步数"}, epochs_, 1, 1'000'000);
  options.flag("--drop-missing",
               {"drop rows with empty or NaN cells instead of refusing them", "丢弃含空值或 NaN 的行，而不是报错"},
               drop_missing_);
  options.flag("--json", {"print JSON", "输出 JSON"}, json_);
}

void Regress::check_command_line() const {
  if (data_.empty()) throw UsageError("the option --data FILE is missing");
  if (!at_.empty() && grid_) throw UsageError("--at and --grid exclude each other");
  for (const auto& written : {output_, plot_, weights_, weights_plot_})
    if (written) refuse_overwriting(*written, {{data_}});
  if (output_ && weights_ && *output_ == *weights_) throw UsageError("--output and --weights cannot be one file");
  if (output_) check_path("--output", *output_, {".csv", ".npy"});
  if (weights_) check_path("--weights", *weights_, {".npy"});
  if (plot_) check_path("--plot", *plot_, {".svg", ".png", ".txt"});
  if (weights_plot_) check_path("--weights-plot", *weights_plot_, {".svg", ".png", ".txt"});
  if (bandwidth_ == "learn" &&
      (regression_.kernel != KernelShape::gaussian || regression_.estimator != Estimator::local_constant))
    throw UsageError(text("--bandwidth learn is for the gaussian kernel and the local-constant estimator, got ",
                          name_of(regression_.kernel), " and ", regression_.estimator));
}

std::vector<double> Regress::choose_bandwidth(const report::RegressionData& input, const Global& global) {
  if (bandwidth_ == "rule") return rule_bandwidth(input.x, regression_.kernel);
  if (bandwidth_ == "cv") {
    ShareBar bar(global.log_format);
    const Text what{"cross-validation", "交叉验证"};
    result_.validated = cross_validate(KernelRegression(input.x, input.y, regression_), [&](const SearchProgress& p) {
      const Text tried{text(p.evaluations, " widths tried"), text("已试 ", p.evaluations, " 个带宽")};
      bar.draw(p.share, what.in(global.language), tried.in(global.language));
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
    if (!value) throw UsageError(text("--bandwidth: expected a number, rule, cv or learn, got \"", bandwidth_, "\""));
    if (!(*value > 0)) throw UsageError(text("--bandwidth: must be positive and finite, got ", *value));
    out.push_back(*value);
  }
  if (out.size() != 1 && out.size() != columns)
    throw UsageError(text("--bandwidth: ", out.size(), " numbers for ", columns, " columns of x"));
  return out;
}

Points Regress::points(const report::RegressionData& input) const {
  if (!at_.empty()) return read_points(at_, input.x_names);
  if (input.x_names.size() > 1) {
    if (grid_)
      throw UsageError(text("--grid is for one column of x, there are ", input.x_names.size()),
                       "give points with --at, or none for the data's own");
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

void Regress::print_notes(const report::RegressionData& input) const {
  if (input.dropped) fmt::print(stderr, "note: {} rows with missing numbers were dropped\n", input.dropped);
  if (bandwidth_ == "rule" || bandwidth_ == "cv" || bandwidth_ == "learn")
    fmt::print(stderr, "note: bandwidth {} by {}\n", fmt::join(regression_.bandwidth, ","), bandwidth_);
  if (result_.predictions.absent)
    fmt::print(stderr, "note: {} of {} points have no neighbour within the bandwidth: no prediction there\n",
               result_.predictions.absent, result_.at.rows);
}

int Regress::run(const Global& global) {
  check_command_line();
  const report::RegressionData input =
      read_regress_data(data_, x_, y_, drop_missing_ ? Missing::drop_row : Missing::refuse);
  if (input.x_names.size() > 1 && plot_)
    throw UsageError(text("--plot is for one column of x, there are ", input.x_names.size()));
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
  if (plot_) save(fit_figure(input, result_), *plot_);
  if (weights_plot_) save(weights_figure(input, at, regression), *weights_plot_);
  if (!global.quiet) print_notes(input);
  return 0;
}

}  // namespace

std::unique_ptr<Command> regress_command() { return std::make_unique<Regress>(); }

}  // namespace qkv::cli
