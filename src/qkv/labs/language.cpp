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
           slow(fine_tuning), slow(scaling), slow(mixed_tasks), slow(applications), slow(where_the_layer_goes),
           decoders_alone},
          false,
          40,
          15};
}

}  // namespace qkv::labs
