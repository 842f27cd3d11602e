// Which keys a query of a sparse attention sees: near ones, the first ones, random blocks.
#pragma once

#include <vector>

#include "qkv/attention/attention_kind.h"
#include "qkv/attention/mask.h"
#include "qkv/core/api.h"
#include "qkv/ops/sparse_attention.h"

namespace QKV_API qkv {

class KeyPattern {
 public:
  /// The kind must be sparse.
  explicit KeyPattern(const AttentionKindOptions& options);

  /// The keys that the token at that position of a text sees, in ascending order without overlap. causal: none after
  /// itself. What a token sees in a causal pattern does not depend on the length of the text.
  std::vector<KeyRun> seen(int64_t position, int64_t length, bool causal) const;
  /// The keys of all queries. Query i of a batch row is the token at position offset + i, where offset is that of a
  /// causal mask, else 0; a row's text is as long as the mask says, or has `keys` tokens.
  KeyRuns runs(int64_t queries, int64_t keys, const PlainMask& mask) const;

 private:
  std::vector<KeyRun> near(int64_t position, int64_t end) const;
  std::vector<KeyRun> blocks(int64_t position, int64_t length, int64_t end, bool causal) const;
  AttentionKindOptions options_;
};

}  // namespace qkv
