// Lab 11.9: language models, and what their attention learns to do.
#include "qkv/labs/language.h"

#include "qkv/labs/sections.h"

namespace qkv::labs {

Lab language_lab() {
  using namespace language;
  return {"11.9",
          "language-models",
          tr("Language models"),
          {induction_task, induction_training, induction_heads, induction_without, three_objectives, three_patterns,
           fine_tuning, scaling, mixed_tasks, applications, where_the_layer_goes, decoders_alone},
          false,
          40};
}

}  // namespace qkv::labs
