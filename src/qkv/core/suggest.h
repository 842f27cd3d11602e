// "did you mean": the known word nearest to a misspelt one.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// Number of edits (insert, delete, replace, swap two neighbours) that turn one word into the other.
int edit_distance(std::string_view a, std::string_view b);

/// The known word that `word` was probably meant to be, or "" if none is near.
std::string nearest_word(std::string_view word, std::span<const std::string> known);

/// The hint 'did you mean "near"?', or nothing if no known word is near.
Text did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace qkv
