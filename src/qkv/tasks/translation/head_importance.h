// How much each head of a translation model matters, in four ways (exercise 10.5.2).
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/models/head_pruning.h"
#include "qkv/tasks/translation/translator.h"

namespace QKV_API qkv {

/// gate: |d loss / d gate|, a gate of 1 on what the head found, averaged over sentences (Michel et al., 2019).
/// ablation: how much the loss rises without the head. confidence: its largest weight, averaged over queries (Voita et
/// al., 2019). entropy: how far the entropy of its weights is below that of equal weights, averaged over queries.
enum class ImportanceBy { gate, ablation, confidence, entropy };
constexpr std::array<std::string_view, 4> names(ImportanceBy) { return {"gate", "ablation", "confidence", "entropy"}; }

/// Mean cross-entropy per target token, <eos> included, in nats, with edits of attention.
double forced_loss(const Translator& translator, const SentencePairs& pairs, const AttentionEdits& edits = {});

/// The edits that switch off the heads of a unit.
AttentionEdits unit_off(const TransformerConfig& config, const PrunableAttention& attention, int64_t unit);

/// The importance of every unit, per attention in the order of prunable_attentions. The model must be a Transformer.
/// `progress` gets the share that is done.
std::vector<std::vector<double>> head_importance(const Translator& translator, const SentencePairs& pairs,
                                                 ImportanceBy by,
                                                 const std::function<void(double done)>& progress = {});

/// Spearman's rank correlation of two lists; equal values share their rank. 0 if a list is constant.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace qkv
