// Facts about a model that are known before it is built: no other code derives them from settings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/core/counts.h"
#include "qkv/core/language.h"

namespace QKV_API qkv {

/// Sizes of both vocabularies.
struct VocabularySizes {
  int64_t source = 0, target = 0;
};

/// The attention maps of one part of a model, one per layer and head.
struct MapGroup {
  std::string_view name;  // "encoder", "decoder", or "cross": from the decoder to the source
  int64_t layers = 1, heads = 1;
  bool numbered = true;                 // by layer and head; false: there is only one map
  std::vector<int64_t> per_layer = {};  // heads of every layer, `heads` at most; empty: `heads` in all of them
  /// With the maps that layers with fewer heads lack: these are 0 everywhere.
  int64_t count() const { return layers * heads; }
  int64_t heads_of(int64_t layer) const { return per_layer.empty() ? heads : per_layer[static_cast<size_t>(layer)]; }
};

struct ModelFacts {
  Text summary;                               // "seq2seq, gru, 1 layer, hidden 24, embed 24, attention additive"
  std::optional<int64_t> longest_input = {};  // in tokens, including <eos>; absent: no limit
  bool reads_padding = false;  // the encoder runs through it, so a sentence needs the same padding as in training
  std::vector<MapGroup> maps = {};
  int64_t source_floats = 0;   // kept while decoding: per row and source token,
  int64_t written_floats = 0;  // and per row and written token

  /// The maps from the decoder to the source; absent without attention.
  std::optional<MapGroup> source_maps() const {
    for (const MapGroup& group : maps)
      if (group.name == "cross") return group;
    return {};
  }
};

}  // namespace qkv
