// What the steps of lab 10.4 share: the data, models that are trained once, and held-out sentences with their gold
// links.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "qkv/eval/alignment.h"
#include "qkv/labs/lab.h"
#include "qkv/labs/show.h"
#include "qkv/labs/trained.h"

namespace qkv::labs::bahdanau {

/// The models that the lab trains. `aligned` is attention on the built-in corpus: a separate model if the page has a
/// data file, else the same as `attention`. `gru`, `lstm` and `dot` are trained to the end with an encoder that reads
/// in one direction. The models of the other exercises see fewer sentences: `reference` is attention trained like them,
/// `plain` and `plain_lstm` have no attention, `slow_rate` and `wide` are `plain` with one setting changed, and the
/// encoder of `mixed` is bidirectional. `english_baseline` and `english` have the settings of the English edition.
enum class Kind {
  baseline,
  attention,
  aligned,
  gru,
  lstm,
  dot,
  reference,
  fed_back,
  plain,
  plain_lstm,
  mixed,
  slow_rate,
  wide,
  english_baseline,
  english
};

/// The configuration of a training run: the book's experiment if the page has a data file, else a small one on the
/// built-in corpus.
TranslationConfig config_of(const Page& page, Kind kind);
/// Trained on first use, together with the other models that the page will need, then kept for the page.
const Trained& trained(Page& page, Kind kind);
/// The book's experiment with one seed: the final losses, and the models' translations of the book's four sentences.
struct BookRun {
  uint64_t seed;
  double baseline_loss, attention_loss;
  std::vector<std::string> baseline, attention;
};
/// Runs with five seeds, the page's seed first. Only for a page with a data file.
const std::vector<BookRun>& book_runs(Page& page);
/// Trained on the book's subset of its own file: 601 pairs, vocabularies of 184 and 201.
bool is_books_data(Page& page);

/// Held-out pairs of the built-in corpus whose words are all known to the `aligned` model.
const std::vector<AlignedPair>& held_out(Page& page);
/// The sentences that the exercises compare losses on: the validation set, or the training set if there is none.
SentencePairs judged_on(Page& page);
Alignment gold_of(const AlignedPair& pair);

// bahdanau_data.cpp: from text to batches.
void text_step(Page& page);
void batch_step(Page& page);
void vocabulary_step(Page& page);
// bahdanau_model.cpp: both decoders, their shapes and sizes, and the masked loss.
void baseline_step(Page& page);
void attention_step(Page& page);
void masked_loss_step(Page& page);
// bahdanau_training.cpp
void training_step(Page& page);
void sentences_step(Page& page);
// bahdanau_alignment.cpp: where the decoder looks.
void heat_map_step(Page& page);
void swap_step(Page& page);
void alignment_step(Page& page);
// bahdanau_exercises.cpp
void feed_back_step(Page& page);
void plain_lstm_step(Page& page);
void lstm_step(Page& page);
void scoring_step(Page& page);
// bahdanau_questions.cpp: a loss that includes the padding.
void unmasked_step(Page& page);
// bahdanau_settings.cpp: text without spaces, other settings, an encoder of another size.
void spaces_step(Page& page);
void settings_step(Page& page);
void states_question_step(Page& page);
// bahdanau_uses.cpp: encoders of another kind than the decoder, other tasks for both, other output layers.
void kinds_question_step(Page& page);
void uses_question_step(Page& page);
void output_question_step(Page& page);
// english_edition.cpp
void english_step(Page& page);
// bahdanau_search.cpp
void beam_example_step(Page& page);
void beam_step(Page& page);

}  // namespace qkv::labs::bahdanau
