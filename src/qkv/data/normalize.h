// Unicode normalisation of text before it becomes subwords.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qkv {

/// none: characters as they stand. nfc: letters and their accents composed, and every blank of Unicode a space. nfkc:
/// full-width letters, ligatures and the like, too, become what they stand for.
enum class Normalization { none, nfc, nfkc };
constexpr std::array<std::string_view, 3> names(Normalization) { return {"none", "nfc", "nfkc"}; }

/// Every character by the form; blanks stay where they are. What is not UTF-8 stays as it is.
std::string composed(std::string_view text, Normalization form);

/// A sentence with one space between its words, and for each word the number of the part between spaces or tabs, from
/// 0, that it was in: a character may become several words.
struct NormalizedSentence {
  std::string text;
  std::vector<int32_t> part_of_word;
};
/// A tab is a blank in every form. A sentence of blanks alone, of any kind, is empty.
NormalizedSentence normalized(std::string_view sentence, Normalization form);

}  // namespace qkv
