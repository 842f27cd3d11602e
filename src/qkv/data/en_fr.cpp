// The English-French corpus: distinct sentences from the grammar, and their split.
#include "qkv/data/en_fr.h"

#include <unordered_set>

#include "qkv/core/check.h"
#include "qkv/core/rng.h"
#include "qkv/data/en_fr_grammar.h"

namespace qkv {

std::vector<AlignedPair> en_fr_corpus(const EnFrOptions& options) {
  check(options.size >= 1 && options.size <= en_fr_limit, "[en-fr] the grammar makes 1 to ", en_fr_limit,
        " sentences, got size ", options.size);
  const Rng rng = Rng(options.seed).at("en-fr");
  const auto size = static_cast<size_t>(options.size);
  std::vector<AlignedPair> corpus;
  corpus.reserve(size);
  std::unordered_set<std::string> sources, targets;
  for (uint64_t draw = 0; corpus.size() < size; ++draw) {
    std::optional<AlignedPair> pair = en_fr::draw_sentence(rng.at(draw), options.reverse);
    if (!pair || sources.contains(pair->source) || targets.contains(pair->target)) continue;
    sources.insert(pair->source);
    targets.insert(pair->target);
    corpus.push_back(std::move(*pair));
  }
  return corpus;
}

EnFrSplit en_fr_split(std::vector<AlignedPair> corpus) {
  EnFrSplit split;
  for (AlignedPair& pair : corpus) {
    auto& part = pair.part == CorpusPart::train   ? split.train
                 : pair.part == CorpusPart::valid ? split.valid
                                                  : split.test;
    part.push_back(std::move(pair));
  }
  return split;
}

EnFrSplit en_fr_split(const EnFrOptions& options) { return en_fr_split(en_fr_corpus(options)); }

namespace {

std::string written(const WordLinks& sure, const WordLinks& possible) {
  std::string out;
  const auto add = [&](const std::pair<int32_t, int32_t>& link, char sign) {
    out += text(out.empty() ? "" : " ", link.first, sign, link.second);
  };
  auto s = sure.begin();
  auto p = possible.begin();
  while (s != sure.end() || p != possible.end()) {
    if (p == possible.end() || (s != sure.end() && *s < *p))
      add(*s++, '-');
    else
      add(*p++, 'p');
  }
  return out;
}

}  // namespace

std::string pharaoh(const WordLinks& links) { return written(links, {}); }
std::string pharaoh(const AlignedPair& pair) { return written(pair.links, pair.possible); }

}  // namespace qkv
