// Word alignments from the attention of many sentence pairs, by any of a model's maps, and the choice among them
// without gold links.
#pragma once

#include <span>
#include <vector>

#include "qkv/tasks/translation/translator.h"
#include "qkv/tasks/translation/word_attention.h"

namespace qkv {

/// Which weights a target word is aligned by: those of a map (layer * heads + head), at the step that writes the word
/// (shift 0) or at the next one, which reads it (shift 1). A recurrent decoder looks before it writes; in a Transformer
/// the step whose input the word is often looks at its source more clearly than the step before, which only expects it
/// (Chen et al., 2020).
struct AlignmentReading {
  int64_t map = 0;
  int shift = 0;
};

/// All maps of a model with this many, at both steps: map by map, shift 0 first.
std::vector<AlignmentReading> all_readings(int64_t maps);

/// For every reading the alignments of all pairs; `forced` is what Translator::force gave for them. A pair with an
/// empty side has no links.
std::vector<std::vector<Alignment>> read_alignments(const Tokenizers& tokenizers, const SentencePairs& pairs,
                                                    std::span<const ForcedTranslation> forced,
                                                    std::span<const AlignmentReading> readings, LinkRule rule);

/// How much a link's source word says about its target word, in nats a link: the mean of log p(t | s) / p(t), where p(t
/// | s) is counted from all other links, with one link's worth of p(t) added. Links at random and links to one word for
/// all have nothing to say, 0 or less; true links say most. It needs no gold, only enough pairs for words to come
/// again.
double link_information(const SentencePairs& pairs, std::span<const Alignment> alignments);

}  // namespace qkv
