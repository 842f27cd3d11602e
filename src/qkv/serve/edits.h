// Changes of attention that a request asks for.
#pragma once

#include "qkv/attention/edits.h"
#include "qkv/models/model_facts.h"
#include "qkv/serve/call.h"

namespace qkv::serve {

/// "edits": [{"name": "cross", "layer": 1, "head": 2, "query": 3, "do": "force", "key": 4}, ...]: layers and heads from
/// 1, tokens from 0; no head: all of them; no query: all rows. Refuses what the model cannot have.
AttentionEdits read_edits(const Fields& in, const ModelFacts& facts);
/// "off": [{"name": "cross", "layer": 1, "head": 2}, ...]
AttentionEdits read_off(const Fields& in, const ModelFacts& facts);

/// Whether there are any edits.
bool edited(const Fields& in);

}  // namespace qkv::serve
