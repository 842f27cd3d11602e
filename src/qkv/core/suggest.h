// "did you mean": the nearest of some known words.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace qkv {

/// Edits (insert, delete, replace, swap two neighbours) that turn one word into the other.
int edit_distance(std::string_view a, std::string_view b);

/// The known word that `word` was probably meant to be, or "" when none is near.
std::string nearest_word(std::string_view word, std::span<const std::string> known);

/// The hint 'did you mean "near"?', or "" when no known word is near.
std::string did_you_mean(std::string_view word, std::span<const std::string> known);

}  // namespace qkv
