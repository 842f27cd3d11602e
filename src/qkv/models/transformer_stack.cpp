// Sublayers with residuals, and stacks of blocks.
#include "qkv/models/transformer_stack.h"

#include "qkv/core/check.h"
#include "qkv/nn/init.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/feed_forward.h"
#include "qkv/ops/recompute.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

using Inputs = std::span<const Tensor>;

Linear::Bias bias_if(bool wanted) { return wanted ? Linear::Bias::yes : Linear::Bias::no; }

// Positions inside attention are for self-attention: between two sequences distance has no meaning.
MultiHead heads(const TransformerConfig& o, int64_t count, PositionKind positions, const AttentionKindOptions& kind,
                const Rng& rng) {
  return MultiHead({.width = o.hidden,
                    .heads = count,
                    .head_width = o.hidden / o.heads,
                    .key_heads = count / o.shared_heads(),
                    .scorer = o.attention,
                    .own_scorer = o.own_scorer,
                    .bias = bias_if(o.bias),
                    .dropout = o.attention_rate(),
                    .positions = positions,
                    .max_distance = o.max_distance,
                    .rotation = {.base = o.rotary_base, .pairs = o.rotary_pairs},
                    .kind = kind},
                   rng);
}

Norm norm_of(const TransformerConfig& o) { return {o.norm_kind, o.hidden, bias_if(o.norm_bias), o.norm_eps}; }

// A sublayer with residual, dropout and norm. Post-norm: LN(x + dropout(f(x))); pre-norm: x + dropout(f(LN(x))).
template <class Sublayer>
Tensor residual(const Tensor& x, const Norm& norm, NormPlace place, float rate, const Run& run, const Sublayer& f) {
  if (place == NormPlace::post) return norm(x, f(x), rate, run);
  return add(x, dropout(f(norm(x)), rate, run));
}

// The same as ffn(x); a plain network in less memory and a little more time.
Tensor in_stretches(const AnyFeedForward& ffn, const Tensor& x) {
  const auto* plain = ffn.as<FeedForward>();
  if (!plain) return ffn(x);
  return feed_forward(x, plain->first.weight, plain->first.bias, plain->second.weight, plain->second.bias,
                      plain->activation);
}

// The parameters of a sublayer and of its norm.
template <class Sublayer>
std::vector<Tensor> weights_of(const Sublayer& sublayer, const Norm& norm) {
  std::vector<Tensor> out;
  for (const NamedTensor& p : parameters(norm)) out.push_back(p.tensor);
  for (const NamedTensor& p : parameters(sublayer)) out.push_back(p.tensor);
  return out;
}

// A probe sees only the first pass.
Run run_of(const Run& run, Pass pass) {
  Run out = run;
  if (pass == Pass::again) out.probe = nullptr;
  return out;
}

}  // namespace

TransformerBlock::TransformerBlock(const TransformerConfig& o, Cross with_cross, const Rng& rng, AttentionPart part,
                                   int64_t layer)
    : self(heads(o, o.heads_of(part, layer), o.positions, o.kind_of(with_cross == Cross::yes), rng.at("self"))),
      self_norm(norm_of(o)),
      ffn(o.ffn_kind, o.hidden, o.ffn, o.hidden, rng.at("ffn"), o.activation, bias_if(o.ffn_bias)),
      ffn_norm(norm_of(o)),
      norm(o.norm),
      dropout(o.dropout),
      self_dropout(o.self_dropout.value_or(o.dropout)),
      inner_dropout(o.inner_dropout) {
  if (with_cross == Cross::no) return;
  cross = heads(o, o.heads_of(AttentionPart::cross, layer), PositionKind::none, {}, rng.at("cross"));
  cross_norm = norm_of(o);
}

Tensor TransformerBlock::self_part(const Tensor& x, const Mask& mask, const Run& run, KeyValues* kept) const {
  return residual(x, self_norm, norm, self_dropout, run.at("self_norm"), [&](const Tensor& in) {
    const KeyValues seen = self.project(in, in);
    if (kept) *kept = seen;
    return self(in, seen, mask, run.at("self"));
  });
}

Tensor TransformerBlock::cross_part(const Tensor& x, const KeyValues& memory, const Mask& mask, const Run& run) const {
  return residual(x, cross_norm, norm, dropout, run.at("cross_norm"),
                  [&](const Tensor& in) { return (*cross)(in, memory, mask, run.at("cross")); });
}

Tensor TransformerBlock::ffn_part(const Tensor& x, const Run& run) const {
  return residual(x, ffn_norm, norm, dropout, run.at("ffn_norm"), [&](const Tensor& in) { return ffn_of(in, run); });
}

Tensor TransformerBlock::ffn_of(const Tensor& x, const Run& run) const {
  if (inner_dropout == 0) return ffn(x);
  return ffn.last()(qkv::dropout(ffn.hidden(x), inner_dropout, run.at("ffn")));
}

Tensor TransformerBlock::first_token(const Tensor& x, const Run& run) const {
  const Tensor in = norm == NormPlace::pre ? self_norm(x) : x, first = slice(x, 1, 0, 1);
  const Tensor seen =
      self(norm == NormPlace::pre ? slice(in, 1, 0, 1) : first, self.project(in, in), Mask::none(), run.at("self"));
  if (norm == NormPlace::post) return ffn_part(self_norm(first, seen, self_dropout, run.at("self_norm")), run);
  return ffn_part(add(first, qkv::dropout(seen, self_dropout, run.at("self_norm"))), run);
}

Tensor TransformerBlock::operator()(const Tensor& x, const Mask& mask, const KeyValues& memory, const Mask& memory_mask,
                                    const Run& run, KeyValues* kept) const {
  Tensor y = self_part(x, mask, run, kept);
  if (cross) y = cross_part(y, memory, memory_mask, run);
  return ffn_part(y, run);
}

Tensor TransformerBlock::recomputed(const Tensor& x, const Mask& mask, const Tensor& memory, const Mask& memory_mask,
                                    const Run& run) const {
  Tensor y = qkv::recomputed({x}, weights_of(self, self_norm), [this, mask, run](Inputs in, Pass pass) {
    return self_part(in[0], mask, run_of(run, pass), nullptr);
  });
  if (cross)
    y = qkv::recomputed({y, memory}, weights_of(*cross, cross_norm), [this, memory_mask, run](Inputs in, Pass pass) {
      return cross_part(in[0], cross->project(in[1], in[1]), memory_mask, run_of(run, pass));
    });
  return qkv::recomputed({y}, weights_of(ffn, ffn_norm), [this, run](Inputs in, Pass) {
    return residual(in[0], ffn_norm, norm, dropout, run.at("ffn_norm"),
                    [&](const Tensor& x) { return inner_dropout == 0 ? in_stretches(ffn, x) : ffn_of(x, run); });
  });
}

TransformerStack::TransformerStack(const TransformerConfig& o, int64_t layers, Cross cross, const Rng& rng,
                                   AttentionPart self)
    : recompute(o.recompute) {
  check(o.hidden > 0 && o.ffn > 0, "[transformer] width and ffn must be positive, got ", o.hidden, " and ", o.ffn);
  check(o.heads > 0 && o.hidden % o.heads == 0, "[transformer] a width of ", o.hidden, " is not divisible by ", o.heads,
        " heads");
  for (int64_t i = 0; i < layers; ++i) blocks.emplace_back(o, cross, rng.at(static_cast<uint64_t>(i)), self, i);
  if (o.norm == NormPlace::pre) norm = norm_of(o);
  if (o.init == TransformerConfig::Init::gpt2)
    gpt2_matrices(*this, layers, rng.at("gpt2"), [](const std::string& name) {
      return name.ends_with(".to_out.weight") || name.ends_with(".ffn.second.weight") ||
             name.ends_with(".ffn.down.weight");
    });
  else if (o.init != TransformerConfig::Init::pytorch)
    xavier_matrices(*this, rng.at("xavier"));
}

// The first `count` blocks.
Tensor TransformerStack::through(const Tensor& x, size_t count, const Mask& mask, const Memory& memory,
                                 const Run& run) const {
  const bool twice = recompute && Tape::current();
  Tensor y = x;
  for (size_t i = 0; i < count; ++i) {
    const TransformerBlock& block = blocks[i];
    if (twice)
      y = block.recomputed(y, mask, memory.states, memory.mask, run.at(i));
    else
      y = block(y, mask, block.cross ? block.cross->project(memory.states, memory.states) : KeyValues{}, memory.mask,
                run.at(i));
  }
  return y;
}

Tensor TransformerStack::operator()(const Tensor& x, const Mask& mask, const Memory& memory, const Run& run) const {
  const Tensor y = through(x, blocks.size(), mask, memory, run);
  return norm ? (*norm)(y) : y;
}

Tensor TransformerStack::first_token(const Tensor& x, const Run& run) const {
  const bool whole = run.probe || blocks.empty();
  Tensor y = through(x, whole ? blocks.size() : blocks.size() - 1, Mask::none(), {}, run);
  y = whole ? slice(y, 1, 0, 1) : blocks.back().first_token(y, run.at(blocks.size() - 1));
  return norm ? (*norm)(y) : y;
}

}  // namespace qkv
