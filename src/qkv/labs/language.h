// Lab 11.9: language models. What several steps of the lab share.
#pragma once

#include <vector>

#include "qkv/labs/lab.h"
#include "qkv/tasks/language/data.h"
#include "qkv/tasks/language/task.h"

namespace qkv::labs::language {

inline constexpr int64_t kContext = 24, kBatchRows = 32;  // of the models that read words
inline constexpr int64_t kCausalSteps = 600, kMaskedSteps = 900, kSpansSteps = 2000;

/// The English sentences of the built-in corpus as words. The test sentences are the last ones, from the same grammar.
struct WordText {
  TextTokenizer tokenizer = TextTokenizer::bytes();
  std::vector<int32_t> train, labelled, test;  // sentences, each with its line end; no model reads `labelled` as text

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
  int64_t measures = 1;    // how often the test loss is measured, at equal distances; the last time at the end
  float rate = 3e-3f;      // the highest
  bool open_end = false;   // the rate falls in a way that does not depend on `steps`
  int64_t test_words = 0;  // of the test text, that many are measured; 0: all
};
Reader trained_reader(const ReaderPlan& plan, const WordText& text, const std::vector<int32_t>& train, uint64_t seed,
                      Observer& observer);

/// The three objectives on the same text.
struct Readers {
  WordText text;
  Reader causal, masked, spans;
};
const Readers& readers(Page& page);

/// Beginnings of sentences, up to the word before their first `is` or `are`: as many of each.
struct Subjects {
  std::vector<std::vector<int32_t>> beginnings;
  std::vector<int32_t> several;  // 1: `are` follows
  int32_t line_end = 0;

  Subjects part(size_t first, size_t count) const;
};
Subjects subjects(const WordText& text, const std::vector<int32_t>& ids);

/// A language model with a layer of two classes on one of its states: that of the line end before a beginning, or of
/// its last word.
enum class ReadAt { first, last };
struct JudgePlan {
  int64_t steps = 100;
  float rate = 1e-3f;  // the highest
  ReadAt at = ReadAt::last;
  bool frozen = false;  // the new layer alone is trained
};
/// Trains a copy of the model; the share of the test that it then judges correctly.
double judge(const JudgePlan& plan, const LanguageModel& body, const Subjects& train, const Subjects& test,
             const Rng& rng);

/// The word that a model finds likeliest, from the input of its output layer; never a special token.
int32_t best_word(const LanguageModel& model, const float* features);

// language_induction.cpp
void induction_task(Page& page);
void induction_training(Page& page);
void induction_heads(Page& page);
void induction_without(Page& page);

// language_finetune.cpp
void fine_tuning(Page& page);
void where_the_layer_goes(Page& page);

// language_scaling.cpp
void scaling(Page& page);

// language_exercises.cpp
void mixed_tasks(Page& page);
void applications(Page& page);
void decoders_alone(Page& page);

// language_objectives.cpp
void three_objectives(Page& page);
void three_patterns(Page& page);

}  // namespace qkv::labs::language
