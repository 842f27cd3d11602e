// Patterns as runs of keys, one case per kind.
#include "qkv/attention/key_pattern.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/core/rng.h"

namespace qkv {

KeyPattern::KeyPattern(const AttentionKindOptions& o) : options_(o) {
  check(is_sparse(o.kind), "[key_pattern] ", name_of(o.kind), " has no list of keys");
  check(o.window >= 0 && o.dilation >= 1 && o.global_tokens >= 0 && o.block >= 1 && o.random_blocks >= 0,
        "[key_pattern] sizes out of range: window ", o.window, ", dilation ", o.dilation, ", global tokens ",
        o.global_tokens, ", block ", o.block, ", random blocks ", o.random_blocks);
}

// position, position +- step, ... up to `window` of them on each side, from the global tokens on and below `end`.
std::vector<KeyRun> KeyPattern::near(int64_t position, int64_t end) const {
  const int64_t step = options_.kind == AttentionKind::dilated ? options_.dilation : 1;
  const int64_t left = std::min(options_.window, (position - options_.global_tokens) / step);
  const int64_t last = std::min(end, position + options_.window * step + 1);
  return {{static_cast<int32_t>(position - left * step), static_cast<int32_t>(last), static_cast<int32_t>(step)}};
}

// The block of the token, its neighbours, and random ones; for a causal pattern these are earlier blocks.
std::vector<KeyRun> KeyPattern::blocks(int64_t position, int64_t length, int64_t end, bool causal) const {
  const int64_t size = options_.block, own = position / size, all = (length + size - 1) / size;
  std::vector<int64_t> chosen{own};
  if (own > 0) chosen.push_back(own - 1);
  if (own + 1 < all) chosen.push_back(own + 1);
  const int64_t others = causal ? own - 1 : all;
  const Rng rng = Rng(options_.seed).at("blocks").at(static_cast<uint64_t>(own));
  for (int64_t r = 0; r < options_.random_blocks && others > 0; ++r)
    chosen.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(others), static_cast<uint64_t>(r))));
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  std::vector<KeyRun> out;
  for (const int64_t block : chosen)
    out.push_back({static_cast<int32_t>(std::max(block * size, options_.global_tokens)),
                   static_cast<int32_t>(std::min((block + 1) * size, end)), 1});
  return out;
}

std::vector<KeyRun> KeyPattern::seen(int64_t position, int64_t length, bool causal) const {
  const int64_t end = causal ? std::min(length, position + 1) : length;
  if (position < options_.global_tokens) return {{0, static_cast<int32_t>(end), 1}};
  std::vector<KeyRun> out;
  const int64_t global = std::min(options_.global_tokens, end);
  if (global > 0) out.push_back({0, static_cast<int32_t>(global), 1});
  for (const KeyRun& run :
       options_.kind == AttentionKind::block_sparse ? blocks(position, length, end, causal) : near(position, end))
    if (run.count() > 0) out.push_back(run);
  return out;
}

KeyRuns KeyPattern::runs(int64_t queries, int64_t keys, const PlainMask& mask) const {
  KeyRuns out{.batch = mask.lengths.defined() ? mask.lengths.size(0) : 1, .queries = queries};
  for (int64_t b = 0; b < out.batch; ++b) {
    const int64_t length = mask.lengths.defined() ? std::min<int64_t>(mask.lengths.ptr()[b], keys) : keys;
    for (int64_t i = 0; i < queries; ++i) out.add(seen(mask.offset.value_or(0) + i, length, mask.offset.has_value()));
  }
  return out;
}

}  // namespace qkv
