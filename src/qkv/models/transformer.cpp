// Encoder and decoder combined.
#include "qkv/models/transformer.h"

#include <algorithm>
#include <sstream>

#include "qkv/core/check.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

// "4 2 3" as numbers.
std::vector<int64_t> counts_of(const std::string& words) {
  std::istringstream in(words);
  std::vector<int64_t> out;
  for (int64_t count; in >> count;) out.push_back(count);
  return out;
}

// As many numbers as there are layers, each a number of heads.
void check_counts(const TransformerConfig& o, std::string_view key, const std::string& words, int64_t layers) {
  if (words.empty()) return;
  const std::vector<int64_t> counts = counts_of(words);
  const bool numbers = words.find_first_not_of("0123456789 ") == std::string::npos;
  require(numbers && std::ssize(counts) == layers, "model.{key} is \"{words}\", expected {layers} numbers of heads",
          "key"_a = key, "words"_a = words, "layers"_a = layers);
  for (const int64_t count : counts)
    require(count >= 1 && count <= o.heads && count % o.shared_heads() == 0,
            "model.{key} has {count} heads in a layer, expected 1 to {heads}{unit}", "key"_a = key, "count"_a = count,
            "heads"_a = o.heads,
            "unit"_a = o.shared_heads() == 1 ? Text() : tr(", a multiple of {shared}", "shared"_a = o.shared_heads()));
}

MapGroup map_group(const TransformerConfig& o, std::string_view name, AttentionPart part, int64_t layers) {
  MapGroup out{.name = name, .layers = layers, .heads = 0};
  for (int64_t layer = 0; layer < layers; ++layer) {
    out.per_layer.push_back(o.heads_of(part, layer));
    out.heads = std::max(out.heads, out.per_layer.back());
  }
  return out;
}

Mask seen(const Ids& lens) { return lens.defined() ? Mask::valid_lens(lens) : Mask::none(); }

}  // namespace

TransformerEncoder::TransformerEncoder(const TransformerConfig& o, int64_t vocabulary, const Rng& rng)
    : embedding(vocabulary, o, rng.at("embedding")), stack(o, o.layers, Cross::no, rng, AttentionPart::encoder) {}

Tensor TransformerEncoder::operator()(const Ids& ids, const Ids& lens, const Run& run) const {
  return stack(embedding(ids, 0, run.at("embedding")), seen(lens), {}, run);
}

ModelFacts TransformerConfig::facts() const {
  const int64_t shared = key_head_count(), depth = decoder_depth();
  const Text sizes = layers == depth
                         ? layer_count(layers)
                         : tr("{encoder} + {decoder}", "encoder"_a = layers, "decoder"_a = layer_count(depth));
  const Text all_heads = heads == 1 ? tr("1 head") : tr("{heads} heads", "heads"_a = heads);
  const std::string_view scorer = own_scorer ? "own" : name_of(attention);
  const Text scores = kind.kind == AttentionKind::exact
                          ? verbatim(std::string(scorer))
                          : tr("{scorer} ({kind})", "scorer"_a = scorer, "kind"_a = kind.kind);
  ModelFacts out{
      .summary =
          tr("transformer, {layers}, hidden {hidden}, {heads}, ffn {ffn}, positions {positions}, norm {norm}, "
             "attention {attention}",
             "layers"_a = sizes, "hidden"_a = hidden,
             "heads"_a = shared == heads ? all_heads
                                         : tr("{heads} ({shared} of keys)", "heads"_a = all_heads, "shared"_a = shared),
             "ffn"_a = ffn, "positions"_a = positions, "norm"_a = norm, "attention"_a = scores)};
  if (positions == PositionKind::learned || kind.kind == AttentionKind::linformer) out.longest_input = max_positions;
  out.maps = {map_group(*this, "encoder", AttentionPart::encoder, layers),
              map_group(*this, "decoder", AttentionPart::decoder, depth),
              map_group(*this, "cross", AttentionPart::cross, depth)};
  const int64_t floats = 2 * (hidden / heads);  // a key and a value
  for (int64_t layer = 0; layer < depth; ++layer) {
    out.source_floats += floats * heads_of(AttentionPart::cross, layer) / shared_heads();
    out.written_floats += floats * heads_of(AttentionPart::decoder, layer) / shared_heads();
  }
  return out;
}

std::vector<NamedShape> TransformerConfig::layout(const VocabularySizes& words) const {
  return layout_of([&] { return Transformer(*this, words, Rng(0)); });
}

int64_t TransformerConfig::heads_of(AttentionPart part, int64_t layer) const {
  const std::string& words = part == AttentionPart::encoder   ? encoder_heads
                             : part == AttentionPart::decoder ? decoder_heads
                                                              : cross_heads;
  if (words.empty()) return heads;
  const std::vector<int64_t> counts = counts_of(words);
  qkv::check(layer < std::ssize(counts), "[transformer] heads are given for ", counts.size(), " layers, not for layer ",
             layer);
  return counts[static_cast<size_t>(layer)];
}

void TransformerConfig::set_heads(AttentionPart part, const std::vector<int64_t>& counts) {
  std::string words;
  for (const int64_t count : counts) words += (words.empty() ? "" : " ") + std::to_string(count);
  if (std::ranges::all_of(counts, [&](int64_t count) { return count == heads; })) words.clear();
  (part == AttentionPart::encoder   ? encoder_heads
   : part == AttentionPart::decoder ? decoder_heads
                                    : cross_heads) = words;
}

AttentionKindOptions TransformerConfig::kind_of(bool causal) const {
  AttentionKindOptions out = kind;
  if (causal && !can_be_causal(kind.kind)) out.kind = AttentionKind::exact;
  out.positions = max_positions;
  return out;
}

void TransformerConfig::check() const {
  require(kind.kind == AttentionKind::exact || (attention == ScorerKind::scaled_dot && !own_scorer),
          "model.attention_kind {kind} needs model.attention scaled-dot, but it is {attention}", "kind"_a = kind.kind,
          "attention"_a = own_scorer ? "own" : name_of(attention));
  require(
      kind.kind == AttentionKind::exact || (positions != PositionKind::relative && positions != PositionKind::alibi),
      "model.attention_kind {kind} computes no scores that model.positions {positions} could be added to",
      "kind"_a = kind.kind, "positions"_a = positions);
  require(kind.kind != AttentionKind::linformer || kind.rank <= max_positions,
          "model.rank {rank} is more than the {positions} positions of the longest text", "rank"_a = kind.rank,
          "positions"_a = max_positions);
  require(hidden % heads == 0, "model.hidden {hidden} is not divisible by model.heads {heads}", "hidden"_a = hidden,
          "heads"_a = heads);
  require(heads % key_head_count() == 0, "model.heads {heads} is not a multiple of model.key_heads {key_heads}",
          "heads"_a = heads, "key_heads"_a = key_head_count());
  const bool pruned = !encoder_heads.empty() || !decoder_heads.empty() || !cross_heads.empty();
  check_counts(*this, "encoder_heads", encoder_heads, layers);
  check_counts(*this, "decoder_heads", decoder_heads, decoder_depth());
  check_counts(*this, "cross_heads", cross_heads, decoder_depth());
  require(!pruned || positions != PositionKind::alibi,
          "model.positions alibi gives every head a slope by its number: layers cannot differ in heads");
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

Transformer::State Transformer::start(const Ids& source, const Ids& source_lens, const Run& run,
                                      const std::shared_ptr<const StepWeights>& ready) const {
  check_present("transformer", source, "source");
  check(!source_lens.defined() || source_lens.shape() == Shape{source.size(0)}, "[transformer] lengths have shape ",
        source_lens.shape(), " for source ", source.shape());
  const TapePause pause;
  return decoder.start(source.size(0), encoder(source, source_lens, run.at("encoder")), source_lens, ready);
}

}  // namespace qkv
