// The recurrent layer as an op.
#include "qkv/ops/recurrent.h"

#include "qkv/kernels/elementwise.h"
#include "qkv/ops/recurrent_cell.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace {

// What the pullback holds.
struct Saved {
  Steps steps;
  CellKept kept;
  CellWeights weights;
  Tensor x;  // packed

  void pull(Pull& p) const;
};

CellWeights detached(const CellWeights& w) {
  return {w.input.detached(), w.recurrent.detached(), w.bias_input.detached(), w.bias_recurrent.detached()};
}

// From the last step to the first, d h_s = dy_s + the gradient from step s + 1 (kernels/recurrent.h); then, over all
// steps at once, dx = d(W x) W, dW = d(W x)^T x, dU = d(U h)^T h, biases: sums of rows
void Saved::pull(Pull& p) const {
  const bool lstm = kept.kind == CellKind::lstm;
  const Tensor& dy = p.dy(0);
  const CellBackward back(kept, weights, steps, p.dy(1), lstm ? p.dy(2) : Tensor());
  const int64_t H = kept.width, T = steps.length(), D = x.size(1);
  steps.each_range(cell_cost(kept.kind, H, steps.total()), [&](int64_t begin, int64_t end) {
    for (int64_t s = T - 1; s >= 0; --s) {
      for (int64_t i = begin; i < std::min(end, steps.active(s)); ++i) {
        float* dh = detail::writable(back.dh()) + i * H;
        kernels::add(dh, dy.ptr() + (steps.row(i) * T + steps.time(i, s)) * H, dh, H);
      }
      back.step(s, begin, end);
    }
  });
  if (p.wants(0)) {
    Tensor dx = Tensor::empty({steps.total(), D});
    back.all_input_gradients(dx.mutable_ptr(), 0, D);
    const GradTarget to = p.into(0);
    steps.scatter(dx, to.data, to.add);
  }
  if (p.wants(1)) back.pull_input(p.into(1), x.ptr(), 0, D);
  back.pull_rest(p, 2);
  if (p.wants(5)) p.give(5, back.first_dh());
  if (lstm && p.wants(6)) p.give(6, back.first_dc());
}

void check_state(const char* name, const Tensor& state, const Shape& expected) {
  check(!state.defined() || state.shape() == expected, "[recurrent] the first ", name, " has shape ", state.shape(),
        ", expected ", expected);
}

}  // namespace

RecurrentResult recurrent(CellKind kind, const Tensor& x, const CellWeights& weights, const CellState& first,
                          const Ids& lens, Direction direction) {
  check_present("recurrent", x, "x");
  check(x.rank() == 3, "[recurrent] expected x of shape (B, T, D), got ", x.shape());
  const int64_t B = x.size(0), T = x.size(1), D = x.size(2);
  check_cell("recurrent", kind, weights, D);
  const int64_t H = weights.width();
  check_state("h", first.h, {B, H});
  check_state("c", first.c, {B, H});
  check(kind == CellKind::lstm || !first.c.defined(), "[recurrent] a GRU has no c, got one of shape ", first.c.shape());

  const Steps steps("recurrent", B, T, lens, direction);
  const Tensor packed = steps.gather(x);
  const CellForward layer(kind, weights, steps, first.h, first.c);
  layer.set_inputs(packed.ptr(), 0, D);
  steps.each_range(cell_cost(kind, H, steps.total()), [&](int64_t begin, int64_t end) {
    for (int64_t s = 0; s < T; ++s) layer.step(s, begin, end);
  });
  RecurrentResult result{Tensor::empty({B, T, H}), {layer.last_h(), {}}};
  steps.scatter(layer.h(), result.y.mutable_ptr(), false);

  const std::initializer_list<const Tensor*> inputs{
      &x, &weights.input, &weights.recurrent, &weights.bias_input, &weights.bias_recurrent, &first.h, &first.c};
  const auto pullback = [saved = Saved{steps, layer.kept(), detached(weights), packed}](Pull& p) { saved.pull(p); };
  if (kind == CellKind::lstm) {
    result.state.c = layer.last_c();
    record("recurrent", {&result.y, &result.state.h, &result.state.c}, inputs, pullback);
  } else {
    record("recurrent", {&result.y, &result.state.h}, inputs, pullback);
  }
  return result;
}

CellState recurrent_step(CellKind kind, const Tensor& x, const CellWeights& weights, const CellState& before) {
  check_present("recurrent_step", x, "x");
  check(x.rank() == 2, "[recurrent_step] expected x of shape (B, D), got ", x.shape());
  return recurrent(kind, reshape(x, {x.size(0), 1, x.size(1)}), weights, before).state;
}

}  // namespace qkv
