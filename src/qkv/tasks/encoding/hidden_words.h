// An encoder's head of words: fills gaps, and scores texts by hiding one token after the other.
#pragma once

#include <string>

#include "qkv/core/api.h"
#include "qkv/tasks/encoding/sentence_encoder.h"
#include "qkv/tasks/language/generator.h"

namespace QKV_API qkv {

/// Fills the gaps of a prompt, written [MASK] or as the tokenizer has it. Special tokens are not listed; probabilities
/// are those among all tokens.
Filled fill_gaps(const SentenceEncoder& encoder, const std::string& prompt, int64_t candidates,
                 const AttentionEdits& edits = {});

/// Every line is a text. Each of its tokens in turn is hidden, and the model is asked for it (Salazar et al., 2020).
TextScore hidden_score(const SentenceEncoder& encoder, const std::string& text, const Text& name);

}  // namespace qkv
