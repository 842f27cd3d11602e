// tokenizer.json: the file of the `tokenizers` library, as far as its parts are those that we have.
#pragma once

#include <string>

#include "qkv/data/json_file.h"
#include "qkv/data/token_codec.h"
#include "qkv/data/token_pipeline.h"

namespace qkv {

/// Reads the codec, the template and the kind. A part that we do not have is refused by its name.
OpenedTokenizer read_tokenizer_json(const std::string& path);

// Its parts, from their values in the file.
std::unique_ptr<const Normalizer> read_normalizer(const JsonValue& value);
std::unique_ptr<const Splitter> read_splitter(const JsonValue& value);
std::unique_ptr<const TokenDecoder> read_decoder(const JsonValue& value);
/// Whether the splitter leaves words as bytes, for a model of bytes.
bool is_byte_level(const JsonValue& splitter);
/// Whether it cuts nothing, so that words have to be found by blanks.
bool cuts_nothing(const JsonValue& splitter);
/// Reads table and model, and returns its kind in words.
std::string read_model(const JsonValue& value, bool bytes, PipelineParts& parts);
/// Pieces and their numbers, from an object.
std::unique_ptr<const PieceTable> read_table(const JsonValue& vocabulary);
/// A flag of an added token, and the rest; `id` comes from elsewhere in some files.
AddedToken read_added_token(const JsonValue& value, int32_t id);
struct PostProcessor {
  TokenTemplate tokens;
  bool trim_offsets = false;
};
/// The special tokens that it names have to be in the table or among the added ones.
PostProcessor read_post_processor(const JsonValue& value);

}  // namespace qkv
