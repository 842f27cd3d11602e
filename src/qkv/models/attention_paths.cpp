// Paths of attentions, and edits checked against them.
#include "qkv/models/attention_paths.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/core/names.h"

namespace qkv {

std::vector<AttentionPlace> attention_places(const ModelFacts& facts) {
  std::vector<AttentionPlace> out;
  for (const MapGroup& group : facts.maps)
    for (int64_t layer = 0; layer < group.layers; ++layer) {
      // The attention of a recurrent decoder is not in a stack of layers.
      std::string path = "decoder.attention";
      if (group.numbered)
        path = group.name == "cross" ? text("decoder.", layer, ".cross") : text(group.name, ".", layer, ".self");
      out.push_back({std::move(path), group.name, layer, group.heads_of(layer)});
    }
  return out;
}

void check_edits(std::span<const AttentionEdit> edits, const ModelFacts& facts) {
  if (edits.empty()) return;
  const std::vector<AttentionPlace> places = attention_places(facts);
  std::vector<std::string> paths;
  for (const AttentionPlace& place : places) paths.push_back(place.path);
  for (const AttentionEdit& edit : edits) {
    check_edit(edit);
    require(!places.empty(), "this model has no attention: there is nothing to edit at {path}", "path"_a = edit.path);
    const auto at = std::ranges::find(places, edit.path, &AttentionPlace::path);
    require(at != places.end(), "there is no attention at {path}: this model has {paths}", "path"_a = edit.path,
            "paths"_a = listed(paths));
    require(edit.head.value_or(0) < at->heads, "{path} has no head {head}: it has {heads}, counted from 0",
            "path"_a = edit.path, "head"_a = edit.head.value_or(0), "heads"_a = at->heads);
  }
}

}  // namespace qkv
