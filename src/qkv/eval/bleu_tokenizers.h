// The tokenisers of BLEU, each of which leaves a line exactly as sacreBLEU's of the same name does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// The scheme is part of the score: 13a (mteval-v13a, the default of WMT), none (text that is tokenised already), char (every
/// character), intl (mteval-v14: Unicode punctuation and symbols), zh (every Chinese character, the rest as 13a).
enum class BleuTokenizer { v13a, none, chars, intl, zh };

/// "13a", "none", "char", "intl", "zh", in the order of the enumeration.
const std::vector<std::string>& bleu_tokenizer_names();
/// By name; an unknown one is an error that lists them, with the nearest as hint.
BleuTokenizer bleu_tokenizer_named(const std::string& name);
const std::string& name_of(BleuTokenizer tokenizer);

/// The line with spaces between its tokens; sacreBLEU strips white space at the end of a line before this.
std::string tokenized(std::string_view line, BleuTokenizer tokenizer);

}  // namespace qkv
