// qkv data: writes the data sets that come with the program, and prepares text of your own.
#include "qkv/cli/data.h"

#include <algorithm>
#include <functional>

#include "qkv/core/suggest.h"

namespace qkv::cli {
namespace {

// A name, how many files it reads, the options that are its own besides --output, and the function that does it.
struct DataName {
  std::string name;
  size_t least_files, most_files;
  std::vector<std::string> options;
  int (*run)(const DataOptions&, const Global&);
};

constexpr size_t kAny = SIZE_MAX;

const std::vector<DataName>& data_names() {
  static const std::vector<DataName> names = {
      {"en-fr", 0, 0, {"--size", "--alignments", "--reverse", "--split"}, data_en_fr},
      {"nadaraya-watson", 0, 0, {"--points", "--noise", "--edition"}, data_notes},
      {"waist", 0, 0, {}, data_notes},
      {"measures", 0, 0, {}, data_notes},
      {"attention", 0, 0, {}, data_attention},
      {"vocab", 1, kAny, {"--rule", "--min-count", "--column"}, data_vocab},
      {"subwords", 1, kAny, {"--model", "--size", "--column", "--lowercase"}, data_subwords},
      {"split", 1, 2, {"--validation", "--test", "--alignments"}, data_split},
      {"fra-eng", 0, 0, {"--from"}, data_fra_eng},
  };
  return names;
}

std::string joined_names() {
  std::string out;
  const auto& names = data_names();
  for (size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i].name;
  return out;
}

class Data : public Command {
 public:
  std::string name() const override { return "data"; }
  Text summary() const override {
    return {"write a data set; make vocabularies, subword models and splits", "写出数据集；建立词表、子词模型，划分数据"};
  }
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
    options.positional("NAME", {joined_names(), joined_names()}, o.name);
    options.positionals("FILE", {"text to read (vocab, subwords, split); .gz too", "要读入的文本（vocab、subwords、split）；可为 .gz"}, o.files);
    options.option("-o,--output FILE", {"where to write; split and attention: a folder", "输出位置；split 和 attention 为文件夹"}, o.output);
    options.option("--points N", {"nadaraya-watson: how many (50; English edition 40)", "nadaraya-watson：点数（50；英文版 40）"}, o.points, 1,
                   100'000'000);
    options.option("--noise S", {"nadaraya-watson: standard deviation of the noise (0.5; English edition 1)",
                    "nadaraya-watson：噪声标准差（0.5；英文版 1）"}, o.noise, 0);
    options.option("--edition E", {"nadaraya-watson: zh is 2 sin x + x^0.8, en is 2 sin x + x (zh)",
                    "nadaraya-watson：zh 为 2 sin x + x^0.8，en 为 2 sin x + x（zh）"}, o.edition);
    options.option(
        "--rule R",
        {"vocab: what a word is: the book's rule; between blanks; the same in lower case; words and punctuation (book)",
         "vocab：何为一个词：书中规则；按空白；小写后按空白；词与标点分开（book）"},
        o.rule);
    options.option("--min-count N", {"vocab: leave out what is rarer (2)", "vocab：略去更少见的词（2）"}, o.min_count, 1, INT64_MAX);
    options.option("--column N", {"vocab, subwords: read this column of tab separated files (1: source, 2: target)",
                    "vocab、subwords：读取制表符分隔文件的这一列（1 源语言，2 目标语言）"}, o.column, 1, 2);
    options.option("--model M", {"subwords: how they are found (bpe)", "subwords：训练方法（bpe）"}, o.model);
    options.option("--size N", {"en-fr: sentence pairs (20000); subwords: how many, with the four special ones (8000)",
                    "en-fr：句对数（20000）；subwords：子词个数，含四个特殊词元（8000）"}, o.size, 1, 2'000'000);
    options.flag("--lowercase", {"subwords: of the text in lower case", "subwords：先转为小写"}, o.lowercase);
    options.option("--validation N", {"split: pairs at least (1000)", "split：验证集句对数下限（1000）"}, o.validation, 0, INT64_MAX);
    options.option("--test N", {"split: pairs at least (1000)", "split：测试集句对数下限（1000）"}, o.test, 0, INT64_MAX);
    options.option("--alignments FILE", {"en-fr: write gold word links there, one line a pair, 0-0 sure, 1p2 possible; split: read and divided like the pairs",
                    "en-fr：写出标准词对齐，每行一个句对，0-0 确定，1p2 可能；split：随句对一同划分"}, o.alignments);
    options.flag("--reverse", {"en-fr: French to English", "en-fr：法语到英语"}, o.reverse);
    options.option("--split PREFIX", {"en-fr: write PREFIX.train, .valid and .test, each as .tsv and .align",
                    "en-fr：写出 PREFIX.train、.valid 和 .test，各有 .tsv 和 .align"}, o.split);
    options.option("--from FILE|URL", {"fra-eng: the archive, or its text fra.txt, if you have it already or know another place",
                    "fra-eng：已有的压缩包或其中的 fra.txt，或另一个下载地址"}, o.from);
  }

  int run(const Global& global) override {
    const DataName& chosen = find(global);
    const DataOptions& o = options_;
    const std::vector<std::pair<std::string, bool>> given = {
        {"--points", o.points.has_value()},       {"--noise", o.noise.has_value()},           {"--edition", o.edition.has_value()},
        {"--rule", o.rule.has_value()},           {"--min-count", o.min_count.has_value()},   {"--column", o.column.has_value()},
        {"--model", o.model.has_value()},         {"--size", o.size.has_value()},             {"--lowercase", o.lowercase},
        {"--validation", o.validation.has_value()}, {"--test", o.test.has_value()},           {"--alignments", o.alignments.has_value()},
        {"--from", o.from.has_value()},           {"--reverse", o.reverse},                   {"--split", o.split.has_value()}};
    for (const auto& [option, is_given] : given)
      if (is_given) refuse_foreign(option, chosen);
    if (o.files.size() > chosen.most_files)
      throw UsageError(text("data ", chosen.name, ": unexpected argument \"", o.files[chosen.most_files], "\""));
    if (o.files.size() < chosen.least_files) throw UsageError(text("data ", chosen.name, ": the argument FILE is missing"));
    return chosen.run(o, global);
  }

 private:
  const DataName& find(const Global& global) const {
    std::vector<std::string> known;
    for (const DataName& n : data_names()) {
      if (n.name == options_.name) return n;
      known.push_back(n.name);
    }
    throw UsageError(text("unknown data set \"", options_.name, "\": expected ", joined_names()),
                     did_you_mean(nearest_word(options_.name, known), global.language));
  }

  // An option of other names is a mistake, not something to pass over.
  static void refuse_foreign(const std::string& option, const DataName& chosen) {
    std::string owners;
    for (const DataName& n : data_names()) {
      if (std::find(n.options.begin(), n.options.end(), option) == n.options.end()) continue;
      if (n.name == chosen.name) return;
      owners += (owners.empty() ? "" : " and ") + n.name;
    }
    throw UsageError(text(option, " belongs to ", owners, ", not to \"", chosen.name, "\""));
  }

  DataOptions options_;
};

}  // namespace

std::unique_ptr<Command> data_command() { return std::make_unique<Data>(); }

}  // namespace qkv::cli
