// Lab 10.2: attention pooling as Nadaraya-Watson kernel regression, both editions, with all exercises.
#include "qkv/labs/regression.h"
#include "qkv/labs/sections.h"

namespace qkv::labs {

Lab regression_lab() {
  using namespace regression;
  return {
      "10.2",
      "kernel-regression",
      tr("Attention pooling: Nadaraya-Watson kernel regression"),
      {three_points_step, attend_step,       batched_product_step, errata_step,       average_step, plain_step,
       learned_step,      runs_step,         stuck_step,           notes_step,        kernels_step, widths_step,
       more_data_step,    meaning_of_w_step, width_choice_step,    new_poolings_step, parzen_step,  leaving_out_step,
       unit_norm_step,    shrinking_step},
      false,
      2};
}

}  // namespace qkv::labs
