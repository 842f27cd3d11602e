// Settings of a language model: the block `model` of its configuration, and the argument of the constructor.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/models/transformer_config.h"

namespace QKV_API qkv {

/// What a language model learns to do: to continue a text (a decoder alone), to fill in hidden tokens (an encoder
/// alone; Devlin et al., 2019), or to write the spans that were cut out of a text (encoder and decoder; Raffel et al.,
/// 2020).
enum class LanguageObjective { causal, masked, spans };
constexpr std::array<std::string_view, 3> names(LanguageObjective) { return {"causal", "masked", "spans"}; }

struct LanguageModelConfig {
  LanguageObjective objective = LanguageObjective::causal;
  int64_t context = 128;     // tokens read at once
  double mask_share = 0.15;  // masked, spans: share of the tokens that are hidden
  double mask_random = 0.1;  // masked: share of these that become a random token,
  double mask_kept = 0.1;    // and that stay as they are
  double span_length = 3;    // spans: mean length of a span
  /// GPT-2's layout. Its max_positions follow from the context.
  TransformerConfig transformer{.hidden = 128,
                                .ffn = 512,
                                .heads = 4,
                                .layers = 4,
                                .norm = NormPlace::pre,
                                .activation = Activation::gelu,
                                .positions = PositionKind::learned,
                                .bias = true,
                                .output_bias = false,
                                .scale_embeddings = false,
                                .tied = true,
                                .init = TransformerConfig::Init::gpt2};

  /// Hidden tokens and spans of a block of `length` tokens, which has at least two.
  int64_t hidden_of(int64_t length) const {
    return std::clamp<int64_t>(std::llround(mask_share * static_cast<double>(length)), 1,
                               std::max<int64_t>(length, 2) - 1);
  }
  int64_t spans_of(int64_t length) const {
    const int64_t hidden = hidden_of(length);
    return std::clamp<int64_t>(std::llround(static_cast<double>(hidden) / span_length), 1,
                               std::max<int64_t>(1, std::min(hidden, length - hidden)));
  }
  /// Ids after those of the tokenizer. masked: [MASK]. spans: one mark per span, the mark of the end, and the decoder's
  /// first input.
  int64_t marks() const { return spans_of(context) + 1; }
  int64_t special_tokens() const {
    if (objective == LanguageObjective::causal) return 0;
    return objective == LanguageObjective::masked ? 1 : marks() + 1;
  }
  /// The settings of its stacks.
  TransformerConfig stacks() const;

  ModelFacts facts() const;
  /// Names and shapes of all parameters, for a tokenizer with that many tokens.
  std::vector<NamedShape> layout(int64_t tokens) const;
  /// Refuses settings that do not fit together.
  void check() const;

  void fields(auto&& f) {
    f("objective",
      tr("causal: continue a text; masked: fill in hidden tokens; spans: write the spans that were cut out of a text"),
      objective);
    f("context", tr("tokens that the model reads at once"), context, 2, 1'000'000);
    f("mask_share", tr("masked and spans: share of the tokens that are hidden"), mask_share, 0.001, 0.9);
    f("mask_random", tr("masked: share of the hidden tokens that are replaced by a random token"), mask_random, 0, 1);
    f("mask_kept", tr("masked: share of the hidden tokens that are left as they are"), mask_kept, 0, 1);
    f("span_length", tr("spans: mean number of tokens in a span"), span_length, 1, 1000);
    transformer.fields([&](std::string_view key, const Text& help, auto& value, const auto&... limits) {
      if (key == "max_positions") return;  // as many as the context
      if (key == "tied")
        f("tied", tr("one matrix for embeddings and output layer"), value, limits...);
      else
        f(key.data(), help, value, limits...);
    });
  }
};

}  // namespace qkv
