// attend: the code common to all scorers.
#include "qkv/attention/attend.h"

#include <algorithm>

#include "qkv/attention/edits.h"
#include "qkv/ops/attention_composed.h"
#include "qkv/ops/diagonals.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/tape.h"

namespace qkv::detail {
namespace {

Tensor four_axes(const Tensor& x) {
  if (x.rank() == 4) return x;
  return reshape(x, x.rank() == 3 ? Shape{x.size(0), 1, x.size(1), x.size(2)} : Shape{1, 1, x.size(0), x.size(1)});
}

// The output in the layout of the caller's tensors.
Tensor given_axes(const Tensor& x, const AttendCall& call) {
  const int rank = call.rank;
  if (rank == 4) return call.given == call.axis ? x : permute(x, {0, 2, 1, 3});
  return reshape(x, rank == 3 ? Shape{x.size(0), x.size(2), x.size(3)} : Shape{x.size(2), x.size(3)});
}

// Sets keys that no query of their batch row sees to 0: a NaN there would spread through a matrix product in the
// gradient.
Tensor without_unseen(const Tensor& k, const AttentionPlan& plan, int64_t queries) {
  if (all_finite(k)) return k;
  Tensor seen = zeros(k.shape());
  const int64_t keys = k.size(2), width = k.size(3);
  for (int64_t head = 0; head < k.size(0) * k.size(1); ++head)
    for (int64_t i = 0; i < queries; ++i) {
      const PlanRow row = plan.row(head / k.size(1), head % k.size(1), i, keys);
      for (int64_t j = row.begin; j < row.end; ++j)
        if (row.sees(j)) std::fill_n(seen.mutable_ptr() + (head * keys + j) * width, width, 1.f);
    }
  return where(seen, k, zeros(k.shape()));
}

Tensor with_biases(Tensor scores, const AttentionPlan& plan) {
  if (plan.bias.defined()) scores = add(scores, plan.bias);
  if (plan.relative.defined()) scores = add(scores, dense_of_diagonals(plan.relative, scores.size(2), scores.size(3)));
  return scores;
}

// The weights after the edits of the run's probe, if it has any for this attention.
Tensor edited(const AttendCall& call, const Tensor& scores, const Tensor& weights) {
  Probe* probe = call.run->probe;
  if (!probe || !probe->edits(call.run->path)) return weights;
  check(!Tape::current(), "[attend] the attention at ", call.run->path, " is edited: it has no gradient");
  Tensor out = Tensor::empty(weights.shape());
  std::copy_n(weights.ptr(), weights.numel(), out.mutable_ptr());
  EditableWeights all{scores, call.plan, call.run->first_queries, out};
  probe->edit(call.run->path, all);
  return out;
}

void show(const AttendCall& call, const Attended& attended) {
  if (!call.run->probe) return;
  const TapePause pause;
  call.run->probe->attention(call.run->path, attended.weights);
}

}  // namespace

AttendCall attend_call(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask, const Run& run,
                       const AttendOptions& options, bool any_axis) {
  check_present("attend", q, "queries");
  check_present("attend", k, "keys");
  check_present("attend", v, "values");
  const Shape &sq = q.shape(), &sk = k.shape(), &sv = v.shape();
  const bool inner = options.axis == HeadAxis::inner;
  const int heads_at = inner ? 2 : 1, rows_at = inner ? 1 : -2;
  check(inner ? q.rank() == 4 : q.rank() >= 2 && q.rank() <= 4, "[attend] expected queries ",
        inner ? "(B, L, H, D)" : "(L, D), (B, L, D) or (B, H, L, D)", ", got ", sq);
  // `qkv attend` shows these to its users, in their language.
  require(q.rank() == k.rank() && k.rank() == v.rank(),
          "[attend] queries, keys and values have different numbers of axes: {q}, {k}, {v}", "q"_a = sq, "k"_a = sk,
          "v"_a = sv);
  require(sk[rows_at] == sv[rows_at], "[attend] the numbers of keys and values differ: {k} and {v}", "k"_a = sk,
          "v"_a = sv);
  require(q.rank() < 3 || (sq[0] == sk[0] && sk[0] == sv[0]), "[attend] batch sizes differ: {q}, {k}, {v}", "q"_a = sq,
          "k"_a = sk, "v"_a = sv);
  if (q.rank() == 4) {
    require(sk[heads_at] == sv[heads_at], "[attend] keys and values have different heads: {k} and {v}", "k"_a = sk,
            "v"_a = sv);
    require(sk[heads_at] > 0 && sq[heads_at] % sk[heads_at] == 0,
            "[attend] the number of query heads is not a multiple of the number of key heads: {q} and {k}", "q"_a = sq,
            "k"_a = sk);
  }
  const int64_t batch = q.rank() >= 3 ? sq[0] : 1, heads = q.rank() == 4 ? sq[heads_at] : 1;
  const HeadAxis axis = inner && any_axis ? HeadAxis::inner : HeadAxis::outer;
  const auto laid_out = [&](const Tensor& x) { return options.axis == axis ? four_axes(x) : permute(x, {0, 2, 1, 3}); };
  return {laid_out(q),
          laid_out(k),
          laid_out(v),
          q.rank(),
          options.axis,
          axis,
          mask.plan("attend", {batch, heads, sq[rows_at], sk[rows_at], q.rank()}),
          attention_dropout("attend", options.dropout, run),
          &run};
}

Attended attend_fused(const AttendCall& call, Lowered scores) {
  if (auto* pairs = std::get_if<PairScores>(&scores)) pairs->axis = call.axis;
  const AttentionResult result =
      std::visit([&](const auto& s) { return attention(s, call.v, call.plan, call.dropout); }, scores);
  Attended out{given_axes(result.output, call), Weights(scores, call.plan, result.lse, result.empty_rows)};
  show(call, out);
  return out;
}

AttendCall with_all_heads(AttendCall call) {
  const int64_t shared = call.q.size(1) / call.k.size(1);
  if (shared > 1) {
    call.k = repeat_interleave(call.k, shared, 1);
    call.v = repeat_interleave(call.v, shared, 1);
  }
  call.k = without_unseen(call.k, call.plan, call.q.size(2));
  return call;
}

Attended attend_composed(const AttendCall& call, const Tensor& scores) {
  const Shape expected{call.q.size(0), call.q.size(1), call.q.size(2), call.k.size(2)};
  check(scores.shape() == expected, "[attend] the scorer gave scores ", scores.shape(), ", expected (B, H, Lq, Lk) ",
        expected);
  const Tensor biased = with_biases(scores, call.plan);
  const MaskedSoftmax alpha = masked_softmax(biased, call.plan);
  const Tensor weights = edited(call, biased, alpha.weights);
  const Tensor kept = call.dropout.rate > 0 ? mul(weights, dropout_factors(expected, call.dropout)) : weights;
  const Tensor output = pool_values(kept, call.v, call.plan);
  Attended out{given_axes(output, call), Weights(weights, alpha.empty_rows)};
  show(call, out);
  return out;
}

}  // namespace qkv::detail
