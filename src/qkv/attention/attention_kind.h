// How much of a long text an attention looks at: everything, or one of the cheaper ways of efficient Transformers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/core/names.h"

namespace QKV_API qkv {

/// exact: all keys. window: near keys. dilated: near keys with gaps. block-sparse: near, first and random blocks
/// (Zaheer et al., 2020). linear: elu + 1 instead of the exponential (Katharopoulos et al., 2020). performer: positive
/// random features (Choromanski et al., 2021). linformer: keys and values projected to a fixed number of rows (Wang et
/// al., 2020). nystrom: through landmarks (Xiong et al., 2021).
enum class AttentionKind { exact, window, dilated, block_sparse, linear, performer, linformer, nystrom };
constexpr std::array<std::string_view, 8> names(AttentionKind) {
  return {"exact", "window", "dilated", "block-sparse", "linear", "performer", "linformer", "nystrom"};
}

/// Whether every query has a list of keys, with the weights of the exact softmax among them.
constexpr bool is_sparse(AttentionKind kind) {
  return kind == AttentionKind::window || kind == AttentionKind::dilated || kind == AttentionKind::block_sparse;
}
/// Whether it can leave out later tokens: the others mix all positions before they look at any.
constexpr bool can_be_causal(AttentionKind kind) {
  return kind != AttentionKind::linformer && kind != AttentionKind::nystrom;
}

struct AttentionKindOptions {
  AttentionKind kind = AttentionKind::exact;
  int64_t window = 64;        // window, dilated: keys on each side
  int64_t dilation = 2;       // dilated: distance between two of them
  int64_t global_tokens = 0;  // window, dilated, block-sparse: the first tokens see all and are seen by all
  int64_t block = 32;         // block-sparse: tokens per block; a block sees itself and the next one on each side
  int64_t random_blocks = 1;  // block-sparse: further blocks, drawn once
  int64_t features = 64;      // performer
  int64_t rank = 32;          // linformer: rows that keys and values are projected to
  int64_t landmarks = 32;     // nystrom
  int64_t positions = 0;      // linformer: the longest text
  uint64_t seed = 0;          // of random blocks and random features: the same in every layer and every run
  bool operator==(const AttentionKindOptions&) const = default;
};

}  // namespace qkv
