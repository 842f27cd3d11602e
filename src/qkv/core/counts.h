// Numbers with what they count, in the singular or the plural: "1 token", "2,000 tokens".
#pragma once

#include <cstdint>

#include "qkv/core/api.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

Text byte_count(uint64_t bytes);
Text claim_count(uint64_t claims);
Text file_count(uint64_t files);
Text image_count(uint64_t images);
Text layer_count(uint64_t layers);
Text line_count(uint64_t lines);
Text link_count(uint64_t links);
Text pair_count(uint64_t pairs);
Text text_count(uint64_t texts);
Text token_count(uint64_t tokens);
Text update_count(uint64_t updates);

}  // namespace qkv
