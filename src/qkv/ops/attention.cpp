// The attention nodes: check shapes, call kernels, record the pullback.
#include "qkv/ops/attention.h"

#include <limits>

#include "qkv/kernels/attention.h"
#include "qkv/ops/attention_nearest.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

using kernels::AttentionCall;
using kernels::ConstHeads;
using kernels::Heads;

kernels::HeadStrides strides(const Shape& s, HeadAxis axis) {
  const int64_t batch = s[1] * s[2] * s[3];
  if (axis == HeadAxis::inner) return {batch, s[3], s[2] * s[3]};
  return {batch, s[2] * s[3], s[3]};
}
ConstHeads in(const Tensor& x, HeadAxis axis = HeadAxis::outer) { return {x.ptr(), strides(x.shape(), axis)}; }
Heads to(const Tensor& x, HeadAxis axis = HeadAxis::outer) {
  return {x.defined() ? detail::writable(x) : nullptr, strides(x.shape(), axis)};
}

kernels::AttentionSizes sizes_of(const Shape& q_shape, const Shape& k_shape, const Shape& v_shape,
                                 HeadAxis axis = HeadAxis::outer) {
  check(q_shape.rank() == 4 && k_shape.rank() == 4 && v_shape.rank() == 4, "[attention] expected four axes each, got ",
        q_shape, ", ", k_shape, ", ", v_shape);
  const Shape q = heads_outer(q_shape, axis), k = heads_outer(k_shape, axis), v = heads_outer(v_shape, axis);
  check(q[0] == k[0] && k[0] == v[0], "[attention] batch sizes differ: ", q, ", ", k, ", ", v);
  check(k[1] == v[1], "[attention] keys and values have different heads: ", k, " and ", v);
  check(k[1] > 0 && q[1] % k[1] == 0,
        "[attention] the number of query heads is not a multiple of the number of key heads: ", q, " and ", k);
  check(q[3] == k[3], "[attention] query and key widths differ: ", q, " x ", k);
  check(k[2] == v[2], "[attention] the numbers of keys and values differ: ", k, " and ", v);
  check(q[3] > 0 && v[3] > 0, "[attention] queries, keys and values need a width of at least 1: ", q, ", ", k, ", ", v);
  return {q[0], q[1], k[1], q[2], k[2], q[3], v[3]};
}

// Without any keys every row is empty; the kernels are not called.
AttentionResult nothing_seen(const kernels::AttentionSizes& s, HeadAxis axis = HeadAxis::outer) {
  return {zeros(heads_outer({s.batch, s.heads, s.queries, s.value_width}, axis)),
          full({s.batch, s.heads, s.queries}, -std::numeric_limits<float>::infinity()), s.batch * s.heads * s.queries};
}

bool trivial(const kernels::AttentionSizes& s) { return s.keys == 0 || s.batch * s.heads * s.queries == 0; }

AttentionCall call_of(const PairScores& scores, const Shape& v, const AttentionPlan& plan,
                      const AttentionDropout& dropout) {
  AttentionCall call{sizes_of(scores.q.shape(), scores.k.shape(), v, scores.axis), scores.form, scores.full_scale(),
                     plan.mask(), dropout};
  if (scores.key_bias.defined()) call.mask.key_bias = scores.key_bias.ptr();
  return call;
}

AttentionCall call_of(const AdditiveScores& scores, const Shape& v, const AttentionPlan& plan,
                      const AttentionDropout& dropout) {
  return {sizes_of(scores.pq.shape(), scores.pk.shape(), v), ScoreForm::dot, 1, plan.mask(), dropout};
}

PairScores detached(const PairScores& s) {
  return {s.q.detached(), s.k.detached(), s.form, s.scale, s.factor.detached(), s.key_bias.detached(), s.axis};
}

AttentionPlan detached(AttentionPlan plan) {
  plan.bias = plan.bias.detached();
  plan.relative = plan.relative.detached();
  return plan;
}

Tensor wanted(Pull& p, int input, const Shape& shape) {
  return p.wants(input) ? Tensor::empty(shape) : Tensor::absent(shape);
}
float* floats(const Tensor& x) { return x.defined() ? detail::writable(x) : nullptr; }
void hand_over(Pull& p, int input, Tensor& gradient) {
  if (gradient.defined()) p.give(input, std::move(gradient));
}

}  // namespace

Shape heads_outer(const Shape& shape, HeadAxis axis) {
  return axis == HeadAxis::outer ? shape : Shape{shape[0], shape[2], shape[1], shape[3]};  // its own inverse
}

AttentionDropout attention_dropout(const char* op, float rate, const Run& run) {
  if (!drops(op, rate, run)) return {};
  note_draw(op, run);
  return {rate, run.rng.key(), run.rng.step(), run.rng.shard() << 16};
}

// out = P v, P = softmax(S).   dP = dout v^T,  dS = P (dP - sum(P dP)),  dv = P^T dout,  then dS through the score to
// q, k, scale, biases
AttentionResult attention(const PairScores& scores, const Tensor& v, const AttentionPlan& plan,
                          const AttentionDropout& dropout) {
  check_present("attention", scores.q, "q");
  check_present("attention", scores.k, "k");
  check_present("attention", v, "v");
  const AttentionCall call = call_of(scores, v.shape(), plan, dropout);
  check(!scores.key_bias.defined() ||
            scores.key_bias.shape() == Shape{call.sizes.batch, call.sizes.key_heads, call.sizes.keys},
        "[attention] the key bias does not fit: ", scores.key_bias.shape(), " for keys ", scores.k.shape());
  if (trivial(call.sizes)) {
    AttentionResult nothing = nothing_seen(call.sizes, scores.axis);
    record("attention", nothing.output,
           {&scores.q, &scores.k, &v, &plan.bias, &scores.key_bias, &scores.factor, &plan.relative}, [](Pull&) {});
    return nothing;
  }
  const HeadAxis axis = scores.axis;
  Tensor out = Tensor::empty(
      heads_outer({call.sizes.batch, call.sizes.heads, call.sizes.queries, call.sizes.value_width}, axis));
  Tensor lse = Tensor::empty({call.sizes.batch, call.sizes.heads, call.sizes.queries});
  int64_t empty_rows = kernels::attention_forward(call, in(scores.q, axis), in(scores.k, axis), in(v, axis),
                                                  to(out, axis), lse.mutable_ptr());
  const int64_t far_rows =
      scores.form == ScoreForm::gaussian && empty_rows > 0 ? fill_nearest(scores, v, plan, lse, out) : 0;
  empty_rows -= far_rows;
  record("attention", out, {&scores.q, &scores.k, &v, &plan.bias, &scores.key_bias, &scores.factor, &plan.relative},
         [scores = detached(scores), v = v.detached(), plan = detached(plan), dropout, out = out.detached(), lse,
          far_rows](Pull& p) {
           Tensor dq = wanted(p, 0, scores.q.shape()), dk = wanted(p, 1, scores.k.shape()),
                  dv = wanted(p, 2, v.shape());
           Tensor dbias = wanted(p, 3, plan.bias.shape()), dkey_bias = wanted(p, 4, scores.key_bias.shape());
           Tensor drelative = wanted(p, 6, plan.relative.shape());
           double dscale = 0;
           const HeadAxis at = scores.axis;
           kernels::attention_backward(call_of(scores, v.shape(), plan, dropout), in(scores.q, at), in(scores.k, at),
                                       in(v, at), in(out, at), lse.ptr(), in(p.dy(), at),
                                       {to(dq, at), to(dk, at), to(dv, at), floats(dbias), floats(dkey_bias),
                                        p.wants(5) ? &dscale : nullptr, floats(drelative)});
           if (far_rows > 0 && dv.defined()) pull_nearest(scores, plan, lse, p.dy(), dv);
           hand_over(p, 0, dq);
           hand_over(p, 1, dk);
           hand_over(p, 2, dv);
           hand_over(p, 3, dbias);
           hand_over(p, 4, dkey_bias);
           hand_over(p, 6, drelative);
           if (p.wants(5)) p.give(5, full(scores.factor.shape(), static_cast<float>(dscale * scores.scale)));
         });
  return {out, lse, empty_rows};
}

// The same with S_ij = w . tanh(pq_i + pk_j).   T = tanh(...),  dw = sum dS T,  dpq_i = sum_j dS_ij w (1 - T^2),  dpk_j
// likewise over i
AttentionResult attention(const AdditiveScores& scores, const Tensor& v, const AttentionPlan& plan,
                          const AttentionDropout& dropout) {
  check_present("attention", scores.pq, "pq");
  check_present("attention", scores.pk, "pk");
  check_present("attention", scores.w, "w");
  check_present("attention", v, "v");
  const Shape pq = scores.pq.shape(), pk = scores.pk.shape();
  const auto sizes = sizes_of(pq, pk, v.shape());
  check(scores.w.shape() == Shape{pq[3]}, "[attention] the additive weight does not fit: ", scores.w.shape(),
        " for queries ", pq);
  if (sizes.heads > 1) {  // the kernel has one head: heads join the batch, key heads are repeated
    const int64_t shared = sizes.heads / sizes.key_heads, batch = sizes.batch * sizes.heads;
    const auto fold = [&](const Tensor& x) {
      return reshape(shared == 1 ? x : repeat_interleave(x, shared, 1), {batch, 1, x.size(2), x.size(3)});
    };
    AttentionResult folded =
        attention({reshape(scores.pq, {batch, 1, sizes.queries, sizes.width}), fold(scores.pk), scores.w}, fold(v),
                  plan.heads_as_batch(sizes.batch, sizes.heads), dropout);
    return {reshape(folded.output, {sizes.batch, sizes.heads, sizes.queries, sizes.value_width}),
            folded.lse.viewed({sizes.batch, sizes.heads, sizes.queries}), folded.empty_rows};
  }
  if (trivial(sizes)) {
    AttentionResult nothing = nothing_seen(sizes);
    record("additive_attention", nothing.output, {&scores.pq, &scores.pk, &v, &scores.w, &plan.bias, &plan.relative},
           [](Pull&) {});
    return nothing;
  }
  Tensor out = Tensor::empty({sizes.batch, 1, sizes.queries, sizes.value_width});
  Tensor lse = Tensor::empty({sizes.batch, 1, sizes.queries});
  const int64_t empty_rows =
      kernels::additive_forward(call_of(scores, v.shape(), plan, dropout), in(scores.pq), in(scores.pk), scores.w.ptr(),
                                in(v), to(out), lse.mutable_ptr());
  record("additive_attention", out, {&scores.pq, &scores.pk, &v, &scores.w, &plan.bias, &plan.relative},
         [scores = AdditiveScores{scores.pq.detached(), scores.pk.detached(), scores.w.detached()}, v = v.detached(),
          plan = detached(plan), dropout, out = out.detached(), lse](Pull& p) {
           Tensor dpq = wanted(p, 0, scores.pq.shape()), dpk = wanted(p, 1, scores.pk.shape()),
                  dv = wanted(p, 2, v.shape());
           Tensor dw = wanted(p, 3, scores.w.shape()), dbias = wanted(p, 4, plan.bias.shape());
           Tensor drelative = wanted(p, 5, plan.relative.shape());
           kernels::additive_backward(call_of(scores, v.shape(), plan, dropout), in(scores.pq), in(scores.pk),
                                      scores.w.ptr(), in(v), in(out), lse.ptr(), in(p.dy()),
                                      {to(dpq), to(dpk), to(dv), floats(dw), floats(dbias), floats(drelative)});
           hand_over(p, 0, dpq);
           hand_over(p, 1, dpk);
           hand_over(p, 2, dv);
           hand_over(p, 3, dw);
           hand_over(p, 4, dbias);
           hand_over(p, 5, drelative);
         });
  return {out, lse, empty_rows};
}

void attention_row(const PairScores& scores, const AttentionPlan& plan, const Tensor& lse, int64_t b, int64_t h,
                   int64_t i, float* weights) {
  const AttentionCall call = call_of(scores, scores.k.shape(), plan, {});
  kernels::attention_weights(call, in(scores.q, scores.axis), in(scores.k, scores.axis), lse.ptr(), b, h, i, weights);
  const float row_lse = lse.ptr()[(b * call.sizes.heads + h) * call.sizes.queries + i];
  if (scores.form == ScoreForm::gaussian && row_lse == -std::numeric_limits<float>::infinity())
    nearest_weights(scores, plan, b, h, i, weights);
}

void attention_row(const AdditiveScores& scores, const AttentionPlan& plan, const Tensor& lse, int64_t b, int64_t h,
                   int64_t i, float* weights) {
  // One (b, h) as an attention with a single batch row and head.
  const int64_t heads = scores.pq.size(1), key_head = h / (heads / scores.pk.size(1));
  AttentionCall call = call_of(scores, scores.pk.shape(), plan, {});
  call.sizes.batch = call.sizes.heads = call.sizes.key_heads = 1;
  if (call.mask.begin) {
    call.mask.begin += b * call.mask.interval_batch;
    call.mask.end += b * call.mask.interval_batch;
  }
  if (call.mask.keep) call.mask.keep += b * call.mask.keep_batch + h * call.mask.keep_head;
  if (call.mask.bias) call.mask.bias += b * call.mask.bias_batch + h * call.mask.bias_head;
  if (call.mask.relative) call.mask.relative += b * call.mask.relative_batch + h * call.mask.relative_head;
  const Shape pq = scores.pq.shape(), pk = scores.pk.shape();
  ConstHeads queries = in(scores.pq), keys = in(scores.pk);
  queries.data += (b * heads + h) * pq[2] * pq[3];
  keys.data += (b * pk[1] + key_head) * pk[2] * pk[3];
  kernels::additive_weights(call, queries, keys, scores.w.ptr(), lse.ptr() + (b * heads + h) * pq[2], 0, i, weights);
}

}  // namespace qkv
