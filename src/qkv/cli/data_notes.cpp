// qkv data nadaraya-watson, waist, measures: the small tables of the chapter's notes.
#include <cstdio>

#include "qkv/cli/data.h"
#include "qkv/data/notes.h"

namespace qkv::cli {
namespace {

class TableData : public Command {
 public:
  void bind(Options& o) override { o.option("-o,--output FILE", tr("the .csv file to write"), output_); }
  int run(const Global& global) override {
    if (output_ && !output_->ends_with(".csv"))
      throw UsageError(tr("--output: expected a .csv file, got \"{output}\"", "output"_a = *output_));
    const Table table = make(global.seed);
    const std::string csv = csv_text(table);
    if (output_)
      write_csv(*output_, table);
    else
      std::fwrite(csv.data(), 1, csv.size(), stdout);
    return 0;
  }

 private:
  virtual Table make(uint64_t seed) const = 0;
  std::optional<std::string> output_;
};

class NadarayaWatson : public TableData {
 public:
  std::string name() const override { return "data nadaraya-watson"; }
  Text summary() const override { return tr("the points of the chapter's kernel regression"); }
  std::string example() const override { return "qkv data nadaraya-watson -o points.csv"; }
  void bind(Options& o) override {
    TableData::bind(o);
    o.option("--points N", tr("number of points (50; English edition 40)"), points_, 1, 100'000'000);
    o.option("--noise S", tr("standard deviation of the noise (0.5; English edition 1)"), noise_, 0);
    o.option("--edition E", tr("zh is 2 sin x + x^0.8, en is 2 sin x + x"), edition_);
  }

 private:
  Table make(uint64_t seed) const override {
    NotesOptions notes = NotesOptions::of(edition_);
    notes.points = points_.value_or(notes.points);
    notes.noise = noise_.value_or(notes.noise);
    return nadaraya_watson_data(notes_rng(seed, notes.edition), notes);
  }
  Edition edition_ = Edition::zh;
  std::optional<int64_t> points_;
  std::optional<double> noise_;
};

class Waist : public TableData {
 public:
  std::string name() const override { return "data waist"; }
  Text summary() const override { return tr("waists and weights: a small table"); }
  std::string example() const override { return "qkv data waist -o waist.csv"; }

 private:
  Table make(uint64_t) const override { return waist_data(); }
};

class Measures : public TableData {
 public:
  std::string name() const override { return "data measures"; }
  Text summary() const override { return tr("waists, chests, weights and heights: a small table"); }
  std::string example() const override { return "qkv data measures -o measures.csv"; }

 private:
  Table make(uint64_t) const override { return measures_data(); }
};

}  // namespace

std::unique_ptr<Command> data_nadaraya_watson() { return std::make_unique<NadarayaWatson>(); }
std::unique_ptr<Command> data_waist() { return std::make_unique<Waist>(); }
std::unique_ptr<Command> data_measures() { return std::make_unique<Measures>(); }

}  // namespace qkv::cli
