// The steps of lab 10.6, in order.
#pragma once

#include "qkv/labs/lab.h"

namespace qkv::labs::self_attention {

// self_attention.cpp: tokens that attend to each other, and what they cannot know.
void definition(Page& page);
void order_is_lost(Page& page);
// self_attention_positions.cpp: sines and cosines.
void encoding(Page& page);
void binary(Page& page);
void relative_positions(Page& page);
void looking_back(Page& page);
// self_attention_cost.cpp: convolution, recurrence and self-attention compared.
void operations(Page& page);
void times(Page& page);
// self_attention_paths.cpp: which output depends on which input, from gradients.
void five_tokens(Page& page);
void layers_needed(Page& page);
void gradients_by_distance(Page& page);
// self_attention_depth.cpp: exercise 10.6.1.
void deep_stacks(Page& page);
void deep_gradients(Page& page);
// self_attention_order.cpp: exercises 10.6.2 and 11.6.3.
void learned_positions(Page& page);
void where_they_look(Page& page);
void relative_biases(Page& page);

}  // namespace qkv::labs::self_attention
