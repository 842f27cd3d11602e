// Embedding ops: forward and pullback side by side.
#include "qkv/ops/embedding.h"

#include <algorithm>

#include "qkv/kernels/embedding.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/row_blocks.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

// Checks table and ids and returns the shape of the result.
Shape embedded_shape(const char* op, const Tensor& table, const Ids& ids) {
  check_present(op, ids, "ids");
  check(table.defined(), "[", op, "] the table is absent: was the layer made without sizes?");
  check(table.rank() == 2, "[", op, "] the table must have shape (V, D), got ", table.shape());
  const int64_t v = table.size(0);
  for (const int32_t id : ids.data())
    check(id >= 0 && id < v, "[", op, "] id ", id, " is outside the table of ", v, " rows");
  Shape shape = ids.shape();
  shape.push_back(table.size(1));
  return shape;
}

// target (+)= the sums of e, by strips of columns. Each element sums its rows in order, for any number of threads.
void scatter(GradTarget target, int64_t table_rows, kernels::EmbedBackward e) {
  constexpr int64_t kStrip = 64;
  e.sum = target.data;
  const int64_t d = e.width, touched = e.rows + (target.add ? 0 : table_rows);
  parallel_ranges(d, kStrip, 0.3 * static_cast<double>(touched * d), [&](int64_t begin, int64_t end) {
    if (!target.add)
      for (int64_t r = 0; r < table_rows; ++r) std::fill(e.sum + r * d + begin, e.sum + r * d + end, 0.f);
    kernels::embed_back(e, begin, end);
  });
}

}  // namespace

// y[r] = table[ids[r]].   dtable[ids[r]] += dy[r]
Tensor embedding(const Tensor& table, const Ids& ids) {
  Tensor y = Tensor::empty(embedded_shape("embedding", table, ids));
  const Rows rows("embedding", y.shape());
  const kernels::EmbedForward forward{
      .table = table.ptr(), .ids = ids.ptr(), .y = y.mutable_ptr(), .width = rows.width};
  rows.each(0.2, [&](int64_t r, int64_t n) { kernels::embed(forward, r, r + n); });
  record("embedding", y, {&table}, [ids = ids, rows, v = table.size(0)](Pull& p) {
    scatter(p.into(0), v, {.dy = p.dy().ptr(), .ids = ids.ptr(), .rows = rows.count, .width = rows.width});
  });
  return y;
}

// y[r] = m (table[ids[r]] scale + position[r mod L]) / (1 - rate), m the decisions of dropout.   g = dy m / (1 - rate)
// dtable[ids[r]] += g[r] scale, dposition[r mod L] += g[r]
Tensor embedding_scaled_position(const Tensor& table, const Ids& ids, float scale, const Tensor& position, float rate,
                                 const Run& run) {
  Tensor y = Tensor::empty(embedded_shape("embedding_scaled_position", table, ids));
  const Rows rows("embedding_scaled_position", y.shape());
  check(ids.rank() >= 1, "[embedding_scaled_position] ids need a last axis of positions, got shape ", ids.shape());
  const int64_t length = std::max<int64_t>(1, ids.size(-1));
  check(!position.defined() ||
            (position.rank() == 2 && position.size(0) >= ids.size(-1) && position.size(1) == rows.width),
        "[embedding_scaled_position] positions of shape ", position.shape(), " do not cover the result ", y.shape());
  const bool dropping = drops("embedding_scaled_position", rate, run),
             tracked = Tape::tracks(table) || Tape::tracks(position);
  if (dropping) note_draw("embedding_scaled_position", run);
  const kernels::Drop drop{run.rng, rate};
  const Buffer bits = dropping && tracked ? keep_bits(rows.count, rows.width) : Buffer();
  const kernels::EmbedForward forward{.table = table.ptr(),
                                      .ids = ids.ptr(),
                                      .scale = scale,
                                      .position = position.ptr(),
                                      .period = length,
                                      .drop = dropping ? &drop : nullptr,
                                      .y = y.mutable_ptr(),
                                      .bits = reinterpret_cast<uint8_t*>(bits.data()),
                                      .width = rows.width};
  rows.each(dropping ? 1.0 : 0.3, [&](int64_t r, int64_t n) { kernels::embed(forward, r, r + n); });
  record("embedding_scaled_position", y, {&table, &position},
         [ids = ids, rows, bits, length, scale, kept_scale = drop.scale(), v = table.size(0),
          places = position.defined() ? position.size(0) : 0](Pull& p) {
           kernels::EmbedBackward back{.dy = p.dy().ptr(),
                                       .bits = reinterpret_cast<const uint8_t*>(bits.data()),
                                       .period = length,
                                       .scale = bits ? kept_scale : 1,
                                       .rows = rows.count,
                                       .width = rows.width};
           if (p.wants(1)) scatter(p.into(1), places, back);
           back.ids = ids.ptr();
           back.scale *= scale;
           if (p.wants(0)) scatter(p.into(0), v, back);
         });
  return y;
}

}  // namespace qkv
