// Tokenizers of pretrained folders that have no tokenizer.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qkv/data/added_tokens.h"
#include "qkv/data/token_codec.h"

namespace qkv {

/// What tokenizer_config.json, special_tokens_map.json and added_tokens.json say, as far as they are there.
struct TokenizerConfig {
  explicit TokenizerConfig(const std::string& folder);

  /// The token of a name, such as "bos_token"; "" where none is given.
  const std::string& token(std::string_view name) const;
  /// A setting that is true, false or not given.
  std::optional<bool> flag(std::string_view name) const;

  std::vector<std::pair<std::string, std::string>> tokens;
  std::vector<std::pair<std::string, bool>> flags;
  std::vector<AddedToken> added;
  size_t most = 0;
  std::vector<std::string> files;
};

/// source.spm, vocab.json and, if it is there, target_vocab.json.
OpenedTokenizer open_marian(const std::string& folder, const TokenizerConfig& config);
/// vocab.txt
OpenedTokenizer open_word_piece(const std::string& folder, const TokenizerConfig& config);
/// vocab.json and merges.txt
OpenedTokenizer open_byte_pairs(const std::string& folder, std::string_view model_type, const TokenizerConfig& config);
/// tokenizer.model
OpenedTokenizer open_sentence_pieces(const std::string& folder, const TokenizerConfig& config);
/// tokenizer.bin
OpenedTokenizer open_llama2c_file(const std::string& path, int32_t size);

}  // namespace qkv
