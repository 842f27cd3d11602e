// qkv data en-fr: writes the built-in corpus, its gold alignments and its split.
#include "qkv/cli/data_en_fr.h"

#include <cstdio>
#include <vector>

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

}  // namespace

void DataEnFr::bind(Options& options) {
  options.option("--size N", {"en-fr: how many sentence pairs (20000)", "en-fr：句对数（20000）"}, size_, 1, en_fr_limit);
  options.option("--alignments FILE", {"en-fr: gold word links, one line a pair: 0-0 sure, 1p2 possible",
                  "en-fr：标准词对齐，每行一个句对：0-0 确定，1p2 可能"}, alignments_);
  options.flag("--reverse", {"en-fr: French to English", "en-fr：法语到英语"}, reverse_);
  options.option("--split PREFIX", {"en-fr: write PREFIX.train, .valid and .test, each as .tsv and .align",
                  "en-fr：写出 PREFIX.train、.valid 和 .test，各有 .tsv 和 .align"}, split_);
}

void DataEnFr::run(const Global& global, const std::optional<std::string>& output) const {
  EnFrOptions options{.seed = global.seed, .reverse = reverse_};
  options.size = size_.value_or(options.size);
  const std::vector<AlignedPair> corpus = en_fr_corpus(options);
  if (alignments_) write_file(*alignments_, link_lines(corpus));
  if (split_) {
    const EnFrSplit split = en_fr_split(corpus);
    write_part(*split_ + ".train", split.train);
    write_part(*split_ + ".valid", split.valid);
    write_part(*split_ + ".test", split.test);
  }
  if (output) {
    write_file(*output, pair_lines(corpus));
  } else if (!split_) {
    const std::string text = pair_lines(corpus);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
}

}  // namespace qkv::cli
