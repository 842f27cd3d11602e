// Language models as subjects of the leak tests: no output of a causal model, or of the decoder of spans, may depend on
// later tokens, on padding or on other rows.
#pragma once

#include <vector>

#include "qkv/core/api.h"
#include "qkv/tasks/language/generator.h"
#include "qkv/tasks/leaks.h"

namespace QKV_API qkv {

/// The generator must outlive the subject. A masked model is refused: each of its tokens sees all others.
LeakSubject leak_subject(const LanguageGenerator& generator);
/// Texts of random tokens within what the model reads; for spans, pairs of them.
std::vector<IdPair> random_texts(const LanguageGenerator& generator, int64_t count, const Rng& rng);
/// Pieces of a text, from random places; for spans, the same tokens on both sides.
std::vector<IdPair> pieces_of(const LanguageGenerator& generator, const std::vector<int32_t>& text, int64_t count,
                              const Rng& rng);

}  // namespace qkv
