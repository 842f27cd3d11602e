// Transformer blocks and stacks of them, without an embedding; shared by encoder, decoder, language and vision models.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/models/transformer_config.h"

namespace QKV_API qkv {

/// Whether blocks attend to the outputs of another stack.
enum class Cross { no, yes };

/// Self-attention, optional attention to a memory, and the feed-forward network, each with residual, dropout and norm.
struct TransformerBlock {
  MultiHead self;
  Norm self_norm;
  std::optional<MultiHead> cross;
  Norm cross_norm;
  AnyFeedForward ffn;
  Norm ffn_norm;
  NormPlace norm = NormPlace::post;
  float dropout = 0, self_dropout = 0, inner_dropout = 0;  // of outputs, of self-attention's, and inside ffn

  TransformerBlock() = default;
  /// `self` says which part the block's own attention is of; the numbers of heads are those of that layer.
  TransformerBlock(const TransformerConfig& config, Cross cross, const Rng& rng,
                   AttentionPart self = AttentionPart::decoder, int64_t layer = 0);
  /// x (B, n, width) -> the same shape. memory: the result of cross.project, unused without cross-attention. `kept`
  /// gets the keys and values of x.
  Tensor operator()(const Tensor& x, const Mask& mask, const KeyValues& memory, const Mask& memory_mask, const Run& run,
                    KeyValues* kept = nullptr) const;
  /// The same without a memory.
  Tensor operator()(const Tensor& x, const Mask& mask, const Run& run) const {
    return (*this)(x, mask, {}, Mask::none(), run);
  }
  /// The first token of the result alone, (B, 1, width), of a block without cross-attention and mask: the other tokens
  /// are only keys and values.
  Tensor first_token(const Tensor& x, const Run& run) const;
  /// As operator(), with a memory that is not projected; the tape keeps only the inputs of the sublayers. The block
  /// must outlive the tape.
  Tensor recomputed(const Tensor& x, const Mask& mask, const Tensor& memory, const Mask& memory_mask,
                    const Run& run) const;
  void visit(auto&& f) {
    f("self", self);
    f("self_norm", self_norm);
    f("cross", cross);
    if (cross) f("cross_norm", cross_norm);
    f("ffn", ffn);
    f("ffn_norm", ffn_norm);
  }

 private:
  Tensor self_part(const Tensor& x, const Mask& mask, const Run& run, KeyValues* kept) const;
  Tensor cross_part(const Tensor& x, const KeyValues& memory, const Mask& mask, const Run& run) const;
  Tensor ffn_part(const Tensor& x, const Run& run) const;
  Tensor ffn_of(const Tensor& x, const Run& run) const;
};

/// The input of cross-attention: (B, m, width), and which keys each row may see.
struct Memory {
  Tensor states;
  Mask mask = Mask::none();
};

struct TransformerStack {
  std::vector<TransformerBlock> blocks;
  std::optional<Norm> norm;  // of the last output; pre-norm only
  bool recompute = false;

  TransformerStack() = default;
  TransformerStack(const TransformerConfig& config, int64_t layers, Cross cross, const Rng& rng,
                   AttentionPart self = AttentionPart::decoder);
  /// x (B, n, width) -> the same shape. Probe: "0.self", "0.cross", "1.self", ...
  Tensor operator()(const Tensor& x, const Mask& mask, const Memory& memory, const Run& run) const;
  /// The first token of the result alone, (B, 1, width), without mask and memory. The last block computes only that
  /// token, unless a probe wants to see what the others attend to.
  Tensor first_token(const Tensor& x, const Run& run) const;
  void visit(auto&& f) {
    for (size_t i = 0; i < blocks.size(); ++i) f(std::to_string(i), blocks[i]);
    f("norm", norm);
  }

 private:
  Tensor through(const Tensor& x, size_t count, const Mask& mask, const Memory& memory, const Run& run) const;
};

}  // namespace qkv
