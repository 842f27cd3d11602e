// BLEU's tokenisers; each gives exactly the output of sacreBLEU's tokeniser of the same name.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// The scheme is part of the score: 13a (mteval-v13a, the default of WMT), none (text that is already tokenised), char
/// (every character), intl (mteval-v14: Unicode punctuation and symbols), zh (every Chinese character, the rest as
/// 13a).
enum class BleuTokenizer { v13a, none, chars, intl, zh };
constexpr std::array<std::string_view, 5> names(BleuTokenizer) { return {"13a", "none", "char", "intl", "zh"}; }

/// The line with spaces between its tokens; sacreBLEU strips white space at the end of a line before this.
std::string tokenized(std::string_view line, BleuTokenizer tokenizer);

}  // namespace qkv
