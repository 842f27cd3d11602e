// qkv plot: a heat-map grid or curves from .npy, .csv or metrics.jsonl to .svg, .png or the terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "qkv/cli/colour_options.h"
#include "qkv/cli/command.h"
#include "qkv/cli/terminal.h"
#include "qkv/io/csv.h"
#include "qkv/io/file.h"
#include "qkv/io/npy.h"
#include "qkv/plot/save.h"
#include "qkv/plot/terminal.h"

namespace qkv::cli {
namespace {

constexpr const char* kIndex = "index";  // the x of a file with one axis

// Columns of the epoch lines of a JSON lines file: x, then y; without y, the losses that the file has.
Table read_metrics(const std::string& path, const std::string& x, std::vector<std::string> y) {
  const InputFile file(path);  // an unreadable file is an error that names it
  std::ifstream lines(path);
  Table table;
  int64_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    ++count;
    const auto entry = nlohmann::json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step") || !entry["step"].is_number() || !entry.contains("loss") ||
        !entry["loss"].is_number())
      refuse("{path}: line {count}: expected a JSON object with \"step\" and \"loss\"", "path"_a = path,
             "count"_a = count);
    if (entry.value("kind", "epoch") != "epoch") continue;
    if (y.empty())
      y = entry.contains("valid_loss") ? std::vector<std::string>{"loss", "valid_loss"}
                                       : std::vector<std::string>{"loss"};
    if (table.names.empty()) {
      table.names = {x};
      table.names.insert(table.names.end(), y.begin(), y.end());
      table.columns.resize(table.names.size());
    }
    for (size_t c = 0; c < table.names.size(); ++c) {
      const auto found = entry.find(table.names[c]);
      if (found == entry.end() || !found->is_number()) {
        std::string known;
        for (const auto& [name, value] : entry.items())
          if (value.is_number()) known += (known.empty() ? "" : ", ") + name;
        throw Error(tr("{path}: line {count}: has no number \"{names}\"", "path"_a = path, "count"_a = count,
                       "names"_a = table.names[c]),
                    tr("it has {known}; repeat --y for several columns", "known"_a = known));
      }
      table.columns[c].push_back(found->get<double>());
    }
  }
  if (count == 0) refuse("{path}: is empty, expected JSON lines", "path"_a = path);
  if (table.names.empty()) refuse("{path}: has no epoch lines", "path"_a = path);
  return table;
}

// The name of a column on the figure. Files that qkv writes, and counted rows, have names in the user's language.
Text column_label(const std::string& file, const std::string& name) {
  if (file.ends_with(".npy") && name == kIndex) return tr("index");
  if (!file.ends_with(".jsonl")) return name;
  if (name == "step") return tr("step");
  if (name == "epoch") return tr("epoch");
  if (name == "loss") return tr("loss");
  if (name == "valid_loss") return tr("valid_loss");
  return name;
}

class PlotCommand : public Command {
 public:
  std::string name() const override { return "plot"; }
  Text summary() const override { return tr("heat maps or curves from .npy, .csv or metrics.jsonl"); }
  std::string example() const override { return "qkv plot weights.npy --xlabel Keys --ylabel Queries -o heat.png"; }

  void bind(Options& options) override {
    options.positionals(
        "FILE",
        tr(".npy (one axis: a curve; two to four: heat maps), .csv or .jsonl; several files of curves share a panel"),
        files_, 1);
    options.option("-o,--output FILE", tr(".svg, .png or .txt (default: draw on the terminal)"), output_);
    options.option("--kind KIND", tr("curves, points or bars for columns; heatmap for arrays"), kind_,
                   {"auto", "heatmap", "curves", "points", "bars", "histogram"});
    options.option("--x COLUMN", tr("column of the x axis (default: the first; for .jsonl: step)"), x_);
    options.option(
        "--y COLUMN",
        tr("a column to draw; repeat for more (default: all others; for .jsonl: loss, and valid_loss if there is one)"),
        y_);
    options.option("--title TEXT", tr("title of the figure"), title_);
    options.option("--titles A,B,...", tr("a title for every column of a grid"), titles_);
    options.option("--xlabel TEXT", tr("label of the x axis"), x_label_);
    options.option("--ylabel TEXT", tr("label of the y axis"), y_label_);
    options.option("--xtokens A,B,...", tr("a word for every column of a heat map"), x_tokens_);
    options.option("--ytokens A,B,...", tr("a word for every row of a heat map"), y_tokens_);
    options.option("--xlim LOW,HIGH", tr("range of the x axis"), x_limits_);
    options.option("--ylim LOW,HIGH", tr("range of the y axis"), y_limits_);
    options.flag("--log-x", tr("logarithmic x axis"), log_x_);
    options.flag("--log-y", tr("logarithmic y axis"), log_y_);
    colours_.bind(options);
    options.flag("--per-panel", tr("a colour scale for every panel"), per_panel_);
    options.option("--size WxH", tr("size in inches, such as 6x2.5"), size_);
  }

  int run(const Global& global) override {
    if (output_) check_figure_path(*output_);
    Figure figure = make();
    if (!title_.empty()) figure.title = title_;
    if (size_) {
      const auto [width, height] = two_numbers("--size", *size_, 'x');
      if (!(width > 0 && height > 0 && width <= 100 && height <= 100))
        throw UsageError(tr("--size: expected inches between 0 and 100, got \"{size}\"", "size"_a = *size_));
      figure.size = FigureSize{width, height};
    }
    if (output_)
      save(figure, *output_, global.language);
    else
      fmt::print("{}",
                 terminal(figure, {terminal_columns(STDOUT_FILENO),
                                   global.color ? TerminalColour::truecolor : TerminalColour::ascii, global.language}));
    return 0;
  }

 private:
  Figure make() const {
    for (const std::string& file : files_)
      if (file.ends_with(".npz") || file.ends_with(".safetensors"))
        throw Error(tr("{file}: contains several arrays; expected .npy, .csv or .jsonl", "file"_a = file),
                    tr("qkv info {file} lists them", "file"_a = file));
    const bool heat = kind_ == "heatmap" ||
                      (kind_ == "auto" && files_[0].ends_with(".npy") && read_npy(files_[0]).shape().rank() > 1);
    if (!heat) return make_curves();
    if (files_.size() > 1)
      throw UsageError(tr("a heat map takes one file, got {files}", "files"_a = std::to_string(files_.size())));
    return make_heatmaps();
  }

  Figure make_heatmaps() const {
    HeatMapOptions options;
    options.colours = colours_.over({.per_panel = per_panel_});
    if (!x_tokens_.empty()) options.x_tokens = split(x_tokens_, ',');
    if (!y_tokens_.empty()) options.y_tokens = split(y_tokens_, ',');
    const std::string& file = files_[0];
    Tensor values;
    if (file.ends_with(".csv")) {
      const Table table = read_csv(file).table;
      const int64_t rows = table.rows(), columns = static_cast<int64_t>(table.columns.size());
      values = Tensor::empty({rows, columns});
      for (int64_t c = 0; c < columns; ++c)
        for (int64_t r = 0; r < rows; ++r)
          values.mutable_ptr()[r * columns + c] =
              static_cast<float>(table.columns[static_cast<size_t>(c)][static_cast<size_t>(r)]);
    } else {
      values = read_npy(file).to_tensor(file);
    }
    if (values.rank() < 2 || values.rank() > 4)
      refuse("{file}: a heat map needs an array with 2 to 4 axes, got shape {shape}", "file"_a = file,
             "shape"_a = values.shape());
    return heatmaps(values, x_label_, y_label_,
                    labels(titles_.empty() ? std::vector<std::string>{} : split(titles_, ',')), options);
  }

  Table read_table(const std::string& file) const {
    if (file.ends_with(".jsonl")) return read_metrics(file, x_.value_or("step"), y_);
    if (!file.ends_with(".npy")) return read_csv(file, {.columns = wanted_columns(file)}).table;
    const Tensor values = read_npy(file).to_tensor(file);
    if (values.rank() == 0 || values.rank() > 2)
      refuse("{file}: curves need an array with 1 or 2 axes, got shape {shape}", "file"_a = file,
             "shape"_a = values.shape());
    const int64_t rows = values.size(0), columns = values.rank() == 2 ? values.size(1) : 1;
    Table table;
    if (values.rank() == 1) {
      table.names.push_back(kIndex);
      table.columns.emplace_back();
      for (int64_t r = 0; r < rows; ++r) table.columns[0].push_back(static_cast<double>(r));
    }
    for (int64_t c = 0; c < columns; ++c) {
      table.names.push_back(std::to_string(c + 1));
      table.columns.emplace_back();
      for (int64_t r = 0; r < rows; ++r) table.columns.back().push_back(values.ptr()[r * columns + c]);
    }
    return table;
  }

  // --x and --y name columns; without them the first column is x and all others are drawn.
  std::vector<std::string> wanted_columns(const std::string& file) const {
    if (!x_ && y_.empty()) return {};
    const auto all = csv_columns(file);
    std::vector<std::string> wanted = {x_ ? *x_ : all.at(0)};
    if (y_.empty())
      for (const std::string& name : all)
        if (name != wanted[0]) wanted.push_back(name);
    wanted.insert(wanted.end(), y_.begin(), y_.end());
    return wanted;
  }

  Axis axis(const Label& label, const std::optional<std::string>& limits, const char* option, bool log) const {
    Axis a{.label = label, .scale = log ? AxisScale::log : AxisScale::linear};
    if (limits) std::tie(a.low, a.high) = two_numbers(option, *limits, ',');
    return a;
  }

  Figure make_curves() const {
    std::vector<Series> all;
    std::vector<NamedValues> columns;
    Label first_x;
    for (const std::string& file : files_) {
      const Table table = read_table(file);
      if (table.columns.size() < 2 && kind_ != "histogram")
        refuse("{file}: curves need at least two columns, x and y, got {columns}", "file"_a = file,
               "columns"_a = table.columns.size());
      if (first_x.empty()) first_x = column_label(file, table.names[0]);
      for (size_t c = kind_ == "histogram" && table.columns.size() == 1 ? 0 : 1; c < table.columns.size(); ++c) {
        const Text column = column_label(file, table.names[c]);
        const Text name = files_.size() > 1 ? tr("{file} {column}", "file"_a = file, "column"_a = column) : column;
        all.push_back({name, table.columns[0], table.columns[c]});
        if (kind_ == "points") all.back().style = line_style("o");
        columns.push_back({name, table.columns[c]});
      }
    }
    const Axis x =
        axis(x_label_.empty() && kind_ != "histogram" ? first_x : Label(x_label_), x_limits_, "--xlim", log_x_);
    const Axis y =
        axis(!y_label_.empty() || all.size() > 1 ? Label(y_label_) : all[0].name, y_limits_, "--ylim", log_y_);
    if (kind_ == "histogram")
      return histogram(columns, x,
                       axis(y_label_.empty() ? Label(tr("count")) : Label(y_label_), y_limits_, "--ylim", log_y_));
    if (kind_ == "bars") {
      std::vector<Label> categories;
      for (double at : all[0].x) categories.emplace_back(fmt::format("{:g}", at));
      return bars(categories, columns, x, y);
    }
    if (all.size() == 1) all[0].name = {};  // the axis label shows it
    return curves(all, x, y);
  }

  std::vector<std::string> files_, y_;
  std::optional<std::string> output_, x_, x_limits_, y_limits_, size_;
  std::string kind_ = "auto", title_, titles_, x_label_, y_label_, x_tokens_, y_tokens_;
  ColourOptions colours_;
  bool log_x_ = false, log_y_ = false, per_panel_ = false;
};

}  // namespace

std::unique_ptr<Command> plot_command() { return std::make_unique<PlotCommand>(); }

}  // namespace qkv::cli
