// One function per lab, each in its own file.
#pragma once

#include "qkv/labs/lab.h"

namespace qkv::labs {

Lab engine_lab();          // 0: how gradients are made, checked and used
Lab cues_lab();            // 10.1: what queries, keys and values are
Lab regression_lab();      // 10.2: attention pooling by kernel regression
Lab scoring_lab();         // 10.3: masked softmax and the scoring functions
Lab bahdanau_lab();        // 10.4: translation with and without attention
Lab multi_head_lab();      // 10.5: several attentions side by side
Lab self_attention_lab();  // 10.6: tokens that attend to each other, and positions
Lab transformer_lab();     // 10.7: attention alone
Lab long_inputs_lab();     // 10.7.4 and 10.7.5: cheaper attention
Lab vision_lab();          // 11.8: images as sequences of patches
Lab language_lab();        // 11.9: language models

}  // namespace qkv::labs
