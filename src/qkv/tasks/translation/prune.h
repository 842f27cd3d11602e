// Translation models with fewer heads: made, measured and written to a folder.
#pragma once

#include <memory>
#include <string>

#include "qkv/core/api.h"
#include "qkv/eval/significance.h"
#include "qkv/models/head_pruning.h"
#include "qkv/tasks/translation/translator.h"

namespace QKV_API qkv {

struct PrunedModel {
  TranslationConfig config;
  std::unique_ptr<TranslationModel> model;
};
/// The model with these units alone; its weights are copies.
PrunedModel pruned_model(const Translator& translator, const KeptUnits& kept);

/// Writes a folder that translates, inspects, is pruned again, and that `qkv train --init` starts from. A folder
/// that exists already is refused.
void save_pruned(const PrunedModel& pruned, const Tokenizers& tokenizers, const std::string& folder);

/// Products per token of a sentence that is as long as its translation, without those of the weights: the elements of
/// all matrices that a token passes.
int64_t products_per_token(const Parameters& parameters);

/// How well a model translates some pairs.
struct TranslationQuality {
  double loss = 0;    // nats per target token
  double bleu = 0;    // greedy; lower-cased if the model writes no capitals
  Interval interval;  // of BLEU, by bootstrap
};
TranslationQuality quality_of(const Translator& translator, const SentencePairs& pairs,
                              const AttentionEdits& edits = {});

/// The pairs that a run was validated with, or else the first ones that it was trained with; at most `count`.
SentencePairs measuring_pairs(const Translator& translator, const std::string& folder, int64_t count);

}  // namespace qkv
