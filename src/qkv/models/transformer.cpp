// Encoder and decoder combined.
#include "qkv/models/transformer.h"

#include "qkv/core/check.h"
#include "qkv/tensor/present.h"
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
  const Text sizes = layers == depth
                         ? layer_count(layers)
                         : tr("{encoder} + {decoder}", "encoder"_a = layers, "decoder"_a = layer_count(depth));
  const Text all_heads = heads == 1 ? tr("1 head") : tr("{heads} heads", "heads"_a = heads);
  ModelFacts out{
      .summary =
          tr("transformer, {layers}, hidden {hidden}, {heads}, ffn {ffn}, positions {positions}, norm {norm}, "
             "attention {attention}",
             "layers"_a = sizes, "hidden"_a = hidden,
             "heads"_a = shared == heads ? all_heads
                                         : tr("{heads} ({shared} of keys)", "heads"_a = all_heads, "shared"_a = shared),
             "ffn"_a = ffn, "positions"_a = positions, "norm"_a = norm,
             "attention"_a = own_scorer ? "own" : name_of(attention))};
  if (positions == PositionKind::learned) out.longest_input = max_positions;
  out.maps = {{"encoder", layers, heads}, {"decoder", depth, heads}, {"cross", depth, heads}};
  out.source_floats = out.written_floats = depth * 2 * (hidden / heads) * shared;  // keys and values
  return out;
}

std::vector<NamedShape> TransformerConfig::layout(const VocabularySizes& words) const {
  return layout_of([&] { return Transformer(*this, words, Rng(0)); });
}

void TransformerConfig::check() const {
  require(hidden % heads == 0, "model.hidden {hidden} is not divisible by model.heads {heads}", "hidden"_a = hidden,
          "heads"_a = heads);
  require(heads % key_head_count() == 0, "model.heads {heads} is not a multiple of model.key_heads {key_heads}",
          "heads"_a = heads, "key_heads"_a = key_head_count());
  require(positions != PositionKind::rotary || hidden / heads % 2 == 0,
          "model.positions rotary needs heads of even width, but model.hidden {hidden} / model.heads {heads} is odd",
          "hidden"_a = hidden, "heads"_a = heads);
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
  check_present("transformer", source, "source");
  check_present("transformer", target_in, "target_in");
  check(source.rank() == 2 && target_in.rank() == 2 && target_in.size(0) == source.size(0),
        "[transformer] source and target differ in rows: ", source.shape(), " and ", target_in.shape());
  return decoder.features(target_in, {encoder(source, source_lens, run.at("encoder")), seen(source_lens)},
                          run.at("decoder"), mask);
}

Tensor Transformer::logits(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run) const {
  return decoder.output(features(source, source_lens, target_in, run));
}

Transformer::State Transformer::start(const Ids& source, const Ids& source_lens, const Run& run) const {
  check_present("transformer", source, "source");
  check(!source_lens.defined() || source_lens.shape() == Shape{source.size(0)}, "[transformer] lengths have shape ",
        source_lens.shape(), " for source ", source.shape());
  const TapePause pause;
  return decoder.start(source.size(0), encoder(source, source_lens, run.at("encoder")), source_lens);
}

}  // namespace qkv
