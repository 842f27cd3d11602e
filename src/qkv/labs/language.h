// Lab 11.9: language models. What several steps of the lab share.
#pragma once

#include <vector>

#include "qkv/labs/lab.h"
#include "qkv/tasks/language/data.h"
#include "qkv/tasks/language/task.h"

namespace qkv::labs::language {

inline constexpr int64_t kContext = 24, kBatchRows = 32;  // of the models that read words

/// The English sentences of the built-in corpus as words. The test sentences are the last ones, from the same grammar.
struct WordText {
  TextTokenizer tokenizer = TextTokenizer::bytes();
  std::vector<int32_t> train, test;  // sentences, each with its line end

  /// The sentences of ids, without line ends.
  std::vector<std::vector<int32_t>> sentences(const std::vector<int32_t>& ids) const;
};
WordText read_words(uint64_t seed);

/// A language model of words after its training, and its loss on the test text during it, in nats per token asked for.
struct Reader {
  LanguageModel model;
  std::vector<double> tokens, loss;  // tokens read so far, loss then
};

struct ReaderPlan {
  LanguageObjective objective = LanguageObjective::causal;
  int64_t width = 64, steps = 600;
  int64_t measures = 1;  // how often the test loss is measured, at equal distances; the last time at the end
  float rate = 3e-3f;
};
Reader trained_reader(const ReaderPlan& plan, const WordText& text, const std::vector<int32_t>& train, uint64_t seed,
                      Observer& observer);

/// The three objectives on the same text.
struct Readers {
  WordText text;
  Reader causal, masked, spans;
};
const Readers& readers(Page& page);

// language_induction.cpp
void induction_task(Page& page);
void induction_training(Page& page);
void induction_heads(Page& page);
void induction_without(Page& page);

// language_objectives.cpp
void three_objectives(Page& page);
void three_patterns(Page& page);

}  // namespace qkv::labs::language
