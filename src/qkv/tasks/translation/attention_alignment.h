// Word alignments from the attention of many sentence pairs, for any of a model's maps, and how to choose a map without
// gold links.
#pragma once

#include <span>
#include <vector>

#include "qkv/core/api.h"
#include "qkv/tasks/translation/translator.h"
#include "qkv/tasks/translation/word_attention.h"

namespace QKV_API qkv {

/// The weights used to align a target word: those of a map (layer * heads + head), at the step that writes the word
/// (shift 0) or at the next one, which reads it (shift 1). A recurrent decoder attends before it writes; in a
/// Transformer, the step that reads the word often attends to its source more clearly than the step before, which only
/// predicts it (Chen et al., 2020).
struct AlignmentReading {
  int64_t map = 0;
  int shift = 0;
};

/// All readings of a model with this many maps: map by map, shift 0 first.
std::vector<AlignmentReading> all_readings(int64_t maps);

/// The alignments of all pairs for every reading; `forced` is the result of Translator::force for the pairs. A pair
/// with an empty side has no links.
std::vector<std::vector<Alignment>> read_alignments(const Tokenizers& tokenizers, const SentencePairs& pairs,
                                                    std::span<const ForcedTranslation> forced,
                                                    std::span<const AlignmentReading> readings, LinkRule rule,
                                                    AlignmentUnit unit = AlignmentUnit::words);

/// The weights (target units, source units) that a reading aligns pair `i` by; undefined if a side is empty.
Tensor alignment_weights(const Tokenizers& tokenizers, const SentencePairs& pairs, size_t i,
                         const ForcedTranslation& forced, const AlignmentReading& reading,
                         AlignmentUnit unit = AlignmentUnit::words);

/// How much a link's source word tells about its target word, in nats per link: the mean of log p(t | s) / p(t), where
/// p(t | s) is counted from all other links, with p(t) added as one link. Random links, and links that all go to one
/// word, give 0 or less; true links give the most. It needs no gold links, only enough pairs for words to repeat.
/// `pairs` as they were aligned (in_units).
double link_information(const SentencePairs& pairs, std::span<const Alignment> alignments);

}  // namespace qkv
