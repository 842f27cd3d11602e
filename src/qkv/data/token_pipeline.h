// TokenPipeline: added tokens, normalizer, splitter, model and decoder, one after the other.
#pragma once

#include <memory>
#include <vector>

#include "qkv/data/added_tokens.h"
#include "qkv/data/token_codec.h"
#include "qkv/data/token_decoders.h"
#include "qkv/data/token_models.h"
#include "qkv/data/token_normalizers.h"
#include "qkv/data/token_splitters.h"

namespace qkv {

/// The parts of a pipeline. Only the table, the model and the decoder have to be there.
struct PipelineParts {
  std::unique_ptr<const PieceTable> table;
  std::unique_ptr<const TokenModel> model;
  std::unique_ptr<const Normalizer> normalizer;
  std::unique_ptr<const Splitter> splitter;
  std::unique_ptr<const TokenDecoder> decoder;
  std::vector<AddedToken> added;
  std::vector<int32_t> hidden;   // special tokens that no text has
  bool trim_offsets = false;     // offsets without the blanks at both ends
  bool words_by_blanks = false;  // words are what blanks separate, where no splitter cuts
};

std::unique_ptr<const TokenCodec> token_pipeline(PipelineParts parts);

}  // namespace qkv
