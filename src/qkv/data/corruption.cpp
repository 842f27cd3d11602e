// Random choices of tokens and spans.
#include "qkv/data/corruption.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/data/shuffle.h"

namespace qkv {
namespace {

// `parts` positive numbers with that sum, all divisions equally likely.
std::vector<int64_t> divided(int64_t sum, int64_t parts, const Rng& rng) {
  std::vector<int64_t> cuts = shuffled(sum - 1, rng);  // cut c lies after element c
  cuts.resize(static_cast<size_t>(parts - 1));
  std::ranges::sort(cuts);
  std::vector<int64_t> out;
  int64_t begin = 0;
  for (const int64_t cut : cuts) {
    out.push_back(cut + 1 - begin);
    begin = cut + 1;
  }
  out.push_back(sum - begin);
  return out;
}

}  // namespace

MaskedTokens mask_tokens(std::span<const int32_t> tokens, const MaskOptions& o, const Rng& rng) {
  const int64_t n = std::ssize(tokens);
  check(o.hidden >= 0 && o.hidden <= n, "[mask_tokens] cannot hide ", o.hidden, " of ", n, " tokens");
  MaskedTokens out{{tokens.begin(), tokens.end()}, std::vector<int32_t>(tokens.size(), kNotAsked)};
  const std::vector<int64_t> order = shuffled(n, rng.at("places"));
  const Rng kind = rng.at("kind"), token = rng.at("token");
  for (int64_t i = 0; i < o.hidden; ++i) {
    const auto at = static_cast<size_t>(order[static_cast<size_t>(i)]);
    out.wanted[at] = tokens[at];
    const double u = kind.uniform(static_cast<uint64_t>(i));
    if (u < o.kept) continue;
    out.read[at] =
        u < o.kept + o.random
            ? static_cast<int32_t>(token.below(static_cast<uint64_t>(o.vocabulary), static_cast<uint64_t>(i)))
            : o.mask;
  }
  return out;
}

CutSpans cut_spans(std::span<const int32_t> tokens, const SpanOptions& o, const Rng& rng) {
  const int64_t n = std::ssize(tokens), left = n - o.hidden;
  check(o.spans >= 1 && o.spans <= o.hidden && o.spans <= left, "[cut_spans] cannot cut ", o.hidden, " of ", n,
        " tokens in ", o.spans, " spans");
  // What is left lies before, between and after the spans; after the last one there may be nothing.
  const std::vector<int64_t> hidden = divided(o.hidden, o.spans, rng.at("hidden")),
                             kept = divided(left + 1, o.spans + 1, rng.at("kept"));
  CutSpans out;
  int64_t at = 0;
  const auto take = [&](std::vector<int32_t>& into, int64_t count) {
    into.insert(into.end(), tokens.begin() + at, tokens.begin() + at + count);
    at += count;
  };
  for (int64_t s = 0; s < o.spans; ++s) {
    const auto mark = static_cast<int32_t>(o.first_mark + s);
    take(out.read, kept[static_cast<size_t>(s)]);
    out.read.push_back(mark);
    out.written.push_back(mark);
    take(out.written, hidden[static_cast<size_t>(s)]);
  }
  take(out.read, kept.back() - 1);
  out.written.push_back(static_cast<int32_t>(o.first_mark + o.spans));
  return out;
}

}  // namespace qkv
