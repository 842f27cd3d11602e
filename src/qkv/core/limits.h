// The limits of what is read, in one place: each is checked before memory is taken for what would pass it
// (docs/limits.md says why).
#pragma once

#include <cstddef>
#include <cstdint>

namespace qkv::limits {

// Files of settings.
inline constexpr uint64_t kSettingsBytes = uint64_t{256} << 10;

// Tables.
inline constexpr int64_t kColumns = 65'536;
inline constexpr int64_t kSlopes = 1024;  // columns of x of a local-linear fit, which keeps their products

// Text, gzipped or not.
inline constexpr uint64_t kTextBytes = uint64_t{4} << 30;
inline constexpr uint64_t kFreeUnpacked =
    uint64_t{64} << 20;  // bytes that any gzip file may unpack to; beyond it, kUnpackedRatio times its size
inline constexpr uint64_t kUnpackedRatio = 100;  // text packs 3 to 10 times tighter

// Arrays and weights.
inline constexpr uint64_t kNpyHeaderBytes = uint64_t{1} << 20;
inline constexpr uint64_t kSafetensorsHeaderBytes = 100'000'000;  // the format's own limit
inline constexpr size_t kTensors = 100'000;                       // of a safetensors file, and texts of its metadata

// Subword models.
inline constexpr uint64_t kSubwordModelBytes = uint64_t{256} << 20;
inline constexpr size_t kPieceBytes = 512;  // of a piece: a trie of long ones takes minutes to make
inline constexpr uint64_t kCharacterTableBytes = uint64_t{16} << 20;  // of its table of normalised characters
inline constexpr uint64_t kGrowth = 32;                               // bytes that a byte may become under that table
inline constexpr size_t kSentenceBytes =
    65'536;  // of a sentence that is cut into subwords: SentencePiece takes about 260 bytes for each

// Sentences that a model translates.
inline constexpr size_t kSentenceTokens = 4096;  // <eos> apart

// Errors.
inline constexpr size_t kQuotedBytes = 120;  // of a value that a message quotes
inline constexpr size_t kMessageBytes = 1500;

}  // namespace qkv::limits
