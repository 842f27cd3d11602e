// The Unicode classes that BERT's tokenizers go by: those of Unicode 8.
#pragma once

#include <cstdint>

namespace qkv {

/// Whether a mark, a sign or a format character is younger than Unicode 8, or has been in that class since: the
/// `tokenizers` library does not treat it as one in its rules for BERT.
bool is_young_mark(int32_t code);
bool is_young_punctuation(int32_t code);
bool is_young_control(int32_t code);

}  // namespace qkv
