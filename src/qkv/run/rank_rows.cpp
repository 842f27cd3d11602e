// The refusal of ranks that no row is left for.
#include "qkv/run/rank_rows.h"

#include "qkv/core/check.h"

namespace qkv {

void check_rank_rows(int ranks, int64_t batch_rows, const TrainingConfig& config) {
  const int64_t rows = batch_rows * config.accumulate;
  if (config.batch_tokens > 0 || ranks <= rows) return;
  throw Error(
      tr("{ranks} ranks, but a step has only {rows} rows: training.batch_rows {batch} times training.accumulate "
         "{accumulate}",
         "ranks"_a = ranks, "rows"_a = rows, "batch"_a = batch_rows, "accumulate"_a = config.accumulate),
      tr("mpirun -n {rows} starts as many as can work", "rows"_a = rows));
}

}  // namespace qkv
