// The steps of lab 10.1, in order.
#pragma once

#include "qkv/labs/lab.h"

namespace qkv::labs::cues {

// cues.cpp: the words, and a desk with five things on it.
void words(Page& page);
void desk(Page& page);
void learned_pooling(Page& page);
// cues_pictures.cpp: what draws the eye among pictures, and a filter that finds it.
void black_and_white(Page& page);
void convolution_cue(Page& page);
// cues_weights.cpp: pictures of weights, and attention as a database.
void identity_map(Page& page);
void random_map(Page& page);
void database(Page& page);
void kinds_of_weights(Page& page);
// cues_hard.cpp
void hard_attention(Page& page);
// cues_exercises.cpp
void translation(Page& page);
void covariance(Page& page);
void search_engine(Page& page);
void squeeze_and_excitation(Page& page);

}  // namespace qkv::labs::cues
