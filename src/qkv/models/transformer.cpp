// Blocks put together, with and without a cache.
#include "qkv/models/transformer.h"

#include <cmath>

#include "qkv/attention/positions.h"
#include "qkv/core/check.h"
#include "qkv/nn/init.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/feed_forward.h"
#include "qkv/ops/recompute.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kReadyPositions = 256;

// Positions inside attention are for a sequence that attends to itself: between two sequences distance means nothing.
MultiHead heads(const TransformerOptions& o, PositionKind positions, const Rng& rng) {
  return MultiHead({.width = o.width, .heads = o.heads, .key_heads = o.key_heads, .scorer = o.scorer, .bias = o.bias,
                    .dropout = o.attention_dropout, .positions = positions, .max_distance = o.max_distance},
                   rng);
}

FeedForward feed_forward(const TransformerOptions& o, const Rng& rng) { return FeedForward(o.width, o.ffn, o.width, rng, o.activation); }

// x and what a sublayer makes of it. Post-norm: LN(x + dropout(f(x))); pre-norm: x + dropout(f(LN(x))).
template <class Sublayer>
Tensor residual(const Tensor& x, const LayerNorm& norm, NormPlace place, float rate, const Run& run, const Sublayer& f) {
  if (place == NormPlace::post) return norm(x, f(x), rate, run);
  return add(x, dropout(f(norm(x)), rate, run));
}

// Every linear layer's matrix anew, as the book's init_weights does.
template <class Module>
void init_xavier(Module& module, const Rng& rng) {
  each_tensor(module, [&](const std::string& name, Tensor& t) {
    if (t.rank() == 2 && name.ends_with(".weight") && !name.ends_with("embedding.weight")) t = parameter(xavier_uniform(t.shape(), rng.at(name)));
  });
}

// The same as ffn(x) in less memory and a little more time.
Tensor in_stretches(const FeedForward& ffn, const Tensor& x) {
  return feed_forward(x, ffn.first.weight, ffn.first.bias, ffn.second.weight, ffn.second.bias, ffn.activation);
}

// The parameters of a sublayer and of its norm.
template <class Sublayer>
std::vector<Tensor> weights_of(const Sublayer& sublayer, const LayerNorm& norm) {
  std::vector<Tensor> out{norm.gamma, norm.beta};
  for (const NamedTensor& p : parameters(sublayer)) out.push_back(p.tensor);
  return out;
}

// A probe sees the first pass alone.
Run run_of(const Run& run, Pass pass) {
  Run out = run;
  if (pass == Pass::again) out.probe = nullptr;
  return out;
}

Tensor appended(const Tensor& past, const Tensor& next) { return past.defined() ? concat({past, next}, 1) : next; }

void check_options(const TransformerOptions& o) {
  check(o.width > 0 && o.ffn > 0, "[transformer] width and ffn must be positive, got ", o.width, " and ", o.ffn);
  check(o.heads > 0 && o.width % o.heads == 0, "[transformer] a width of ", o.width, " is not divisible by ", o.heads, " heads");
  check(o.positions != PositionKind::learned || o.max_positions > 0, "[transformer] a learned table needs at least one position, got ",
        o.max_positions);
}

}  // namespace

EncoderBlock::EncoderBlock(const TransformerOptions& o, const Rng& rng)
    : self(heads(o, o.positions, rng.at("self"))), self_norm(o.width), ffn(feed_forward(o, rng.at("ffn"))), ffn_norm(o.width), norm(o.norm),
      dropout(o.dropout) {}

Tensor EncoderBlock::self_part(const Tensor& x, const Mask& mask, const Run& run) const {
  return residual(x, self_norm, norm, dropout, run.at("self_norm"),
                  [&](const Tensor& in) { return self(in, in, in, mask, run.at("self")); });
}

Tensor EncoderBlock::ffn_part(const Tensor& x, const Run& run) const {
  return residual(x, ffn_norm, norm, dropout, run.at("ffn_norm"), [&](const Tensor& in) { return ffn(in); });
}

Tensor EncoderBlock::operator()(const Tensor& x, const Mask& mask, const Run& run) const { return ffn_part(self_part(x, mask, run), run); }

Tensor EncoderBlock::recomputed(const Tensor& x, const Mask& mask, const Run& run) const {
  using In = std::span<const Tensor>;
  const Tensor y = qkv::recomputed({x}, weights_of(self, self_norm), [this, mask, run](In in, Pass pass) { return self_part(in[0], mask, run_of(run, pass)); });
  return qkv::recomputed({y}, weights_of(ffn, ffn_norm), [this, run](In in, Pass) {
    return residual(in[0], ffn_norm, norm, dropout, run.at("ffn_norm"), [&](const Tensor& x) { return in_stretches(ffn, x); });
  });
}

DecoderBlock::DecoderBlock(const TransformerOptions& o, Alone alone, const Rng& rng)
    : self(heads(o, o.positions, rng.at("self"))), self_norm(o.width), ffn(feed_forward(o, rng.at("ffn"))), ffn_norm(o.width), norm(o.norm),
      dropout(o.dropout) {
  if (alone == Alone::yes) return;
  cross = heads(o, PositionKind::none, rng.at("cross"));
  cross_norm = LayerNorm(o.width);
}

Tensor DecoderBlock::self_part(const Tensor& x, KeyValues* past, const Run& run) const {
  const int64_t before = past && past->k.defined() ? past->k.size(1) : 0;
  return residual(x, self_norm, norm, dropout, run.at("self_norm"), [&](const Tensor& in) {
    KeyValues seen = self.project(in, in, before);
    if (past) *past = seen = {appended(past->k, seen.k), appended(past->v, seen.v)};
    return self(in, seen, Mask::causal(before), run.at("self"), before);
  });
}

Tensor DecoderBlock::cross_part(const Tensor& x, const KeyValues& memory, const Mask& mask, const Run& run) const {
  return residual(x, cross_norm, norm, dropout, run.at("cross_norm"),
                  [&](const Tensor& in) { return (*cross)(in, memory, mask, run.at("cross")); });
}

Tensor DecoderBlock::ffn_part(const Tensor& x, const Run& run) const {
  return residual(x, ffn_norm, norm, dropout, run.at("ffn_norm"), [&](const Tensor& in) { return ffn(in); });
}

Tensor DecoderBlock::operator()(const Tensor& x, KeyValues* past, const KeyValues& memory, const Mask& memory_mask, const Run& run) const {
  Tensor y = self_part(x, past, run);
  if (cross) y = cross_part(y, memory, memory_mask, run);
  return ffn_part(y, run);
}

Tensor DecoderBlock::recomputed(const Tensor& x, const Tensor& memory, const Mask& memory_mask, const Run& run) const {
  using In = std::span<const Tensor>;
  Tensor y = qkv::recomputed({x}, weights_of(self, self_norm), [this, run](In in, Pass pass) { return self_part(in[0], nullptr, run_of(run, pass)); });
  if (cross)
    y = qkv::recomputed({y, memory}, weights_of(*cross, cross_norm), [this, memory_mask, run](In in, Pass pass) {
      return cross_part(in[0], cross->project(in[1], in[1]), memory_mask, run_of(run, pass));
    });
  return qkv::recomputed({y}, weights_of(ffn, ffn_norm), [this, run](In in, Pass) {
    return residual(in[0], ffn_norm, norm, dropout, run.at("ffn_norm"), [&](const Tensor& x) { return in_stretches(ffn, x); });
  });
}

TokenEmbedding::TokenEmbedding(int64_t vocabulary, const TransformerOptions& o, const Rng& rng) : kind(o.positions), dropout(o.dropout) {
  check(vocabulary > 0, "[transformer] a vocabulary needs at least one token, got ", vocabulary);
  const float size = o.init == TransformerOptions::Init::scaled ? 1 / std::sqrt(static_cast<float>(o.width)) : 1;
  weight = parameter(normal({vocabulary, o.width}, rng.at("weight"), 0, size));
  if (kind == PositionKind::sinusoidal) waves = sinusoidal_positions(kReadyPositions, o.width);
  if (kind == PositionKind::learned) positions = parameter(normal({o.max_positions, o.width}, rng.at("positions"), 0, 0.02f));
}

Tensor TokenEmbedding::operator()(const Ids& ids, int64_t offset, const Run& run) const {
  check(ids.rank() == 2, "[transformer] expected ids of shape (B, n), got ", ids.shape());
  const int64_t width = weight.size(1), count = ids.size(1);
  Tensor place;
  if (kind == PositionKind::sinusoidal)
    place = offset + count <= waves.size(0) ? slice(waves, 0, offset, offset + count) : sinusoidal_positions(count, width, offset);
  if (kind == PositionKind::learned) {
    check(offset + count <= positions.size(0), "[transformer] position ", offset + count - 1, " is past the learned table of ",
          positions.size(0), " positions");
    place = slice(positions, 0, offset, offset + count);
  }
  return embedding_scaled_position(weight, ids, std::sqrt(static_cast<float>(width)), place, dropout, run);
}

TransformerEncoder::TransformerEncoder(const TransformerOptions& o, const Rng& rng)
    : embedding(o.source_vocabulary, o, rng.at("embedding")), recompute(o.recompute) {
  check_options(o);
  for (int64_t i = 0; i < o.encoder_layers; ++i) blocks.emplace_back(o, rng.at(static_cast<uint64_t>(i)));
  if (o.norm == NormPlace::pre) norm = LayerNorm(o.width);
  if (o.init != TransformerOptions::Init::pytorch) init_xavier(*this, rng.at("xavier"));
}

Tensor TransformerEncoder::operator()(const Ids& ids, const Ids& lens, const Run& run) const {
  const Mask mask = lens.defined() ? Mask::valid_lens(lens) : Mask::none();
  Tensor x = embedding(ids, 0, run.at("embedding"));
  const bool twice = recompute && Tape::current();
  for (size_t i = 0; i < blocks.size(); ++i) x = twice ? blocks[i].recomputed(x, mask, run.at(i)) : blocks[i](x, mask, run.at(i));
  return norm ? (*norm)(x) : x;
}

TransformerDecoder::TransformerDecoder(const TransformerOptions& o, DecoderBlock::Alone alone, const Rng& rng)
    : embedding(o.target_vocabulary, o, rng.at("embedding")), recompute(o.recompute), output(o.width, o.target_vocabulary, rng.at("output")) {
  check_options(o);
  for (int64_t i = 0; i < o.decoder_layers; ++i) blocks.emplace_back(o, alone, rng.at(static_cast<uint64_t>(i)));
  if (o.norm == NormPlace::pre) norm = LayerNorm(o.width);
  if (o.init != TransformerOptions::Init::pytorch) init_xavier(*this, rng.at("xavier"));
  if (o.tied) output.weight = embedding.weight;
}

Tensor TransformerDecoder::features(const Ids& ids, const Tensor& memory, const Ids& memory_lens, const Run& run) const {
  const Mask mask = memory_lens.defined() ? Mask::valid_lens(memory_lens) : Mask::none();
  Tensor x = embedding(ids, 0, run.at("embedding"));
  for (size_t i = 0; i < blocks.size(); ++i) {
    const DecoderBlock& block = blocks[i];
    if (recompute && Tape::current()) x = block.recomputed(x, memory, mask, run.at(i));
    else x = block(x, nullptr, block.cross ? block.cross->project(memory, memory) : KeyValues{}, mask, run.at(i));
  }
  return norm ? (*norm)(x) : x;
}

Transformer::Transformer(const TransformerOptions& o, const Rng& rng)
    : options(o), encoder(o, rng.at("encoder")), decoder(o, DecoderBlock::Alone::no, rng.at("decoder")) {
  if (!o.tied) return;
  check(o.source_vocabulary == o.target_vocabulary, "[transformer] tied embeddings need one vocabulary, got ", o.source_vocabulary, " and ",
        o.target_vocabulary, " tokens");
  decoder.embedding.weight = decoder.output.weight = encoder.embedding.weight;
}

Tensor Transformer::features(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run) const {
  check(source.rank() == 2 && target_in.rank() == 2 && target_in.size(0) == source.size(0), "[transformer] source and target differ in rows: ",
        source.shape(), " and ", target_in.shape());
  return decoder.features(target_in, encoder(source, source_lens, run.at("encoder")), source_lens, run.at("decoder"));
}

Tensor Transformer::logits(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run) const {
  return decoder.output(features(source, source_lens, target_in, run));
}

}  // namespace qkv
