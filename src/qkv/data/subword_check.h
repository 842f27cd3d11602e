// What a SentencePiece model must hold before SentencePiece gets it: the library follows a damaged one wherever it
// points.
#pragma once

#include <string>
#include <string_view>

namespace qkv {

/// Fails, with `name` in front, unless the bytes are fields of a model whose pieces are text and whose tables of
/// normalised characters (of the text that comes in, and of the text that goes out) stay within themselves. What else a
/// model needs, SentencePiece checks.
void check_subword_model(std::string_view bytes, const std::string& name);

}  // namespace qkv
