// The embedding of an encoder, its stack and its heads.
#include "qkv/models/text_encoder.h"

#include "qkv/core/check.h"
#include "qkv/nn/init.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/embedding.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

// Positions are part of the embedding.
TransformerConfig stack_of(const TextEncoderConfig& config) {
  TransformerConfig out = config.blocks;
  out.positions = PositionKind::none;
  return out;
}

Tensor table(int64_t rows, int64_t width, const Rng& rng) {
  return parameter(normal({rows, width}, rng, 0, kGpt2Deviation));
}

}  // namespace

ModelFacts TextEncoderConfig::facts() const {
  ModelFacts out{
      .summary = tr("text encoder, {layers}, hidden {hidden}, {heads}, ffn {ffn}, positions {positions}, "
                    "norm {norm}, attention {attention}",
                    "layers"_a = layer_count(blocks.layers), "hidden"_a = blocks.hidden,
                    "heads"_a = blocks.heads == 1 ? tr("1 head") : tr("{heads} heads", "heads"_a = blocks.heads),
                    "ffn"_a = blocks.ffn, "positions"_a = blocks.positions, "norm"_a = blocks.norm,
                    "attention"_a = blocks.attention),
      .longest_input = longest()};
  out.maps = {{"encoder", blocks.layers, blocks.heads}};
  return out;
}

EncoderEmbedding::EncoderEmbedding(const TextEncoderConfig& o, const Rng& rng)
    : words(table(o.words, o.blocks.hidden, rng.at("words"))),
      positions(table(o.blocks.max_positions, o.blocks.hidden, rng.at("positions"))),
      types(table(o.types, o.blocks.hidden, rng.at("types"))),
      norm(o.blocks.hidden, Linear::Bias::yes, o.blocks.norm_eps),
      first_position(o.first_position),
      dropout(o.blocks.dropout) {
  check(o.words > 0 && o.types > 0 && o.longest() > 0, "[text_encoder] expected words, types and positions, got ",
        o.words, ", ", o.types, " and ", o.longest());
}

Tensor EncoderEmbedding::operator()(const Ids& ids, const Ids& kinds, const Run& run) const {
  check(ids.rank() == 2, "[text_encoder] expected ids of shape (B, n), got ", ids.shape());
  const int64_t n = ids.size(1), most = positions.size(0) - first_position;
  check(n <= most, "[text_encoder] a text of ", n, " tokens, but there are ", most, " positions");
  check(!kinds.defined() || kinds.shape() == ids.shape(), "[text_encoder] ids ", ids.shape(), ", but types ",
        kinds.shape());
  const Tensor placed = embedding_scaled_position(
      words, ids, 1, slice(positions, 0, first_position, first_position + n), 0, run.at("positions"));
  const Tensor kind = kinds.defined()
                          ? qkv::embedding(types, kinds)
                          : qkv::embedding(types, Ids(ids.shape(), std::vector<int32_t>(ids.data().size())));
  return qkv::dropout(norm(placed, kind, 0, run.at("norm")), dropout, run.at("dropout"));
}

TextEncoder::TextEncoder(const TextEncoderConfig& o, const Rng& rng)
    : config(o),
      embedding(o, rng.at("embedding")),
      stack(stack_of(o), o.blocks.layers, Cross::no, rng.at("stack"), AttentionPart::encoder) {}

Tensor TextEncoder::operator()(const Ids& ids, const Ids& types, const Ids& lens, const Run& run) const {
  return stack(embedding(ids, types, run.at("embedding")), lens.defined() ? Mask::valid_lens(lens) : Mask::none(), {},
               run.at("encoder"));
}

WordHead::WordHead(const TextEncoderConfig& o, const Rng& rng)
    : transform(o.blocks.hidden, o.blocks.hidden, rng.at("transform")),
      activation(o.blocks.activation),
      norm(o.blocks.hidden, Linear::Bias::yes, o.blocks.norm_eps),
      output(o.blocks.hidden, o.words, rng.at("output")) {}

ClassHead::ClassHead(const TextEncoderConfig& o, int64_t classes, const Rng& rng)
    : dense(o.blocks.hidden, o.blocks.hidden, rng.at("dense")),
      output(o.blocks.hidden, classes, rng.at("output")),
      dropout(o.blocks.dropout) {}

Tensor ClassHead::operator()(const Tensor& states, const Run& run) const {
  const Tensor first = reshape(slice(states, 1, 0, 1), {states.size(0), states.size(2)});
  return output(qkv::dropout(dense(first, Activation::tanh), dropout, run.at("dropout")));
}

}  // namespace qkv
