// Heads removed from a Transformer for good: smaller matrices, a smaller file, less to compute.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/models/transformer_config.h"
#include "qkv/nn/module.h"

namespace QKV_API qkv {

/// One attention of a Transformer. What is kept or removed is a unit: a head, or if keys are shared, one key head
/// together with the query heads that read it.
struct PrunableAttention {
  std::string path;  // "decoder.1.cross", as probes see it and as parameters are named
  AttentionPart part = AttentionPart::encoder;
  int64_t layer = 0, units = 0;
};
/// Every attention of an encoder-decoder, in the order encoder, decoder, cross.
std::vector<PrunableAttention> prunable_attentions(const TransformerConfig& config);

/// Per attention, the units that stay, ascending; at least one each.
using KeptUnits = std::vector<std::vector<int64_t>>;

/// Keeps the most important units of all attentions together, and at least one of each: `importance` has a list of
/// units per attention. keep: the share that stays, above 0 and at most 1. Refused if it leaves too few for one per
/// attention.
KeptUnits most_important(const std::vector<std::vector<double>>& importance, double keep);

/// The settings of the smaller model.
TransformerConfig pruned(const TransformerConfig& config, const KeptUnits& kept);
/// Its parameters by name: rows of the projections of queries, keys and values, and columns of the output projection,
/// are left out, and rows of a table of relative positions.
std::map<std::string, Tensor> pruned(const Parameters& parameters, const TransformerConfig& config,
                                     const KeptUnits& kept);

}  // namespace qkv
