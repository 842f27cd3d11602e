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

}  // namespace

int data_en_fr(const DataOptions& o, const Global& global) {
  EnFrOptions options{.reverse = o.reverse};
  if (global.seed_given) options.seed = global.seed;
  options.size = o.size.value_or(options.size);
  if (options.size > en_fr_limit)
    throw UsageError(tr("--size: the grammar makes at most {en_fr_limit} pairs, got {options}",
                        "en_fr_limit"_a = en_fr_limit, "options"_a = options.size));
  const std::vector<AlignedPair> corpus = en_fr_corpus(options);
  if (o.alignments) write_file(*o.alignments, link_lines(corpus));
  if (o.split) {
    const EnFrSplit split = en_fr_split(corpus);
    write_part(*o.split + ".train", split.train);
    write_part(*o.split + ".valid", split.valid);
    write_part(*o.split + ".test", split.test);
  }
  if (o.output) {
    write_file(*o.output, pair_lines(corpus));
  } else if (!o.split) {
    const std::string text = pair_lines(corpus);
    std::fwrite(text.data(), 1, text.size(), stdout);
  }
  return 0;
}

}  // namespace qkv::cli
