// The attention maps of one sentence, kept for rectangles of them: exact weights of any row are recomputed when they
// are asked for, so a long text costs no square of its length.
#pragma once

#include <string>
#include <vector>

#include "qkv/attention/weights.h"
#include "qkv/serve/call.h"

namespace qkv::serve {

/// The maps of one part of a model.
struct MapPart {
  std::string name;             // "encoder", "decoder", "cross"
  std::vector<Weights> layers;  // (1, heads, queries, keys) each, as the model computed them
  Tensor dense;                 // or, for another reading, (layers, heads, queries, keys)
  int64_t kept_bytes = 0;       // what `layers` hold: queries and keys, or whole matrices

  int64_t layer_count() const { return dense.defined() ? dense.size(0) : std::ssize(layers); }
  int64_t heads() const { return dense.defined() ? dense.size(1) : layers.front().shape()[1]; }
  int64_t queries() const { return dense.defined() ? dense.size(2) : layers.front().shape()[2]; }
  int64_t keys() const { return dense.defined() ? dense.size(3) : layers.front().shape()[3]; }
  int64_t bytes() const;
  /// Layer and head from 0.
  void row(int64_t layer, int64_t head, int64_t query, float* weights) const;
};

struct MapSession {
  std::string text, target;
  std::vector<std::string> source_tokens, input_tokens, output_tokens;
  std::vector<MapPart> parts;

  /// Layers and heads from 1, as in requests; an unknown one is an error.
  const MapPart& part(const std::string& name) const;
  Tensor map(const std::string& name, int64_t layer, int64_t head) const;
  /// Memory that it holds.
  int64_t bytes() const;
};

/// A sentence in a translation or language model: what it attends to. `in` has model, text, target and reading.
MapSession look_at_text(const Call& call, const Fields& in);

/// Every map: name, layer, head, shape, values if they are few, entropy and confidence.
Json maps_json(const MapSession& session, const Call& call);

}  // namespace qkv::serve
