// Decoders: how the pieces of tokens become text again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace qkv {

class TokenDecoder {
 public:
  virtual ~TokenDecoder() = default;
  /// Changes the pieces; joined, they are the text.
  virtual void apply(std::vector<std::string>& pieces) const = 0;
};

using TokenDecoders = std::vector<std::unique_ptr<const TokenDecoder>>;

/// Spaces before all pieces but those with the prefix; `clean`: none before signs and English endings.
std::unique_ptr<const TokenDecoder> word_piece_decoder(std::string prefix, bool clean);
std::unique_ptr<const TokenDecoder> byte_level_decoder();
/// `sign` is a space, but not at the beginning of the text, if the model put one there.
std::unique_ptr<const TokenDecoder> metaspace_decoder(std::string sign, bool prepended);
std::unique_ptr<const TokenDecoder> suffix_decoder(std::string suffix);
std::unique_ptr<const TokenDecoder> byte_fallback_decoder();
std::unique_ptr<const TokenDecoder> fuse_decoder();
std::unique_ptr<const TokenDecoder> strip_decoder(std::string sign, int64_t left, int64_t right);
std::unique_ptr<const TokenDecoder> replace_decoder(std::string what, std::string with);
std::unique_ptr<const TokenDecoder> decoder_sequence(TokenDecoders steps);
/// A space between all pieces: what is done where a tokenizer names no decoder.
std::unique_ptr<const TokenDecoder> spaces_decoder();

}  // namespace qkv
