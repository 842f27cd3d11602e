// qkv data en-fr: writes the built-in corpus, its gold alignments and its split.
#include <cstdio>
#include <vector>

#include "qkv/cli/data.h"
#include "qkv/data/en_fr.h"
#include "qkv/io/atomic_file.h"

namespace qkv::cli {
namespace {

std::string pair_lines(const std::vector<AlignedPair>& pairs) {
  std::string out;
  for (const AlignedPair& pair : pairs) out += pair.source + '\t' + pair.target + '\n';
  return out;
}

std::string link_lines(const std::vector<AlignedPair>& pairs) {
  std::string out;
  for (const AlignedPair& pair : pairs) out += pharaoh(pair) + '\n';
  return out;
}

void write_part(const std::string& prefix, const std::vector<AlignedPair>& pairs) {
  write_file(prefix + ".tsv", pair_lines(pairs));
  write_file(prefix + ".align", link_lines(pairs));
}

class EnFr : public Command {
 public:
  std::string name() const override { return "data en-fr"; }
  Text summary() const override {
    return tr("the built-in corpus: English-French sentence pairs with gold word links");
  }
  std::string example() const override {
    return "qkv data en-fr --size 20000 --seed 1 -o pairs.tsv --alignments pairs.align";
  }
  void bind(Options& o) override {
    o.option("-o,--output FILE", tr("where to write the pairs, separated by tabs"), output_);
    o.option("--size N", tr("number of sentence pairs"), options_.size, 1, 2'000'000);
    o.option("--alignments FILE", tr("write gold word links there, one line per pair, 0-0 sure, 1p2 possible"),
             alignments_);
    o.flag("--reverse", tr("French to English"), options_.reverse);
    o.option("--split PREFIX", tr("write PREFIX.train, .valid and .test, each as .tsv and .align"), split_);
  }

  int run(const Global& global) override {
    if (global.seed_given) options_.seed = global.seed;
    if (options_.size > en_fr_limit)
      throw UsageError(tr("--size: the grammar makes at most {en_fr_limit} pairs, got {options}",
                          "en_fr_limit"_a = en_fr_limit, "options"_a = options_.size));
    const std::vector<AlignedPair> corpus = en_fr_corpus(options_);
    if (alignments_) write_file(*alignments_, link_lines(corpus));
    if (split_) {
      const EnFrSplit split = en_fr_split(corpus);
      write_part(*split_ + ".train", split.train);
      write_part(*split_ + ".valid", split.valid);
      write_part(*split_ + ".test", split.test);
    }
    const std::string text = pair_lines(corpus);
    if (output_)
      write_file(*output_, text);
    else if (!split_)
      std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }

 private:
  EnFrOptions options_;
  std::optional<std::string> output_, alignments_, split_;
};

}  // namespace

std::unique_ptr<Command> data_en_fr() { return std::make_unique<EnFr>(); }

}  // namespace qkv::cli
