// Attention of a sentence as nested lists, for commands that print JSON.
#pragma once

#include <vector>

#include "qkv/tasks/translation/translator.h"

namespace qkv::cli {

/// (steps, maps, T) as layers of heads of steps of weights; as maps of steps of weights where there is but one.
template <class Json>
Json attention_json(const Translator& translator, const Tensor& attention) {
  const MapGroup maps = translator.model().facts().source_maps().value();
  const int64_t steps = attention.size(0), count = attention.size(1), keys = attention.size(2);
  Json layers = Json::array();
  for (int64_t m = 0; m < count; ++m) {
    if (m % maps.heads == 0) layers.push_back(Json::array());
    Json& map = layers.back().emplace_back(Json::array());
    for (int64_t s = 0; s < steps; ++s) {
      const float* row = attention.ptr() + (s * count + m) * keys;
      map.push_back(std::vector<float>(row, row + keys));
    }
  }
  return maps.numbered ? layers : layers[0];
}

}  // namespace qkv::cli
