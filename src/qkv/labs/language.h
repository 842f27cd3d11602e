// Lab 11.9: language models. What several steps of the lab share.
#pragma once

#include "qkv/labs/lab.h"

namespace qkv::labs::language {

// language_induction.cpp
void induction_task(Page& page);
void induction_training(Page& page);
void induction_heads(Page& page);
void induction_without(Page& page);

}  // namespace qkv::labs::language
