// The attention decoder: threads own rows through all steps; work common to all steps is done in one product.
#include "qkv/ops/attention_decoder.h"

#include <array>
#include <optional>

#include "qkv/kernels/decoder_attention.h"
#include "qkv/kernels/elementwise.h"
#include "qkv/kernels/gemm.h"
#include "qkv/kernels/rearrange.h"
#include "qkv/ops/recurrent_cell.h"
#include "qkv/tensor/present.h"

namespace qkv {
namespace {

using kernels::gemm;
using kernels::gemm_parallel;

constexpr size_t kMostLayers = Few<CellWeights>::kMost;

struct Sizes {
  int64_t B, S, T, A, Dv, E, H, layers;
};

Sizes checked_sizes(const AttentionDecoder& d) {
  constexpr const char* op = "attention_decoder";
  check_present(op, d.keys, "keys");
  check_present(op, d.values, "values");
  check_present(op, d.inputs, "inputs");
  check(d.keys.rank() == 3 && d.values.rank() == 3 && d.inputs.rank() == 3, "[", op,
        "] expected keys, values and inputs of three axes, got ", d.keys.shape(), ", ", d.values.shape(), " and ",
        d.inputs.shape());
  check(d.keys.size(0) == d.values.size(0) && d.keys.size(1) == d.values.size(1), "[", op,
        "] keys and values differ: ", d.keys.shape(), " and ", d.values.shape());
  check(d.inputs.size(0) == d.keys.size(0), "[", op, "] batch sizes differ: ", d.inputs.shape(), " and ",
        d.keys.shape());
  check(!d.layers.empty(), "[", op, "] expected at least one layer");
  check(d.first.size() == d.layers.size(), "[", op, "] ", d.first.size(), " first states for ", d.layers.size(),
        " layers");
  for (const CellWeights& layer : d.layers) check_present(op, layer.recurrent, "recurrent weights");
  const Sizes z{d.keys.size(0),   d.keys.size(1),   d.inputs.size(1),    d.keys.size(2),
                d.values.size(2), d.inputs.size(2), d.layers[0].width(), static_cast<int64_t>(d.layers.size())};
  check(d.W_q.defined() || z.A == z.H, "[", op, "] W_q is absent, but keys have width ", z.A, " and states ", z.H);
  check(!d.W_q.defined() || d.W_q.shape() == Shape({z.A, z.H}), "[", op, "] W_q ", d.W_q.shape(), " does not fit keys ",
        d.keys.shape(), " and ", z.H, " units");
  check(!d.w_v.defined() || d.w_v.shape() == Shape{z.A}, "[", op, "] w_v ", d.w_v.shape(), " does not fit keys ",
        d.keys.shape());
  check(!d.w_v.defined() || d.scale == 1, "[", op, "] additive scores have no scale, got ", d.scale);
  for (size_t l = 0; l < d.layers.size(); ++l) {
    check_cell(op, d.kind, d.layers[l], l == 0 ? z.Dv + z.E : z.H);
    check(d.layers[l].width() == z.H, "[", op, "] layer ", l, " has ", d.layers[l].width(), " units, the first ", z.H);
    for (const Tensor* state : {&d.first[l].h, &d.first[l].c})
      check(!state->defined() || state->shape() == Shape({z.B, z.H}), "[", op, "] a first state has shape ",
            state->shape(), ", expected ", Shape{z.B, z.H});
  }
  check(!d.source_lens.defined() || d.source_lens.shape() == Shape{z.B}, "[", op, "] source lengths have shape ",
        d.source_lens.shape(), " for ", z.B, " rows");
  if (d.source_lens.defined())
    for (const int32_t n : d.source_lens.data())
      check(n >= 0 && n <= z.S, "[", op, "] source length ", n, " is not in 0 to ", z.S);
  check(!d.weight_factors.defined() || d.weight_factors.shape() == Shape({z.B, z.T, z.S}), "[", op,
        "] factors of the weights have shape ", d.weight_factors.shape(), ", expected ", Shape{z.B, z.T, z.S});
  check(d.factors.empty() || d.factors.size() + 1 == d.layers.size(), "[", op, "] ", d.factors.size(),
        " factors between ", z.layers, " layers");
  for (const Tensor& f : d.factors)
    check(f.shape() == Shape({z.B, z.T, z.H}), "[", op, "] factors have shape ", f.shape(), ", expected ",
          Shape{z.B, z.T, z.H});
  return z;
}

// What both directions hold; packed arrays have one row per computed step.
struct Saved {
  Sizes z;
  Steps steps;
  Tensor keys, values, W_q, w_v;
  Ids source_lens;
  Tensor inputs;   // (total, E), packed
  Tensor queries;  // (total, A): W_q h, or the states themselves
  float scale;
  Tensor contexts;  // (total, Dv)
  Tensor weights;   // (B, T, S)
  Tensor weight_factors;
  std::array<Tensor, kMostLayers> factors;  // packed, for the inputs of layer l
  std::array<Tensor, kMostLayers> below;    // packed inputs of layer l, from 1 on
  std::array<CellWeights, kMostLayers> layers;
  std::array<CellKept, kMostLayers> kept;

  const CellKept& top() const { return kept[static_cast<size_t>(z.layers - 1)]; }
  double cost() const {
    const double attention =
        static_cast<double>(steps.total() * z.S) * static_cast<double>(z.A) * (w_v.defined() ? 0.5 : 0.1);
    return attention + static_cast<double>(z.layers) * 2 * cell_cost(top().kind, z.H, steps.total());
  }
  // The attention of sorted row i at step s.
  kernels::DecoderRow row(int64_t i, int64_t s) const {
    const int64_t b = steps.row(i);
    return {.keys = source_lens.defined() ? source_lens.ptr()[b] : z.S,
            .width = z.A,
            .value_width = z.Dv,
            .scale = scale,
            .query = queries.ptr() + (steps.start(s) + i) * z.A,
            .key = keys.ptr() + b * z.S * z.A,
            .w = w_v.defined() ? w_v.ptr() : nullptr,
            .value = values.ptr() + b * z.S * z.Dv,
            .factors = weight_factors.defined() ? weight_factors.ptr() + (b * z.T + s) * z.S : nullptr};
  }
  float* weights_of(int64_t i, int64_t s) const { return detail::writable(weights) + (steps.row(i) * z.T + s) * z.S; }
  void pull(Pull& p) const;
};

using Layers = std::array<std::optional<CellForward>, kMostLayers>;

// Rows [begin, end) through all steps.
void run_forward(const Saved& saved, const Layers& layers, const Tensor& W_q_t, int64_t begin, int64_t end) {
  const Sizes& z = saved.z;
  const Steps& steps = saved.steps;
  for (int64_t s = 0; s < z.T; ++s) {
    const int64_t n = std::min(end, steps.active(s)) - begin, at = steps.start(s) + begin;
    if (n <= 0) return;
    // query <- W_q h
    if (saved.W_q.defined())
      gemm({.M = n,
            .N = z.A,
            .K = z.H,
            .A = saved.top().h_before.ptr() + at * z.H,
            .lda = z.H,
            .B = W_q_t.ptr(),
            .ldb = z.A,
            .C = detail::writable(saved.queries) + at * z.A,
            .ldc = z.A});
    for (int64_t i = begin; i < begin + n; ++i) {
      const kernels::DecoderRow row = saved.row(i, s);
      kernels::decoder_row(row, saved.weights_of(i, s), detail::writable(saved.contexts) + (steps.start(s) + i) * z.Dv);
      std::fill(saved.weights_of(i, s) + row.keys, saved.weights_of(i, s) + z.S, 0.f);
    }
    layers[0]->add_inputs(saved.contexts.ptr() + at * z.Dv, 0, z.Dv, at, n, true);
    layers[0]->step(s, begin, end);
    for (size_t l = 1; l < static_cast<size_t>(z.layers); ++l) {
      if (saved.factors[l].defined())
        kernels::multiply_into(layers[l - 1]->h().ptr() + at * z.H, saved.factors[l].ptr() + at * z.H,
                               detail::writable(saved.below[l]) + at * z.H, n * z.H, false);
      layers[l]->add_inputs(saved.below[l].ptr() + at * z.H, 0, z.H, at, n, false);
      layers[l]->step(s, begin, end);
    }
  }
}

// The inputs of the node: keys, values, W_q, w_v, inputs, then the weights and first state of every layer.
constexpr int kFixedInputs = 5, kLayerInputs = 6;

// Backward through time for rows [begin, end): fills dqueries (total, A), dkeys, dvalues and dw (B, A); layers hold the
// rest.
struct BackwardBuffers {
  Tensor dqueries, dkeys, dvalues, dw, dcontext, scores, dbelow;
};

void run_backward(const Saved& saved, const std::array<std::optional<CellBackward>, kMostLayers>& layers,
                  const Tensor& dy, const BackwardBuffers& to, int64_t begin, int64_t end) {
  const Sizes& z = saved.z;
  const Steps& steps = saved.steps;
  const size_t top = static_cast<size_t>(z.layers - 1);
  for (int64_t s = z.T - 1; s >= 0; --s) {
    const int64_t n = std::min(end, steps.active(s)) - begin, at = steps.start(s) + begin;
    if (n <= 0) continue;
    for (int64_t i = begin; i < begin + n; ++i) {
      float* dh = detail::writable(layers[top]->dh()) + i * z.H;
      kernels::add(dh, dy.ptr() + (steps.row(i) * z.T + s) * z.H, dh, z.H);
    }
    for (size_t l = top; l > 0; --l) {
      layers[l]->step(s, begin, end);
      float* dbelow = detail::writable(layers[l - 1]->dh()) + begin * z.H;
      if (!saved.factors[l].defined()) {
        layers[l]->input_gradient(dbelow, 0, z.H, at, n, true);
        continue;
      }
      float* din = detail::writable(to.dbelow) + begin * z.H;
      layers[l]->input_gradient(din, 0, z.H, at, n, false);
      kernels::multiply_into(din, saved.factors[l].ptr() + at * z.H, dbelow, n * z.H, true);
    }
    layers[0]->step(s, begin, end);
    float* dcontext = detail::writable(to.dcontext) + begin * z.Dv;
    layers[0]->input_gradient(dcontext, 0, z.Dv, at, n, false);
    for (int64_t i = begin; i < begin + n; ++i) {
      const int64_t b = steps.row(i), packed = steps.start(s) + i;
      kernels::decoder_row_back(
          saved.row(i, s), saved.weights_of(i, s), dcontext + (i - begin) * z.Dv,
          {detail::writable(to.dqueries) + packed * z.A, detail::writable(to.dkeys) + b * z.S * z.A,
           saved.w_v.defined() ? detail::writable(to.dw) + b * z.A : nullptr,
           detail::writable(to.dvalues) + b * z.S * z.Dv},
          detail::writable(to.scores) + i * z.S);
    }
    // dh of the last layer, before this step, += dquery W_q
    float* dh = detail::writable(layers[top]->dh()) + begin * z.H;
    const float* dquery = to.dqueries.ptr() + at * z.A;
    if (saved.W_q.defined())
      gemm({.M = n,
            .N = z.H,
            .K = z.A,
            .A = dquery,
            .lda = z.A,
            .B = saved.W_q.ptr(),
            .ldb = z.H,
            .beta = 1,
            .C = dh,
            .ldc = z.H});
    else
      kernels::add(dh, dquery, dh, n * z.H);
  }
}

// Goes back through the steps like the recurrent layer, with dcontext through the attention
// (kernels/decoder_attention.h). Over all steps at once: dW_q = dquery^T h, dinputs = d(W x) W, weights as in
// recurrent_cell
void Saved::pull(Pull& p) const {
  std::array<std::optional<CellBackward>, kMostLayers> back;
  const size_t count = static_cast<size_t>(z.layers);
  for (size_t l = 0; l < count; ++l) back[l].emplace(kept[l], layers[l], steps, Tensor(), Tensor());
  BackwardBuffers to{.dqueries = Tensor::empty({steps.total(), z.A}),
                     .dkeys = zeros(keys.shape()),
                     .dvalues = zeros(values.shape()),
                     .dw = w_v.defined() ? zeros({z.B, z.A}) : Tensor(),
                     .dcontext = Tensor::empty({z.B, z.Dv}),
                     .scores = Tensor::empty({z.B, z.S}),
                     .dbelow = Tensor::empty({z.B, z.H})};
  const Tensor& dy = p.dy();
  steps.each_range(2 * cost(), [&](int64_t begin, int64_t end) { run_backward(*this, back, dy, to, begin, end); });
  if (p.wants(2)) {
    const GradTarget dq = p.into(2);
    gemm_parallel({.transpose_a = Transpose::yes,
                   .M = z.A,
                   .N = z.H,
                   .K = steps.total(),
                   .A = to.dqueries.ptr(),
                   .lda = z.A,
                   .B = top().h_before.ptr(),
                   .ldb = z.H,
                   .beta = dq.add ? 1.f : 0.f,
                   .C = dq.data,
                   .ldc = z.H});
  }
  if (p.wants(3)) {
    Tensor dw = zeros({z.A});
    for (int64_t b = 0; b < z.B; ++b) kernels::add(dw.ptr(), to.dw.ptr() + b * z.A, dw.mutable_ptr(), z.A);
    p.give(3, std::move(dw));
  }
  if (p.wants(4)) {
    Tensor dinputs = Tensor::empty({steps.total(), z.E});
    back[0]->all_input_gradients(dinputs.mutable_ptr(), z.Dv, z.E);
    const GradTarget di = p.into(4);
    steps.scatter(dinputs, di.data, di.add);
  }
  for (size_t l = 0; l < count; ++l) {
    const int at = kFixedInputs + kLayerInputs * static_cast<int>(l);
    if (p.wants(at)) {
      const GradTarget dw = p.into(at);
      back[l]->pull_input(dw, l == 0 ? contexts.ptr() : below[l].ptr(), 0, l == 0 ? z.Dv : z.H);
      if (l == 0) back[l]->pull_input(dw, inputs.ptr(), z.Dv, z.E);
    }
    back[l]->pull_rest(p, at + 1);
    if (p.wants(at + 4)) p.give(at + 4, back[l]->first_dh());
    if (kept[l].kind == CellKind::lstm && p.wants(at + 5)) p.give(at + 5, back[l]->first_dc());
  }
  p.give(0, std::move(to.dkeys));
  p.give(1, std::move(to.dvalues));
}

Tensor transposed(const Tensor& x) {
  Tensor y = Tensor::empty({x.size(1), x.size(0)});
  const std::array<int64_t, 2> sizes{x.size(1), x.size(0)}, strides{1, x.size(1)};
  if (y.numel() > 0) kernels::permute(x.ptr(), y.mutable_ptr(), sizes, strides);
  return y;
}

}  // namespace

AttentionDecoderResult attention_decoder(const AttentionDecoder& d) {
  const Sizes z = checked_sizes(d);
  const Steps steps("attention_decoder", z.B, z.T, d.target_lens);
  Saved saved{.z = z,
              .steps = steps,
              .keys = d.keys.detached(),
              .values = d.values.detached(),
              .W_q = d.W_q.detached(),
              .w_v = d.w_v.detached(),
              .source_lens = d.source_lens,
              .inputs = steps.gather(d.inputs),
              .queries = d.W_q.defined() ? Tensor::empty({steps.total(), z.A}) : Tensor(),
              .scale = d.scale,
              .contexts = Tensor::empty({steps.total(), z.Dv}),
              .weights = zeros({z.B, z.T, z.S}),
              .weight_factors = d.weight_factors,
              .factors = {},
              .below = {},
              .layers = {},
              .kept = {}};
  Layers layers;
  std::array<const Tensor*, kFixedInputs + kLayerInputs * kMostLayers> inputs{&d.keys, &d.values, &d.W_q, &d.w_v,
                                                                              &d.inputs};
  for (size_t l = 0; l < d.layers.size(); ++l) {
    const CellWeights& w = d.layers[l];
    layers[l].emplace(d.kind, w, steps, d.first[l].h, d.first[l].c);
    layers[l]->prepare_add_inputs();
    saved.layers[l] = {w.input.detached(), w.recurrent.detached(), w.bias_input.detached(),
                       w.bias_recurrent.detached()};
    saved.kept[l] = layers[l]->kept();
    if (l > 0 && !d.factors.empty()) saved.factors[l] = steps.gather(d.factors[l - 1]);
    if (l > 0) saved.below[l] = saved.factors[l].defined() ? Tensor::empty({steps.total(), z.H}) : layers[l - 1]->h();
    const std::array<const Tensor*, kLayerInputs> mine{&w.input,          &w.recurrent,  &w.bias_input,
                                                       &w.bias_recurrent, &d.first[l].h, &d.first[l].c};
    std::copy(mine.begin(), mine.end(), inputs.begin() + kFixedInputs + kLayerInputs * static_cast<int64_t>(l));
  }
  layers[0]->set_inputs(saved.inputs.ptr(), z.Dv, z.E);
  if (!d.W_q.defined()) saved.queries = saved.top().h_before;
  const Tensor W_q_t = d.W_q.defined() ? transposed(d.W_q) : Tensor();
  steps.each_range(saved.cost(), [&](int64_t begin, int64_t end) { run_forward(saved, layers, W_q_t, begin, end); });
  AttentionDecoderResult result{Tensor::empty({z.B, z.T, z.H}), saved.weights};
  steps.scatter(layers[d.layers.size() - 1]->h(), result.y.mutable_ptr(), false);
  Tensor* const outputs[] = {&result.y};
  record("attention_decoder", outputs, std::span(inputs).first(kFixedInputs + kLayerInputs * d.layers.size()),
         [saved = std::move(saved)](Pull& p) { saved.pull(p); });
  return result;
}

}  // namespace qkv
