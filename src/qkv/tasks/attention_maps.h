// What a Transformer attends to: the weights of all its attention layers on a sentence pair, and two measures derived
// from them.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "qkv/attention/edits.h"
#include "qkv/core/api.h"
#include "qkv/models/transformer.h"

namespace QKV_API qkv {

/// One matrix per layer and head; S source and T target tokens. A model that lacks a part lacks its maps.
struct AttentionMaps {
  Tensor encoder;  // (layers, heads, S, S)
  Tensor decoder;  // (layers, heads, T, T), lower-triangular
  Tensor cross;    // (layers, heads, T, S)
};

struct TransformerAttention {
  AttentionMaps weights;  // alpha
  /// What a key adds, not only its weight (Kobayashi et al., 2020): alpha_ij |W_o^h v_j|, each row divided by its sum.
  /// A token with a large weight but a tiny value disappears.
  AttentionMaps value_weighted;
};

/// Which maps are computed: all, those of one layer, or of one head; both count from 0, and every part must have them.
/// All maps of a long text may not fit: more than kMostBytes are refused.
struct MapsWanted {
  std::optional<int64_t> layer = {}, head = {};
  bool values = true;  // value-weighted ones too
  static constexpr int64_t kMostBytes = int64_t{1} << 30;
};

/// With teacher forcing: source (1, S), of which the first source_lens (1) tokens are valid (absent: all), and
/// target_in (1, T), which begins with <bos>. The maps of an edited attention are what is left after the edits.
TransformerAttention transformer_attention(const Transformer& model, const Ids& source, const Ids& source_lens,
                                           const Ids& target_in, const AttentionEdits& edits = {},
                                           const MapsWanted& wanted = {});

/// The self-attention of a stack of blocks: (layers, heads, n, n) each.
struct StackAttention {
  Tensor weights, value_weighted;
};
/// `pass` runs the model for one input, so that the blocks have the paths "PREFIX.0", "PREFIX.1", ... Edits are not
/// checked against the model here.
StackAttention stack_attention(const TransformerStack& stack, const std::string& prefix,
                               const std::function<void(const Run&)>& pass, const AttentionEdits& edits = {},
                               const MapsWanted& wanted = {});

/// The mean over the heads of every layer: (layers, 1, ...).
Tensor mean_of_heads(const Tensor& maps);
AttentionMaps mean_of_heads(const AttentionMaps& maps);

/// Attention rollout (Abnar and Zuidema, 2020): (layers, 1, ...), how much of each input is in a state after layers 0
/// to l, if a layer is half attention and half residual: R_l = (mean over heads of A_l + I) / 2 R_(l-1), with rows that
/// sum to 1. Cross: the mean over heads of A_l times the encoder's last R, so that its columns are source words, not
/// encoder states.
AttentionMaps rollout(const AttentionMaps& weights);
/// The same for the self-attention of one stack: (layers, heads, n, n) -> (layers, 1, n, n).
Tensor rollout(const Tensor& weights);

}  // namespace qkv
