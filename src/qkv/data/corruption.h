// Texts with something hidden, for training a model to restore it: single tokens, or spans.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/rng.h"

namespace QKV_API qkv {

/// A position at which nothing is asked.
inline constexpr int32_t kNotAsked = -1;

struct MaskOptions {
  int64_t hidden = 1;                // tokens to hide
  double random = 0.1, kept = 0.1;   // shares of these that become a random token, or stay; the others become `mask`
  int32_t mask = 0, vocabulary = 1;  // random tokens are below vocabulary
};
struct MaskedTokens {
  std::vector<int32_t> read, wanted;  // wanted: the hidden tokens, else kNotAsked
};
/// Hides tokens (Devlin et al., 2019, section 3.1): exactly `hidden` of them, chosen at random.
MaskedTokens mask_tokens(std::span<const int32_t> tokens, const MaskOptions& options, const Rng& rng);

struct SpanOptions {
  int64_t hidden = 1, spans = 1;  // tokens to hide, in that many spans
  int32_t first_mark = 0;         // the mark of span i is first_mark + i; one more marks the end
};
struct CutSpans {
  std::vector<int32_t> read;     // the text with a mark for each span
  std::vector<int32_t> written;  // mark 0, span 0, mark 1, span 1, ..., the mark of the end
};
/// Cuts random spans out of the text (Raffel et al., 2020, section 3.1.4); the first token is never hidden. The sizes
/// of the result depend on the options and the number of tokens alone.
CutSpans cut_spans(std::span<const int32_t> tokens, const SpanOptions& options, const Rng& rng);

}  // namespace qkv
