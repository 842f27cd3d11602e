// The steps of lab 10.3, in order.
#pragma once

#include "qkv/labs/lab.h"

namespace qkv::labs::scoring {

// scoring.cpp: the definition on three numbers, and the masked softmax.
void definition(Page& page);
void masking(Page& page);
void minus_a_million(Page& page);
void batched_product(Page& page);
// scoring_demos.cpp: the book's demos of both scores.
void equal_keys(Page& page);
void random_keys(Page& page);
void different_keys(Page& page);
// scoring_exercises.cpp: other scores.
void bilinear(Page& page);
void vector_sum(Page& page);
void distance(Page& page);
// scoring_scale.cpp: why the score is divided, and the notes' table of measures.
void square_root_of_d(Page& page);
void measures(Page& page);
void saturation(Page& page);
void errata(Page& page);
// scoring_cost.cpp
void cost(Page& page);

}  // namespace qkv::labs::scoring
