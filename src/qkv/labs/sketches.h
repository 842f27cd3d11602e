// The diagrams of the chapter, each block linked to the paragraph of the report that explains it.
#pragma once

#include "qkv/labs/lab.h"

namespace qkv::labs {

Sketch cues_sketch();
Sketch pooling_sketch();
Sketch scoring_sketch();
Sketch seq2seq_sketch();
Sketch multi_head_sketch();
Sketch connections_sketch();
Sketch transformer_sketch();
Sketch vision_sketch();
Sketch pretraining_sketch();

}  // namespace qkv::labs
