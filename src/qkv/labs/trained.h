// Translation models that a lab trains, what was measured during training, and how they are evaluated.
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
  std::vector<double> epochs, losses;  // after each epoch, as the training reports them
  std::vector<double> valid_losses;    // likewise; empty without validation
  double tokens_per_second = 0;        // target tokens per second of processor time, in the fastest epoch
  double step_seconds = 0;             // processor time, mean over that epoch
  Translator translator() const { return Translator(run.model(), run.tokenizers(), run.config()); }
};

/// Trains in memory; within a SerialScope on the calling thread alone. Only then do the times cover all of the work.
std::unique_ptr<Trained> train(const TranslationConfig& config, Observer* follower = nullptr);

/// "training 2 models: with attention, without attention": shown on screen during training.
Text training_of(const std::vector<Text>& names);

/// Greedy unless the configuration says otherwise.
std::vector<std::string> translate(const Trained& model, const std::vector<std::string>& sentences);
/// The share of exact translations, 0 to 1.
double share_exact(const std::vector<std::string>& written, const std::vector<std::string>& wanted);
/// Mean cross-entropy per target token, without dropout, teacher forced.
double forced_loss(const Trained& model, const SentencePairs& pairs);

/// The held-out pairs of the built-in corpus of a run, only those whose words it all knows.
std::vector<AlignedPair> held_out_pairs(const TranslationRun& run);
SentencePairs sentences_of(std::span<const AlignedPair> pairs);

}  // namespace qkv::labs
