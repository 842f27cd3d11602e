// qkv data: writes the data sets that come with the program, and prepares your own text.
#include "qkv/cli/data.h"

#include <algorithm>
#include <array>
#include <map>

#include "qkv/core/suggest.h"

namespace qkv::cli {
namespace {

// A name, the number of files it reads, and its function.
struct DataName {
  std::string name;
  size_t least_files, most_files;
  int (*run)(const DataOptions&, const Global&);
};

constexpr size_t kAny = SIZE_MAX;

const std::vector<DataName>& data_names() {
  static const std::vector<DataName> names = {
      {"en-fr", 0, 0, data_en_fr},          {"nadaraya-watson", 0, 0, data_notes}, {"waist", 0, 0, data_notes},
      {"measures", 0, 0, data_notes},       {"attention", 0, 0, data_attention},   {"vocab", 1, kAny, data_vocab},
      {"subwords", 1, kAny, data_subwords}, {"split", 1, 2, data_split},           {"fra-eng", 0, 0, data_fra_eng},
  };
  return names;
}

std::string joined_names() {
  std::vector<std::string> names;
  for (const DataName& one : data_names()) names.push_back(one.name);
  return listed(names);
}

class Data : public Command {
 public:
  std::string name() const override { return "data"; }
  Text summary() const override { return tr("write a data set; make vocabularies, subword models and splits"); }
  std::string example() const override {
    return "qkv data en-fr --size 20000 --seed 1 -o pairs.tsv --alignments pairs.align\n"
           "  qkv data nadaraya-watson -o points.csv\n"
           "  qkv data vocab train.de --rule words --min-count 2 -o vocab.de.txt\n"
           "  qkv data subwords train.de train.en --size 8000 -o shared.model\n"
           "  qkv data split pairs.tsv --validation 1000 --test 1000 -o parts\n"
           "  qkv data attention -o attention\n"
           "  qkv data fra-eng -o fra.txt";
  }

  void bind(Options& options) override {
    DataOptions& o = options_;
    const auto of = [&](const std::vector<std::string>& owners, const Text& help) {
      auto& all = owners_[options.specs().size()];  // for the option declared next
      all.insert(all.end(), owners.begin(), owners.end());
      return tr("{names}: {help}", "names"_a = listed(owners), "help"_a = help);
    };
    const auto either = [](const std::array<Text, 2>& t) {
      return tr("{before}; {help}", "before"_a = t[0], "help"_a = t[1]);
    };
    options.positional("NAME", joined_names(), o.name);
    options.positionals("FILE", tr("text files to read (vocab, subwords, split), .gz or not"), o.files);
    options.option("-o,--output FILE", tr("where to write; split and attention: a folder"), o.output);
    options.option("--points N", of({"nadaraya-watson"}, tr("number of points (50; English edition 40)")), o.points, 1,
                   100'000'000);
    options.option("--noise S", of({"nadaraya-watson"}, tr("standard deviation of the noise (0.5; English edition 1)")),
                   o.noise, 0);
    options.option("--edition E", of({"nadaraya-watson"}, tr("zh is 2 sin x + x^0.8, en is 2 sin x + x (zh)")),
                   o.edition);
    options.option(
        "--rule R",
        of({"vocab"},
           tr("how to split words: the book's rule; at blanks; at blanks, in lower case; words and punctuation "
              "(book)")),
        o.rule);
    options.option("--min-count N", of({"vocab"}, tr("leave out rarer words (2)")), o.min_count, 1, INT64_MAX);
    options.option("--column N",
                   of({"vocab", "subwords"}, tr("read this column of tab-separated files (1: source, 2: target)")),
                   o.column, 1, 2);
    options.option("--model M", of({"subwords"}, tr("the kind of model (bpe)")), o.model);
    options.option("--size N",
                   either({of({"en-fr"}, tr("sentence pairs (20000)")),
                           of({"subwords"}, tr("number of subwords, including the four special ones (8000)"))}),
                   o.size, 1, 2'000'000);
    options.flag("--lowercase", of({"subwords"}, tr("lower-case the text first")), o.lowercase);
    options.option("--validation N", of({"split"}, tr("minimum number of validation pairs (1000)")), o.validation, 0,
                   INT64_MAX);
    options.option("--test N", of({"split"}, tr("minimum number of test pairs (1000)")), o.test, 0, INT64_MAX);
    options.option("--alignments FILE",
                   either({of({"en-fr"}, tr("write gold word links there, one line per pair, 0-0 sure, 1p2 possible")),
                           of({"split"}, tr("word links to split along with the pairs"))}),
                   o.alignments);
    options.flag("--reverse", of({"en-fr"}, tr("French to English")), o.reverse);
    options.option("--split PREFIX", of({"en-fr"}, tr("write PREFIX.train, .valid and .test, each as .tsv and .align")),
                   o.split);
    options.option(
        "--from FILE|URL",
        of({"fra-eng"}, tr("the archive or its fra.txt, if you already have it, or another download address")), o.from);
    for (const auto& [place, owners] : owners_) options.tell_when_given(place, given_);
  }

  int run(const Global& global) override {
    const DataName& chosen = find(global);
    const DataOptions& o = options_;
    for (const auto& [place, option] : given_) refuse_foreign(option, owners_[place], chosen);
    if (o.files.size() > chosen.most_files)
      throw UsageError(tr("data {name}: unexpected argument \"{file}\"", "name"_a = chosen.name,
                          "file"_a = o.files[chosen.most_files]));
    if (o.files.size() < chosen.least_files)
      throw UsageError(tr("data {name}: the argument FILE is missing", "name"_a = chosen.name));
    return chosen.run(o, global);
  }

 private:
  const DataName& find(const Global& global) const {
    std::vector<std::string> known;
    for (const DataName& n : data_names()) {
      if (n.name == options_.name) return n;
      known.push_back(n.name);
    }
    throw UsageError(tr("unknown data set \"{name}\": expected one of {known}", "name"_a = options_.name,
                        "known"_a = joined_names()),
                     did_you_mean(options_.name, known));
  }

  // An option of another name is a mistake, so it is not ignored.
  static void refuse_foreign(const std::string& option, const std::vector<std::string>& owners,
                             const DataName& chosen) {
    if (std::ranges::find(owners, chosen.name) == owners.end())
      throw UsageError(tr("{option} belongs to {owners}, not to \"{name}\"", "option"_a = option,
                          "owners"_a = listed(owners), "name"_a = chosen.name));
  }

  std::map<size_t, std::vector<std::string>> owners_;  // the names an option belongs to, by the option's index
  std::map<size_t, std::string> given_;                // the given ones of these options
  DataOptions options_;
};

}  // namespace

std::unique_ptr<Command> data_command() { return std::make_unique<Data>(); }

}  // namespace qkv::cli
