// qkv data: writes the data sets that come with the program, and prepares your own text.
#include "qkv/cli/data.h"

namespace qkv::cli {
namespace {

class Data : public Command {
 public:
  std::string name() const override { return "data"; }
  Text summary() const override { return tr("write a data set; make vocabularies, subword models and splits"); }
  std::string example() const override {
    return "qkv data en-fr --size 20000 --seed 1 -o pairs.tsv\n  qkv data subwords --help";
  }
  Commands subcommands() const override {
    Commands all;
    for (const auto& make : {data_en_fr, data_nadaraya_watson, data_waist, data_measures, data_attention, data_vocab,
                             data_subwords, data_split, data_fra_eng, data_pictures})
      all.push_back(make());
    return all;
  }
  void bind(Options&) override {}
  int run(const Global&) override { return 0; }
};

}  // namespace

std::unique_ptr<Command> data_command() { return std::make_unique<Data>(); }

}  // namespace qkv::cli
