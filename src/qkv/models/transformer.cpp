// Encoder and decoder combined.
#include "qkv/models/transformer.h"

#include "qkv/core/check.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

Mask seen(const Ids& lens) { return lens.defined() ? Mask::valid_lens(lens) : Mask::none(); }

}  // namespace

TransformerEncoder::TransformerEncoder(const TransformerConfig& o, int64_t vocabulary, const Rng& rng)
    : embedding(vocabulary, o, rng.at("embedding")), stack(o, o.layers, Cross::no, rng) {}

Tensor TransformerEncoder::operator()(const Ids& ids, const Ids& lens, const Run& run) const {
  return stack(embedding(ids, 0, run.at("embedding")), seen(lens), {}, run);
}

ModelFacts TransformerConfig::facts() const {
  const int64_t shared = key_head_count(), depth = decoder_depth();
  const std::string sizes = layers == depth ? counted(layers, "layer") : text(layers, " + ", counted(depth, "layer"));
  ModelFacts out{.summary = text("transformer, ", sizes, ", hidden ", hidden, ", ", counted(heads, "head"),
                                 shared == heads ? "" : text(" (", shared, " of keys)"), ", ffn ", ffn, ", positions ",
                                 positions, ", norm ", norm, ", attention ", own_scorer ? "own" : name_of(attention))};
  if (positions == PositionKind::learned) out.longest_input = max_positions;
  out.maps = {{"encoder", layers, heads}, {"decoder", depth, heads}, {"cross", depth, heads}};
  out.source_floats = out.written_floats = depth * 2 * (hidden / heads) * shared;  // keys and values
  return out;
}

std::vector<NamedShape> TransformerConfig::layout(const VocabularySizes& words) const {
  return layout_of([&] { return Transformer(*this, words, Rng(0)); });
}

void TransformerConfig::check() const {
  qkv::check(hidden % heads == 0, "model.hidden ", hidden, " is not divisible by model.heads ", heads);
  qkv::check(heads % key_head_count() == 0, "model.heads ", heads, " is not a multiple of model.key_heads ",
             key_head_count());
  qkv::check(positions != PositionKind::rotary || hidden / heads % 2 == 0,
             "model.positions rotary needs heads of even width, but model.hidden ", hidden, " / model.heads ", heads,
             " is odd");
}

Transformer::Transformer(const TransformerConfig& o, const VocabularySizes& words, const Rng& rng)
    : config(o), encoder(o, words.source, rng.at("encoder")), decoder(o, words.target, Cross::yes, rng.at("decoder")) {
  if (!o.tied) return;
  check(words.source == words.target, "[transformer] tied embeddings need one vocabulary, got ", words.source, " and ",
        words.target, " tokens");
  decoder.embedding.weight = decoder.output.weight = encoder.embedding.weight;
}

Tensor Transformer::features(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run,
                             const Mask& mask) const {
  check(source.rank() == 2 && target_in.rank() == 2 && target_in.size(0) == source.size(0),
        "[transformer] source and target differ in rows: ", source.shape(), " and ", target_in.shape());
  return decoder.features(target_in, {encoder(source, source_lens, run.at("encoder")), seen(source_lens)},
                          run.at("decoder"), mask);
}

Tensor Transformer::logits(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run) const {
  return decoder.output(features(source, source_lens, target_in, run));
}

Transformer::State Transformer::start(const Ids& source, const Ids& source_lens, const Run& run) const {
  check(!source_lens.defined() || source_lens.shape() == Shape{source.size(0)}, "[transformer] lengths have shape ",
        source_lens.shape(), " for source ", source.shape());
  const TapePause pause;
  return decoder.start(source.size(0), encoder(source, source_lens, run.at("encoder")), source_lens);
}

}  // namespace qkv
