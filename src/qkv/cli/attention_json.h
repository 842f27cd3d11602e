// Attention of a sentence as nested lists, for commands that print JSON.
#pragma once

#include <vector>

#include "qkv/tasks/translation/translator.h"

namespace qkv::cli {

/// (steps, maps, T) as maps of steps of weights; of a Transformer as layers of heads of steps of weights.
template <class Json>
Json attention_json(const Translator& translator, const Tensor& attention) {
  const Transformer* model = translator.model().transformer();
  const int64_t steps = attention.size(0), count = attention.size(1), keys = attention.size(2), heads = model ? model->options.heads : count;
  Json layers = Json::array();
  for (int64_t m = 0; m < count; ++m) {
    if (m % heads == 0) layers.push_back(Json::array());
    Json& map = layers.back().emplace_back(Json::array());
    for (int64_t s = 0; s < steps; ++s) {
      const float* row = attention.ptr() + (s * count + m) * keys;
      map.push_back(std::vector<float>(row, row + keys));
    }
  }
  return model ? layers : layers[0];
}

}  // namespace qkv::cli
