// Translations and forced translations as JSON, with their attention.
#pragma once

#include <string>

#include "qkv/core/api.h"
#include "qkv/tasks/translation/translator.h"

namespace QKV_API qkv {
namespace report {

/// Where a sentence comes from, and whether to include its attention.
struct TranslationPlace {
  std::string file;  // empty: left out
  size_t line = 1;
  bool attention = false;
};

/// {"line": 1, "source": "...", "source_tokens": [...], "text": "...", "hypotheses": [{"text": ..., "tokens": [...],
/// ...}]}
std::string to_json(const Translator& translator, const std::string& sentence, const Translation& translation,
                    const TranslationPlace& place);

/// {"line": 1, "source": "...", "reference": "...", "tokens": [...], "log_probability": -3.2, "log_probabilities":
/// [...]}
std::string to_json(const Translator& translator, const std::string& source, const std::string& reference,
                    const ForcedTranslation& forced, const TranslationPlace& place);

/// The attention of a sentence, (steps, maps, T), as (layers, heads, steps, T), or as (maps, steps, T) if there is only
/// one map.
Tensor by_layers(const Translator& translator, const Tensor& attention);

}  // namespace report
}  // namespace qkv
