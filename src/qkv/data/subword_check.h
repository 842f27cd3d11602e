// Checks a SentencePiece model before the library reads it: the library follows damaged pointers anywhere.
#pragma once

#include <string>
#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// Fails, with a message that starts with `name`, unless the bytes are fields of a model whose pieces are text and
/// whose tables of normalised characters (for input and for output text) never point outside themselves. SentencePiece
/// checks the rest.
void check_subword_model(std::string_view bytes, const std::string& name);

}  // namespace qkv
