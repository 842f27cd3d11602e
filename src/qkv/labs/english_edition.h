// The experiments of the English edition with its own settings: 512 pairs, width 256, 30 epochs.
#pragma once

#include <vector>

#include "qkv/labs/trained.h"

namespace qkv::labs {

/// The experiment `preset`: on the page's data file, or else with as many pairs of the built-in corpus.
TranslationConfig english_config(const Page& page, const char* preset);
/// Whether the page's data file, if it has one, is long enough for the edition's validation set.
bool has_english_data(const Page& page);

struct EnglishRun {
  Text name;
  const Trained* model;
  /// What the edition's PyTorch run has: first and last training loss, least and last validation loss, and the
  /// translations of the four sentences.
  std::vector<double> book_losses;
  std::vector<std::string> book_sentences;
};
/// The settings, the losses, and with a data file the four sentences beside the book's.
void show_english(Page& page, const std::vector<EnglishRun>& runs);

}  // namespace qkv::labs
