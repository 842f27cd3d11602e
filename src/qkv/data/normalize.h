// Unicode normalisation of text before it becomes subwords.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"

namespace QKV_API qkv {

/// none: characters unchanged. nfc: letters composed with their accents, and every Unicode blank a space. nfkc: also
/// full-width letters, ligatures and the like become plain letters.
enum class Normalization { none, nfc, nfkc };
constexpr std::array<std::string_view, 3> names(Normalization) { return {"none", "nfc", "nfkc"}; }

/// Every character in the given form; blanks are not merged. Invalid UTF-8 is kept.
std::string composed(std::string_view text, Normalization form);

/// A sentence with one space between its words, and for each word the index of the part between spaces or tabs that it
/// comes from: one character may become several words.
struct NormalizedSentence {
  std::string text;
  std::vector<int32_t> part_of_word;
};
/// A tab is a blank in every form. A sentence of only blanks of any kind becomes empty.
NormalizedSentence normalized(std::string_view sentence, Normalization form);

}  // namespace qkv
