// qkv data: writes the data sets that come with the program.
#include <cstdio>

#include "qkv/cli/command.h"
#include "qkv/cli/data_en_fr.h"
#include "qkv/data/notes.h"

namespace qkv::cli {
namespace {

class Data : public Command {
 public:
  std::string name() const override { return "data"; }
  Text summary() const override {
    return {"write a built-in data set: en-fr, nadaraya-watson, waist or measures",
            "写出内置数据集：en-fr、nadaraya-watson、waist 或 measures"};
  }
  std::string example() const override { return "qkv data nadaraya-watson -o points.csv"; }
  void bind(Options& options) override {
    options.positional("NAME", {"en-fr, nadaraya-watson, waist or measures", "en-fr、nadaraya-watson、waist 或 measures"}, set_);
    options.option("-o,--output FILE", {"a .csv file (en-fr: tab-separated pairs); standard output when absent",
                    "输出的 .csv 文件（en-fr：制表符分隔的句对）；默认写到标准输出"}, output_);
    options.option("--points N", {"nadaraya-watson: how many (50; English edition 40)",
                    "nadaraya-watson：点数（50；英文版 40）"}, points_, 1, 100'000'000);
    options.option("--noise S", {"nadaraya-watson: standard deviation of the noise (0.5; English edition 1)",
                    "nadaraya-watson：噪声标准差（0.5；英文版 1）"}, noise_, 0);
    options.option("--edition E", {"nadaraya-watson: zh is 2 sin x + x^0.8, en is 2 sin x + x",
                    "nadaraya-watson：zh 为 2 sin x + x^0.8，en 为 2 sin x + x"}, edition_, {"zh", "en"});
    en_fr_.bind(options);
  }

  int run(const Global& global) override {
    if (set_ == "en-fr") {
      refuse_points();
      en_fr_.run(global, output_);
      return 0;
    }
    const Table table = make(global);
    if (output_) {
      write_csv(*output_, table);
      return 0;
    }
    const std::string text = csv_text(table);
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }

 private:
  void refuse_points() const {
    if (points_ || noise_ || edition_ != "zh")
      throw UsageError(text("--points, --noise and --edition belong to nadaraya-watson, not to \"", set_, "\""));
  }
  Table make(const Global& global) const {
    if (en_fr_.given())
      throw UsageError(text("--size, --alignments, --reverse and --split belong to en-fr, not to \"", set_, "\""));
    if (output_ && !output_->ends_with(".csv")) throw UsageError(text("--output: expected a .csv file, got \"", *output_, "\""));
    if (set_ == "nadaraya-watson") {
      NotesOptions options = NotesOptions::of(edition_ == "en" ? Edition::en : Edition::zh);
      options.points = points_.value_or(options.points);
      options.noise = noise_.value_or(options.noise);
      return nadaraya_watson_data(Rng(global.seed), options);
    }
    refuse_points();
    if (set_ == "waist") return waist_data();
    if (set_ == "measures") return measures_data();
    throw UsageError(text("unknown data set \"", set_, "\": expected en-fr, nadaraya-watson, waist or measures"));
  }

  std::string set_, edition_ = "zh";
  std::optional<std::string> output_;
  std::optional<int64_t> points_;
  std::optional<double> noise_;
  DataEnFr en_fr_;
};

}  // namespace

std::unique_ptr<Command> data_command() { return std::make_unique<Data>(); }

}  // namespace qkv::cli
