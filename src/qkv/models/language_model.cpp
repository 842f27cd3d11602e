// The stacks of a language model, and facts about it.
#include "qkv/models/language_model.h"

#include "qkv/core/check.h"

namespace qkv {

TransformerConfig LanguageModelConfig::stacks() const {
  TransformerConfig out = transformer;
  const int64_t written = hidden_of(context) + spans_of(context) + 1;  // by the decoder of spans
  out.max_positions = objective == LanguageObjective::spans ? std::max(context, written) : context;
  return out;
}

ModelFacts LanguageModelConfig::facts() const {
  ModelFacts out = stacks().facts();
  out.summary = tr("language model ({objective}) of {context} tokens: {model}", "objective"_a = objective,
                   "context"_a = context, "model"_a = out.summary);
  out.longest_input = context;
  if (objective != LanguageObjective::spans) {
    MapGroup group = out.maps[1];
    group.name = objective == LanguageObjective::causal ? "decoder" : "encoder";
    out.maps = {std::move(group)};
    out.source_floats = 0;
  }
  return out;
}

std::vector<NamedShape> LanguageModelConfig::layout(int64_t tokens) const {
  return layout_of([&] { return LanguageModel(*this, tokens, Rng(0)); });
}

void LanguageModelConfig::check() const {
  stacks().check();
  const AttentionKindOptions& kind = transformer.kind;
  require(objective != LanguageObjective::causal || can_be_causal(kind.kind),
          "model.attention_kind {kind} mixes all positions and has no causal form: expected model.objective masked or "
          "spans",
          "kind"_a = kind.kind);
  require(!(kind.kind == AttentionKind::window || kind.kind == AttentionKind::dilated) || kind.window <= context,
          "model.window {window} is wider than the text: model.context is {context}", "window"_a = kind.window,
          "context"_a = context);
  require(kind.kind != AttentionKind::block_sparse || kind.block <= context,
          "model.block {block} is longer than the text: model.context is {context}", "block"_a = kind.block,
          "context"_a = context);
  require(kind.kind != AttentionKind::nystrom || kind.landmarks <= context,
          "model.landmarks {landmarks} are more than the tokens of the text: model.context is {context}",
          "landmarks"_a = kind.landmarks, "context"_a = context);
  require(objective == LanguageObjective::spans || !transformer.decoder_layers,
          "model.decoder_layers is for model.objective spans, which has an encoder and a decoder; this one is "
          "{objective}",
          "objective"_a = objective);
  require(mask_random + mask_kept <= 1,
          "model.mask_random {random} and model.mask_kept {kept} are more than 1 together", "random"_a = mask_random,
          "kept"_a = mask_kept);
}

LanguageModel::LanguageModel(const LanguageModelConfig& c, int64_t count, const Rng& rng) : config(c), tokens(count) {
  const int64_t vocabulary = count + c.special_tokens();
  if (c.objective == LanguageObjective::spans)
    pair = Transformer(c.stacks(), {vocabulary, vocabulary}, rng);
  else
    single = TransformerDecoder(c.stacks(), vocabulary, Cross::no, rng);
}

Tensor LanguageModel::features(const Ids& ids, const Run& run) const {
  qkv::check(single.has_value(), "[language_model] this model reads one text and writes another: pass both");
  const bool causal = config.objective == LanguageObjective::causal;
  return single->features(ids, {}, run.at(causal ? "decoder" : "encoder"), causal ? Mask::causal() : Mask::none());
}

Tensor LanguageModel::features(const Ids& read, const Ids& written, const Run& run) const {
  qkv::check(pair.has_value(), "[language_model] this model has no encoder: it reads one text");
  return pair->features(read, {}, written, run);
}

}  // namespace qkv
