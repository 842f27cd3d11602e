// Op-table rows: ops that move elements.
#include "qkv/ops/shape.h"
#include "unit/ops/places.h"

namespace qkv::tests {
namespace {

OpCase permute_row(const std::string& label, const std::vector<int>& order,
                   const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "permute",
          .label = label,
          .shapes = shapes,
          .call = [=](const Tensors& x) { return permute(x[0], order); },
          .reference =
              [=](const Arrays& x) {
                Shape shape;
                for (int axis : order) shape.push_back(x[0].shape[axis]);
                return gathered(x[0], shape, [&](const Place& to) {
                  Place from(to.size());
                  for (size_t k = 0; k < to.size(); ++k) from[static_cast<size_t>(order[k])] = to[k];
                  return from;
                });
              }};
}

OpCase slice_row(int axis, int64_t begin, int64_t end, const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "slice",
          .label = "axis " + std::to_string(axis),
          .shapes = shapes,
          .call = [=](const Tensors& x) { return slice(x[0], axis, begin, end); },
          .reference =
              [=](const Arrays& x) {
                Shape shape = x[0].shape;
                shape.set(axis, end - begin);
                return gathered(x[0], shape, [&](Place to) {
                  to[static_cast<size_t>(axis < 0 ? axis + shape.rank() : axis)] += begin;
                  return to;
                });
              }};
}

// Reads each element from the part it belongs to.
Array joined(const Arrays& parts, int axis) {
  Shape shape = parts[0].shape;
  int64_t total = 0;
  for (const Array& part : parts) total += part.shape[axis];
  shape.set(axis, total);
  Array y(shape);
  for (int64_t i = 0; i < y.numel(); ++i) {
    Place place = place_of(shape, i);
    size_t part = 0;
    for (int64_t& at = place[static_cast<size_t>(axis)]; at >= parts[part].shape[axis]; ++part)
      at -= parts[part].shape[axis];
    y[i] = parts[part][flat_of(parts[part].shape, place)];
  }
  return y;
}

OpCase concat_row(int axis, const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "concat",
          .label = "axis " + std::to_string(axis),
          .shapes = shapes,
          .call = [=](const Tensors& x) { return concat(x, axis); },
          .reference = [=](const Arrays& x) { return joined(x, axis); }};
}

OpCase repeat_row(int axis, int64_t repeats, const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "repeat_interleave",
          .label = std::to_string(repeats) + " times on axis " + std::to_string(axis),
          .shapes = shapes,
          .call = [=](const Tensors& x) { return repeat_interleave(x[0], repeats, axis); },
          .reference =
              [=](const Arrays& x) {
                Shape shape = x[0].shape;
                shape.set(axis, shape[axis] * repeats);
                return gathered(x[0], shape, [&](Place to) {
                  to[static_cast<size_t>(axis)] /= repeats;
                  return to;
                });
              }};
}

OpCase tile_row(const std::string& label, const std::vector<int64_t>& counts,
                const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "tile",
          .label = label,
          .shapes = shapes,
          .call = [=](const Tensors& x) { return tile(x[0], counts); },
          .reference =
              [=](const Arrays& x) {
                const int rank = std::max(x[0].shape.rank(), static_cast<int>(counts.size()));
                const auto at_end = [rank](auto list, int k) {
                  const int i = k - (rank - static_cast<int>(list.size()));
                  return i < 0 ? int64_t{1} : list[static_cast<size_t>(i)];
                };
                const std::span<const int64_t> from(x[0].shape.begin(), x[0].shape.end());
                Shape shape;
                for (int k = 0; k < rank; ++k) shape.push_back(at_end(from, k) * at_end(counts, k));
                return gathered(x[0], shape, [&](const Place& to) {
                  Place place;
                  for (int k = rank - x[0].shape.rank(); k < rank; ++k)
                    place.push_back(to[static_cast<size_t>(k)] % at_end(from, k));
                  return place;
                });
              }};
}

// 0 1 1 0 1 1 ...: not 0 where the flat index is not a multiple of 3.
bool chosen(int64_t i) { return i % 3 != 0; }
Ids id_mask(const Shape& shape) {
  Ids mask = Ids::empty(shape);
  for (int64_t i = 0; i < mask.numel(); ++i) mask.mutable_ptr()[i] = chosen(i) ? 2 : 0;
  return mask;
}
Tensor float_mask(const Shape& shape) {
  Tensor mask = Tensor::empty(shape);
  for (int64_t i = 0; i < mask.numel(); ++i) mask.mutable_ptr()[i] = chosen(i) ? 1.f : 0.f;
  return mask;
}

Array selected(const Arrays& x) {
  std::vector<double> kept;
  for (int64_t i = 0; i < x[0].numel(); ++i)
    if (chosen(i)) kept.push_back(x[0][i]);
  Array y(Shape{static_cast<int64_t>(kept.size())});
  y.v = kept;
  return y;
}

Array mixed(const Arrays& x) {
  Array y(x[0].shape);
  for (int64_t i = 0; i < y.numel(); ++i) y[i] = chosen(i) ? x[0][i] : x[1][i];
  return y;
}

OpCase reshape_row(const std::string& label, const std::vector<int64_t>& sizes, const Shape& expected,
                   const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "reshape",
          .label = label,
          .shapes = shapes,
          .call = [=](const Tensors& x) { return reshape(x[0], sizes); },
          .reference =
              [=](const Arrays& x) {
                Array y = x[0];
                y.shape = expected;
                return y;
              }};
}

// Two tensors side by side along a new axis.
OpCase stack_row(int axis, const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "concat",
          .label = "stack at " + std::to_string(axis),
          .shapes = shapes,
          .call = [=](const Tensors& x) { return stack(x, axis); },
          .reference =
              [=](const Arrays& x) {
                const int at = axis < 0 ? axis + x[0].shape.rank() + 1 : axis;
                Shape shape;
                for (int k = 0; k <= x[0].shape.rank(); ++k)
                  shape.push_back(k < at ? x[0].shape[k] : k == at ? std::ssize(x) : x[0].shape[k - 1]);
                Array y(shape);
                for (int64_t i = 0; i < y.numel(); ++i) {
                  Place place = place_of(shape, i);
                  const Array& part = x[static_cast<size_t>(place[static_cast<size_t>(at)])];
                  place.erase(place.begin() + at);
                  y[i] = part[flat_of(part.shape, place)];
                }
                return y;
              }};
}

OpCase broadcast_row(const Shape& to, const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "tile",
          .label = "broadcast_to " + to.str(),
          .shapes = shapes,
          .call = [=](const Tensors& x) { return broadcast_to(x[0], to); },
          .reference =
              [=](const Arrays& x) {
                return gathered(x[0], to, [&](const Place& place) {
                  Place from(place.end() - x[0].shape.rank(), place.end());
                  for (size_t k = 0; k < from.size(); ++k)
                    if (x[0].shape[static_cast<int>(k)] == 1) from[k] = 0;
                  return from;
                });
              }};
}

// The last row, the first, and the last again, as (3, 1).
Ids some_rows(int64_t count) {
  if (count == 0) return Ids::empty({0, 1});
  return Ids({3, 1}, {static_cast<int32_t>(count - 1), 0, static_cast<int32_t>(count - 1)});
}

OpCase patches_row(int64_t size, const std::vector<std::vector<Shape>>& shapes) {
  return {.op = "permute",
          .label = "patches of " + std::to_string(size),
          .shapes = shapes,
          .call = [=](const Tensors& x) { return patches(x[0], size); },
          .reference =
              [=](const Arrays& x) {
                const Shape& s = x[0].shape;
                const int64_t wide = s[3] / size;
                return gathered(x[0], {s[0], s[2] / size * wide, s[1] * size * size}, [&](const Place& to) {
                  const int64_t inside = to[2] % (size * size);
                  return Place{to[0], to[2] / (size * size), to[1] / wide * size + inside / size,
                               to[1] % wide * size + inside % size};
                });
              }};
}

}  // namespace

std::vector<OpCase> shape_rows() {
  std::vector<std::vector<Shape>> any = {{{1}},    {{7}}, {{8}}, {{9}}, {{33}}, {{3, 5}}, {{2, 3, 2, 2, 2}},
                                         {{0, 3}}, {{}}},
                                  pairs;
  for (const auto& shapes : any) pairs.push_back({shapes[0], shapes[0]});
  return {
      reshape_row("to three axes", {2, 3, 4}, {2, 3, 4}, {{{24}}, {{4, 6}}, {{1, 2, 3, 2, 2}}}),
      reshape_row("inferred", {-1, 6}, {4, 6}, {{{24}}, {{2, 3, 4}}}),
      reshape_row("of nothing", {0, 5}, {0, 5}, {{{0}}, {{3, 0}}}),
      reshape_row("to a scalar", {}, {}, {{{1}}, {{1, 1}}}),
      {.op = "reshape",
       .label = "unsqueeze",
       .shapes = {{{5}}, {{2, 9}}, {{0, 3}}, {{1}}, {{2, 1, 2, 1, 3}}},
       .call = [](const Tensors& x) { return unsqueeze(x[0], -2); },
       .reference =
           [](const Arrays& x) {
             Array y = x[0];
             y.shape = {};
             for (int k = 0; k < x[0].shape.rank(); ++k) {
               if (k == x[0].shape.rank() - 1) y.shape.push_back(1);
               y.shape.push_back(x[0].shape[k]);
             }
             return y;
           }},
      permute_row("transpose", {1, 0}, {{{3, 5}}, {{7, 9}}, {{8, 8}}, {{33, 4}}, {{1, 6}}, {{0, 3}}, {{37, 35}}}),
      permute_row("heads", {0, 2, 1, 3}, {{{2, 5, 3, 8}}, {{1, 7, 2, 33}}, {{2, 3, 1, 4}}, {{2, 0, 3, 4}}}),
      permute_row("last two of four", {0, 1, 3, 2}, {{{2, 3, 9, 7}}, {{2, 2, 8, 4}}}),
      permute_row("none", {0}, {{{9}}, {{1}}}),
      permute_row("five axes", {4, 1, 3, 0, 2}, {{{2, 3, 2, 4, 5}}, {{1, 2, 1, 3, 1}}}),
      permute_row("reversed", {2, 1, 0}, {{{3, 4, 5}}, {{8, 2, 9}}}),
      slice_row(0, 1, 3, {{{5}}, {{3, 7}}, {{4, 2, 2, 2, 2}}}),
      slice_row(0, 2, 2, {{{5}}, {{2, 3}}}),
      slice_row(0, 0, 1, {{{1}}, {{1, 1}}}),
      slice_row(1, 0, 3, {{{4, 9}}, {{2, 3, 8}}, {{0, 3}}, {{1, 5, 2}}}),
      slice_row(-1, 2, 33, {{{3, 33}}, {{2, 2, 40}}, {{35}}}),
      concat_row(0, {{{3}, {5}},
                     {{1}, {1}},
                     {{2, 3}, {1, 3}, {4, 3}},
                     {{0, 2}, {3, 2}},
                     {{7}},
                     {{1, 2, 2, 2, 2}, {2, 2, 2, 2, 2}}}),
      concat_row(1, {{{2, 3}, {2, 9}}, {{3, 8, 2}, {3, 1, 2}, {3, 0, 2}}, {{0, 2}, {0, 3}}, {{4, 33}, {4, 7}}}),
      stack_row(0, {{{3}, {3}}, {{}, {}, {}}, {{2, 9}}, {{0, 2}, {0, 2}}, {{1, 2, 2, 2, 2}, {1, 2, 2, 2, 2}}}),
      stack_row(1, {{{2, 3}, {2, 3}}, {{3, 8, 2}, {3, 8, 2}, {3, 8, 2}}, {{7}, {7}}}),
      stack_row(-1, {{{2, 3}, {2, 3}}, {{33}, {33}}, {{}, {}}}),
      {.op = "slice",
       .label = "split",
       .shapes = {{{2, 6}}, {{3, 33}}, {{2, 3, 2}}, {{0, 3}}},
       .call =
           [](const Tensors& x) {
             const std::vector<Tensor> parts = split(x[0], 3, 1);
             return concat({parts[2], parts[0], parts[1]}, 1);
           },
       .reference =
           [](const Arrays& x) {
             const int64_t third = x[0].shape[1] / 3;
             return gathered(x[0], x[0].shape, [&](Place to) {
               to[1] = to[1] < third ? to[1] + 2 * third : to[1] - third;
               return to;
             });
           }},
      broadcast_row({3, 4}, {{{3, 4}}, {{4}}, {{1}}, {{}}, {{3, 1}}, {{1, 4}}}),
      broadcast_row({2, 3, 9}, {{{9}}, {{3, 1}}, {{2, 1, 1}}, {{1, 3, 9}}}),
      broadcast_row({2, 0}, {{{1}}, {{2, 1}}, {{0}}}),
      {.op = "embedding",
       .label = "gather_rows",
       .shapes = {{{4}}, {{1}}, {{3, 9}}, {{2, 3, 2, 3}}, {{0, 2}}, {{3, 0}}},
       .call = [](const Tensors& x) { return gather_rows(x[0], some_rows(x[0].size(0))); },
       .reference =
           [](const Arrays& x) {
             const Ids rows = some_rows(x[0].shape[0]);
             Shape shape = rows.shape();
             for (int k = 1; k < x[0].shape.rank(); ++k) shape.push_back(x[0].shape[k]);
             return gathered(x[0], shape, [&](Place to) {
               to[1] = rows.data()[static_cast<size_t>(to[0])];
               to.erase(to.begin());
               return to;
             });
           }},
      patches_row(1, {{{1, 1, 1, 1}}, {{2, 3, 2, 5}}, {{0, 1, 2, 2}}}),
      patches_row(3, {{{2, 2, 6, 9}}, {{1, 1, 3, 3}}}),
      repeat_row(0, 3, {{{4}}, {{1}}, {{2, 9}}, {{0, 2}}, {{1, 33}}}),
      repeat_row(1, 2, {{{3, 4}}, {{2, 3, 8}}, {{2, 2, 2, 2, 3}}}),
      repeat_row(0, 0, {{{3, 2}}}),
      tile_row("per axis", {2, 3}, {{{3, 4}}, {{1, 9}}, {{2, 0}}}),
      tile_row("more counts than axes", {2, 1, 3}, {{{5}}, {{1}}, {{2, 7}}}),
      tile_row("fewer counts than axes", {2}, {{{3, 4}}, {{2, 2, 2, 2, 8}}}),
      tile_row("once", {1, 1}, {{{3, 4}}}),
      {.op = "select",
       .label = "by ids",
       .shapes = any,
       .call = [](const Tensors& x) { return select(x[0], id_mask(x[0].shape())); },
       .reference = selected},
      {.op = "select",
       .label = "by floats",
       .shapes = any,
       .call = [](const Tensors& x) { return select(x[0], float_mask(x[0].shape())); },
       .reference = selected},
      {.op = "where",
       .label = "by ids",
       .shapes = pairs,
       .call = [](const Tensors& x) { return where(id_mask(x[0].shape()), x[0], x[1]); },
       .reference = mixed},
      {.op = "where",
       .label = "by floats",
       .shapes = pairs,
       .call = [](const Tensors& x) { return where(float_mask(x[0].shape()), x[0], x[1]); },
       .reference = mixed},
  };
}

}  // namespace qkv::tests
