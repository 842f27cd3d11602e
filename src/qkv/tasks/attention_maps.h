// Where a Transformer looks: the weights of all its attentions on a sentence pair, and two readings of them that go
// beyond the weights.
#pragma once

#include "qkv/models/transformer.h"

namespace qkv {

/// One matrix for every layer and head; S source and T target tokens.
struct AttentionMaps {
  Tensor encoder;  // (layers, heads, S, S)
  Tensor decoder;  // (layers, heads, T, T), lower-triangular
  Tensor cross;    // (layers, heads, T, S)
};

struct TransformerAttention {
  AttentionMaps weights;  // alpha
  /// What a key adds rather than how much it is looked at (Kobayashi et al., 2020): alpha_ij |W_o^h v_j|, each row
  /// divided by its sum. A token that is looked at because its value is next to nothing disappears.
  AttentionMaps value_weighted;
};

/// With teacher forcing: source (1, S) of which source_lens (1) tokens count (absent: all), target_in (1, T) from <bos>
/// on.
TransformerAttention transformer_attention(const Transformer& model, const Ids& source, const Ids& source_lens,
                                           const Ids& target_in);

/// The mean over the heads of every layer: (layers, 1, ...).
AttentionMaps mean_of_heads(const AttentionMaps& maps);

/// Attention rollout (Abnar and Zuidema, 2020): (layers, 1, ...), how much of each input is in a state after layers 0
/// to l, when a layer is half its attention and half what passes it by: R_l = (mean over heads of A_l + I) / 2 R_(l-1),
/// rows summing to 1. Cross: the mean over heads of A_l times the encoder's last R, so that its columns are source
/// words and not the states above them.
AttentionMaps rollout(const AttentionMaps& weights);

}  // namespace qkv
