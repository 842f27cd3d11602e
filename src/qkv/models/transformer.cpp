// Encoder and decoder put together.
#include "qkv/models/transformer.h"

#include "qkv/core/check.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

Mask seen(const Ids& lens) { return lens.defined() ? Mask::valid_lens(lens) : Mask::none(); }

}  // namespace

TransformerEncoder::TransformerEncoder(const TransformerOptions& o, const Rng& rng)
    : embedding(o.source_vocabulary, o, rng.at("embedding")), stack(o, o.encoder_layers, Cross::no, rng) {}

Tensor TransformerEncoder::operator()(const Ids& ids, const Ids& lens, const Run& run) const {
  return stack(embedding(ids, 0, run.at("embedding")), seen(lens), {}, run);
}

ModelFacts TransformerOptions::facts() const {
  const int64_t shared = key_heads > 0 ? key_heads : heads;
  const std::string layers = encoder_layers == decoder_layers ? counted(decoder_layers, "layer") : text(encoder_layers, " + ", counted(decoder_layers, "layer"));
  ModelFacts out{.summary = text("transformer, ", layers, ", hidden ", width, ", ", counted(heads, "head"),
                                 shared == heads ? "" : text(" (", shared, " of keys)"), ", ffn ", ffn, ", positions ", positions, ", norm ", norm,
                                 ", attention ", scorer)};
  if (positions == PositionKind::learned) out.longest_input = max_positions;
  out.maps = {{"encoder", encoder_layers, heads}, {"decoder", decoder_layers, heads}, {"cross", decoder_layers, heads}};
  out.source_floats = out.written_floats = decoder_layers * 2 * (width / heads) * shared;  // keys and values
  return out;
}

std::vector<NamedShape> TransformerOptions::layout() const {
  return layout_of([&] { return Transformer(*this, Rng(0)); });
}

Transformer::Transformer(const TransformerOptions& o, const Rng& rng)
    : options(o), encoder(o, rng.at("encoder")), decoder(o, Cross::yes, rng.at("decoder")) {
  if (!o.tied) return;
  check(o.source_vocabulary == o.target_vocabulary, "[transformer] tied embeddings need one vocabulary, got ", o.source_vocabulary, " and ",
        o.target_vocabulary, " tokens");
  decoder.embedding.weight = decoder.output.weight = encoder.embedding.weight;
}

Tensor Transformer::features(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run, const Mask& mask) const {
  check(source.rank() == 2 && target_in.rank() == 2 && target_in.size(0) == source.size(0), "[transformer] source and target differ in rows: ",
        source.shape(), " and ", target_in.shape());
  return decoder.features(target_in, {encoder(source, source_lens, run.at("encoder")), seen(source_lens)}, run.at("decoder"), mask);
}

Tensor Transformer::logits(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run) const {
  return decoder.output(features(source, source_lens, target_in, run));
}

Transformer::State Transformer::start(const Ids& source, const Ids& source_lens, const Run& run) const {
  check(!source_lens.defined() || source_lens.shape() == Shape{source.size(0)}, "[transformer] lengths of shape ", source_lens.shape(), " for source ",
        source.shape());
  const TapePause pause;
  return decoder.start(source.size(0), encoder(source, source_lens, run.at("encoder")), source_lens);
}

}  // namespace qkv
