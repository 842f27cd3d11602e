// Limits on input, in one place: each is checked before memory is allocated for it (docs/limits.md says why).
#pragma once

#include <cstddef>
#include <cstdint>

#include "qkv/core/api.h"

namespace QKV_API qkv {
namespace limits {

// Settings files.
inline constexpr uint64_t kSettingsBytes = uint64_t{256} << 10;

// Tables.
inline constexpr int64_t kColumns = 65'536;
inline constexpr int64_t kSlopes = 1024;  // columns of x in a local-linear fit, which stores their products

// Text, gzipped or not.
inline constexpr uint64_t kTextBytes = uint64_t{4} << 30;
// A gzip file may unpack to kFreeUnpacked bytes; a larger result may be at most kUnpackedRatio times the file's size.
inline constexpr uint64_t kFreeUnpacked = uint64_t{64} << 20;
inline constexpr uint64_t kUnpackedRatio = 100;  // text compresses 3 to 10 times

// Arrays and weights.
inline constexpr uint64_t kNpyHeaderBytes = uint64_t{1} << 20;
inline constexpr uint64_t kSafetensorsHeaderBytes = 100'000'000;  // the format's own limit
inline constexpr size_t kTensors = 100'000;  // tensors in a safetensors file, and entries in its metadata

// Pretrained folders: config.json, generation_config.json and the index of shards.
inline constexpr uint64_t kModelJsonBytes = uint64_t{64} << 20;

// Subword models.
inline constexpr uint64_t kSubwordModelBytes = uint64_t{256} << 20;
inline constexpr size_t kPieceBytes = 512;  // per piece: a trie of longer pieces takes minutes to build
inline constexpr uint64_t kCharacterTableBytes = uint64_t{16} << 20;  // of the model's table of normalised characters
inline constexpr uint64_t kGrowth = 32;                               // bytes that one byte may become under that table
inline constexpr size_t kSentenceBytes =
    65'536;  // in a sentence to be cut into subwords: SentencePiece needs about 260 bytes for each

// Tokenizers of pretrained models.
inline constexpr uint64_t kTokenizerBytes = uint64_t{128} << 20;  // per file
inline constexpr int32_t kTokens = 4'000'000;                     // ids in a vocabulary
inline constexpr uint64_t kEncodedBytes = uint64_t{64} << 20;     // of a text to encode

// Sentences that a model translates.
inline constexpr size_t kSentenceTokens = 4096;  // not counting <eos>

// Pictures, and sets of them.
inline constexpr int64_t kPictureSide = 16'384;              // pixels
inline constexpr int64_t kPicturePixels = int64_t{1} << 26;  // in all
inline constexpr uint64_t kPictureBytes = uint64_t{1} << 30;
inline constexpr uint64_t kImageSetBytes = uint64_t{8} << 30;
inline constexpr int64_t kClasses = 100'000;

// Errors.
inline constexpr size_t kQuotedBytes = 120;  // of a value quoted in a message
inline constexpr size_t kMessageBytes = 1500;

}  // namespace limits
}  // namespace qkv
