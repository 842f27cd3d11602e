// What the steps of lab 10.7 share: models that are trained once, sentences as batches, and the numbers to compare.
#pragma once

#include <string>
#include <vector>

#include "qkv/labs/lab.h"
#include "qkv/labs/show.h"
#include "qkv/labs/trained.h"

namespace qkv::labs::transformer {

/// The models that the lab trains. `one_layer`, `four_layers` and `four_pre` are trained to the end as `model` is,
/// which has two. Those of the other exercises are trained briefly; `reference` is the lab's model trained as briefly.
/// The deep ones have six layers and are trained more briefly still. `english` has the settings of the English edition.
enum class Kind {
  model,
  one_layer,
  four_layers,
  four_pre,
  reference,
  additive,
  deep_post,
  deep_pre,
  learned,
  relative,
  rotary,
  alibi,
  no_positions,
  english
};

/// The configuration of a training: the book's experiment with the book's file, else a small one on the built-in
/// corpus.
TranslationConfig config_of(const Page& page, Kind kind);
/// Trained on first use, together with others, then kept for the page.
const Trained& trained(Page& page, Kind kind);
/// Whether the page uses the book's subset of the book's file: 601 pairs, vocabularies of 184 and 201.
bool is_books_data(Page& page);
const Transformer& network(const Trained& model);

/// At most 400 sentence pairs to judge the model, or those of the exercises: held-out pairs of the built-in corpus
/// whose words they know; for a file, the training pairs.
enum class Judge { model, exercises };
const SentencePairs& judged(Page& page, Judge judge);
/// The name of these pairs in table heads.
Text judged_name(const Page& page);
/// How good the translations of the judged pairs are: the mean of the book's score and the share that is exact, each
/// against the best of the translations that the text has for the source.
struct Quality {
  double bleu = 0, exact = 0;
};
Quality quality(Page& page, Judge judge, const std::vector<std::string>& written);
/// The four sentences whose translations are shown: the book's, or held-out ones.
const SentencePairs& shown_pairs(Page& page);

/// Pairs as batches of 64 in their order, as the trained model reads them.
std::vector<TranslationBatch> batches_of(const Trained& model, const SentencePairs& pairs);

// transformer_blocks.cpp: the parts, in shapes and values.
void feed_forward_step(Page& page);
void norm_step(Page& page);
void add_norm_step(Page& page);
void encoder_step(Page& page);
void decoder_step(Page& page);
void sizes_step(Page& page);
// transformer_training.cpp
void training_step(Page& page);
void sentences_step(Page& page);
// transformer_maps.cpp: the three figures of the weights.
void maps_step(Page& page);
// transformer_inference.cpp: the mask, the cache and the positions during generation.
void mask_step(Page& page);
void cheating_step(Page& page);
void cache_step(Page& page);
void inference_positions_step(Page& page);
// transformer_exercises.cpp
void depth_step(Page& page);
void additive_step(Page& page);
void norm_place_step(Page& page);
// english_edition.cpp
void english_step(Page& page);
// transformer_questions.cpp: kinds of positions, and the questions that are answered in words and small measurements.
void position_kinds_step(Page& page);
void language_model_step(Page& page);
void long_input_step(Page& page);
void vision_step(Page& page);

}  // namespace qkv::labs::transformer
