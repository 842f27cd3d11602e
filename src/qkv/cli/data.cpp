// qkv data: writes the data sets that come with the program, and prepares text of your own.
#include "qkv/cli/data.h"

#include <algorithm>
#include <array>
#include <map>

#include "qkv/core/suggest.h"

namespace qkv::cli {
namespace {

// A name, how many files it reads, and the function that does it.
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
  std::string out;
  const auto& names = data_names();
  for (size_t i = 0; i < names.size(); ++i) out += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i].name;
  return out;
}

class Data : public Command {
 public:
  std::string name() const override { return "data"; }
  Text summary() const override {
    return {"write a data set; make vocabularies, subword models and splits",
            "写出数据集；建立词表、子词模型，划分数据"};
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
    const auto of = [&](const std::vector<std::string>& owners, const Text& help) {
      auto& all = owners_[options.specs().size()];  // of the option that is declared next
      all.insert(all.end(), owners.begin(), owners.end());
      return Text{text(listed(owners), ": ", help.en), text(listed(owners, "、"), "：", help.zh)};
    };
    const auto either = [](const std::array<Text, 2>& t) {
      return Text{text(t[0].en, "; ", t[1].en), text(t[0].zh, "；", t[1].zh)};
    };
    options.positional("NAME", {joined_names(), joined_names()}, o.name);
    options.positionals(
        "FILE", {"text to read (vocab, subwords, split); .gz too", "要读入的文本（vocab、subwords、split）；可为 .gz"},
        o.files);
    options.option("-o,--output FILE",
                   {"where to write; split and attention: a folder", "输出位置；split 和 attention 为文件夹"},
                   o.output);
    options.option("--points N",
                   of({"nadaraya-watson"}, {"how many (50; English edition 40)", "点数（50；英文版 40）"}), o.points, 1,
                   100'000'000);
    options.option("--noise S",
                   of({"nadaraya-watson"},
                      {"standard deviation of the noise (0.5; English edition 1)", "噪声标准差（0.5；英文版 1）"}),
                   o.noise, 0);
    options.option("--edition E",
                   of({"nadaraya-watson"}, {"zh is 2 sin x + x^0.8, en is 2 sin x + x (zh)",
                                            "zh 为 2 sin x + x^0.8，en 为 2 sin x + x（zh）"}),
                   o.edition);
    options.option(
        "--rule R",
        of({"vocab"},
           {"what a word is: the book's rule; between blanks; the same in lower case; words and punctuation (book)",
            "何为一个词：书中规则；按空白；小写后按空白；词与标点分开（book）"}),
        o.rule);
    options.option("--min-count N", of({"vocab"}, {"leave out what is rarer (2)", "略去更少见的词（2）"}), o.min_count,
                   1, INT64_MAX);
    options.option("--column N",
                   of({"vocab", "subwords"}, {"read this column of tab separated files (1: source, 2: target)",
                                              "读取制表符分隔文件的这一列（1 源语言，2 目标语言）"}),
                   o.column, 1, 2);
    options.option("--model M", of({"subwords"}, {"how they are found (bpe)", "训练方法（bpe）"}), o.model);
    options.option(
        "--size N",
        either({of({"en-fr"}, {"sentence pairs (20000)", "句对数（20000）"}),
                of({"subwords"}, {"how many, with the four special ones (8000)", "子词个数，含四个特殊词元（8000）"})}),
        o.size, 1, 2'000'000);
    options.flag("--lowercase", of({"subwords"}, {"of the text in lower case", "先转为小写"}), o.lowercase);
    options.option("--validation N", of({"split"}, {"pairs at least (1000)", "验证集句对数下限（1000）"}), o.validation,
                   0, INT64_MAX);
    options.option("--test N", of({"split"}, {"pairs at least (1000)", "测试集句对数下限（1000）"}), o.test, 0,
                   INT64_MAX);
    options.option("--alignments FILE",
                   either({of({"en-fr"}, {"write gold word links there, one line a pair, 0-0 sure, 1p2 possible",
                                          "写出标准词对齐，每行一个句对，0-0 确定，1p2 可能"}),
                           of({"split"}, {"read and divided like the pairs", "随句对一同划分"})}),
                   o.alignments);
    options.flag("--reverse", of({"en-fr"}, {"French to English", "法语到英语"}), o.reverse);
    options.option("--split PREFIX",
                   of({"en-fr"}, {"write PREFIX.train, .valid and .test, each as .tsv and .align",
                                  "写出 PREFIX.train、.valid 和 .test，各有 .tsv 和 .align"}),
                   o.split);
    options.option("--from FILE|URL",
                   of({"fra-eng"}, {"the archive, or its text fra.txt, if you have it already or know another place",
                                    "已有的压缩包或其中的 fra.txt，或另一个下载地址"}),
                   o.from);
    for (const auto& [place, owners] : owners_) options.tell_when_given(place, given_);
  }

  int run(const Global& global) override {
    const DataName& chosen = find(global);
    const DataOptions& o = options_;
    for (const auto& [place, option] : given_) refuse_foreign(option, owners_[place], chosen);
    if (o.files.size() > chosen.most_files)
      throw UsageError(text("data ", chosen.name, ": unexpected argument \"", o.files[chosen.most_files], "\""));
    if (o.files.size() < chosen.least_files)
      throw UsageError(text("data ", chosen.name, ": the argument FILE is missing"));
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
  static void refuse_foreign(const std::string& option, const std::vector<std::string>& owners,
                             const DataName& chosen) {
    if (std::ranges::find(owners, chosen.name) == owners.end())
      throw UsageError(text(option, " belongs to ", listed(owners, " and "), ", not to \"", chosen.name, "\""));
  }

  std::map<size_t, std::vector<std::string>> owners_;  // of options that are not of every name, by their place
  std::map<size_t, std::string> given_;                // those of them that are given
  DataOptions options_;
};

}  // namespace

std::unique_ptr<Command> data_command() { return std::make_unique<Data>(); }

}  // namespace qkv::cli
