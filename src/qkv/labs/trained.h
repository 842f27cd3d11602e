// Translation models that a lab trains, with what was measured meanwhile, and what they are asked afterwards.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "qkv/core/language.h"
#include "qkv/data/en_fr.h"
#include "qkv/tasks/translation/run.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv::labs {

struct Trained {
  TranslationRun run;
  std::vector<double> epochs, losses,
      valid_losses;              // after each epoch, as the training reports them; the last empty without validation
  double tokens_per_second = 0;  // of target tokens, per second of processor time, in the fastest epoch
  double step_seconds = 0;       // of processor time, the mean of that epoch
  Translator translator() const { return Translator(run.model(), run.tokenizers(), run.config()); }
};

/// In memory, on the calling thread alone if it is in a SerialScope: only then are the times those of the whole work.
std::unique_ptr<Trained> train(const TranslationConfig& config, Observer* follower = nullptr);

/// "training 2 models: with attention, without attention": what a screen says meanwhile.
Text training_of(const std::vector<Text>& names);

/// Greedy unless said otherwise.
std::vector<std::string> translate(const Trained& model, const std::vector<std::string>& sentences);
/// The share of sentences that are as wanted, 0 to 1.
double share_exact(const std::vector<std::string>& written, const std::vector<std::string>& wanted);
/// Mean cross-entropy per target token, without dropout, teacher forced.
double forced_loss(const Trained& model, const SentencePairs& pairs);

/// Held-out pairs of the built-in corpus that a run was trained on, those whose words it all knows.
std::vector<AlignedPair> held_out_pairs(const TranslationRun& run);
SentencePairs sentences_of(std::span<const AlignedPair> pairs);

}  // namespace qkv::labs
