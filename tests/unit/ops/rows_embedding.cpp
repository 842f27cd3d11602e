// Op-table rows: embeddings. Ids are made from the table's size, repeated and out of order.
#include "qkv/ops/embedding.h"
#include "unit/ops/op_table.h"

namespace qkv::tests {
namespace {

const Run kTraining{.training = true, .rng = Rng(12).at("embedding").at_step(1)};

Ids some_ids(const Shape& shape, int64_t v) {
  Ids ids = Ids::empty(shape);
  for (int64_t i = 0; i < ids.numel(); ++i)
    ids.mutable_ptr()[i] = static_cast<int32_t>((i * 5 + 2) % std::max<int64_t>(v, 1));
  return ids;
}

Array plain_embedding(const Array& table, const Ids& ids, double scale, const Array* position) {
  Shape shape = ids.shape();
  shape.push_back(table.shape[1]);
  Array y(shape);
  const int64_t d = table.shape[1];
  for (int64_t r = 0; r < ids.numel(); ++r)
    for (int64_t i = 0; i < d; ++i)
      y[r * d + i] = table[ids.ptr()[r] * d + i] * scale + (position ? (*position)[r % ids.size(-1) * d + i] : 0);
  return y;
}

void drop(Array& y, double rate, const Rng& rng) {
  for (int64_t i = 0; i < y.numel(); ++i)
    y[i] = rng.word(static_cast<uint64_t>(i)) >= rate * 0x1p32 ? y[i] / (1 - rate) : 0;
}

OpCase plain(std::string label, const Shape& ids_shape, std::vector<std::vector<Shape>> shapes) {
  return {.op = "embedding",
          .label = label,
          .shapes = std::move(shapes),
          .call = [=](const Tensors& x) { return embedding(x[0], some_ids(ids_shape, x[0].size(0))); },
          .reference =
              [=](const Arrays& x) { return plain_embedding(x[0], some_ids(ids_shape, x[0].shape[0]), 1, nullptr); }};
}

OpCase fused(std::string label, const Shape& ids_shape, float rate, const Run& run,
             std::vector<std::vector<Shape>> shapes) {
  return {.op = "embedding_scaled_position",
          .label = label,
          .shapes = std::move(shapes),
          .call =
              [=](const Tensors& x) {
                return embedding_scaled_position(x[0], some_ids(ids_shape, x[0].size(0)), 3,
                                                 x.size() > 1 ? x[1] : Tensor(), rate, run);
              },
          .reference =
              [=](const Arrays& x) {
                Array y = plain_embedding(x[0], some_ids(ids_shape, x[0].shape[0]), 3, x.size() > 1 ? &x[1] : nullptr);
                if (run.training) drop(y, rate, run.rng);
                return y;
              }};
}

}  // namespace

std::vector<OpCase> embedding_rows() {
  const std::vector<std::vector<Shape>> tables = {{{5, 3}},  {{1, 1}}, {{7, 8}},  {{4, 9}},
                                                  {{3, 33}}, {{3, 0}}, {{2, 150}}};
  return {plain("batch of ids", {2, 3}, tables),
          plain("one id", {}, tables),
          plain("no ids", {2, 0}, {{{5, 3}}}),
          plain("many ids", {70}, {{{6, 5}}}),
          fused("with dropout", {2, 3}, 0.3f, kTraining,
                {{{5, 4}, {3, 4}}, {{5, 3}, {4, 3}}, {{4, 9}, {3, 9}}, {{3, 130}, {3, 130}}, {{5, 7}}}),
          fused("inference", {2, 2, 2}, 0.3f, Run{}, {{{5, 4}, {3, 4}}, {{5, 9}}, {{1, 1}, {2, 1}}, {{3, 0}, {2, 0}}}),
          fused("no ids", {0, 3}, 0.3f, kTraining, {{{5, 4}, {3, 4}}})};
}

}  // namespace qkv::tests
