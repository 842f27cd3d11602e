// The attentions of a model by path, from its facts: for edits, and for messages that list them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/attention/edits.h"
#include "qkv/core/api.h"
#include "qkv/models/model_facts.h"

namespace QKV_API qkv {

struct AttentionPlace {
  std::string path;       // as a probe sees it: "decoder.1.cross"
  std::string_view part;  // "encoder", "decoder" or "cross", as in MapGroup
  int64_t layer, heads;   // layers count from 0
};

/// Every attention of the model, in the order of its maps.
std::vector<AttentionPlace> attention_places(const ModelFacts& facts);

/// Refuses edits that this model cannot have: an unknown path, with the paths that exist, or a head that it lacks.
void check_edits(std::span<const AttentionEdit> edits, const ModelFacts& facts);

}  // namespace qkv
