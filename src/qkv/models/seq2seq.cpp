// Encoder and decoder combined. Scores from projections, tanh and dot products run as one op over all
// steps; the cosine runs step by step.
#include "qkv/models/seq2seq.h"

#include <algorithm>
#include <optional>

#include "qkv/attention/attend.h"
#include "qkv/models/rows.h"
#include "qkv/nn/init.h"
#include "qkv/ops/attention_decoder.h"
#include "qkv/ops/dropout.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/probe.h"

namespace qkv {
namespace {

Linear xavier_linear(int64_t in, int64_t out, const Rng& rng) {
  Linear layer(in, out, rng);
  layer.weight = parameter(xavier_uniform({out, in}, rng.at("weight")));
  return layer;
}

void check_source(const Ids& source, const Ids& lens) {
  check(source.rank() == 2, "[seq2seq] expected source ids of shape (B, S), got ", source.shape());
  check(!lens.defined() || lens.shape() == Shape{source.size(0)}, "[seq2seq] source lengths have shape ", lens.shape(),
        " for source ids ", source.shape());
}

// q (B, 1, H), keys (B, S, ...) from keys_of.
Attended attend_with(const Seq2Seq& m, const Tensor& q, const Tensor& keys, const Tensor& values, const Ids& lens,
                     const Run& run) {
  const Mask mask = lens.defined() ? Mask::valid_lens(lens) : Mask::none();
  const AttendOptions how{.dropout = m.config.dropout};
  const AnyScorer& scorer = m.decoder.attention;
  if (const auto* additive = scorer.as<Additive>())
    return attend(additive->on_projected(), q, keys, values, mask, run, how);
  return attend(scorer, q, keys, values, mask, run, how);
}

// 1 for steps within a row's length, 0 beyond it: (B, T, 1).
Tensor step_mask(const Ids& lens, int64_t steps) {
  Tensor mask = Tensor::empty({lens.size(0), steps, 1});
  for (int64_t b = 0; b < lens.size(0); ++b)
    for (int64_t t = 0; t < steps; ++t) mask.mutable_ptr()[b * steps + t] = t < lens.ptr()[b] ? 1.f : 0.f;
  return mask;
}

bool is_edited(const Run& run) { return run.probe && run.probe->edits(run.path); }

// Edits as another probe does, but shows it nothing: it gets all steps at once.
class EditsOnly : public Probe {
 public:
  explicit EditsOnly(Probe& probe) : probe_(probe) {}
  void attention(std::string_view, const Weights&) override {}
  bool edits(std::string_view path) const override { return probe_.edits(path); }
  void edit(std::string_view path, EditableWeights& weights) override { probe_.edit(path, weights); }

 private:
  Probe& probe_;
};

void show(const Run& run, const Tensor& weights) {  // (B, T, S)
  if (!run.probe) return;
  const TapePause pause;
  run.probe->attention(run.path, Weights(weights.viewed({weights.size(0), 1, weights.size(1), weights.size(2)})));
}

}  // namespace

ModelFacts Seq2SeqConfig::facts() const {
  const Text encoder = bidirectional ? tr("bidirectional {cell}", "cell"_a = cell) : verbatim(text(cell));
  ModelFacts out{.summary = tr("seq2seq, {cell}, {layers}, hidden {hidden}, embed {embed}, attention {attention}",
                               "cell"_a = encoder, "layers"_a = layer_count(layers), "hidden"_a = hidden,
                               "embed"_a = embed, "attention"_a = attention)};
  out.reads_padding = !skip_padding;
  out.source_floats = encoder_width();  // states, or what attention averages
  if (attention == ScorerKind::none) return out;
  out.source_floats += attention == ScorerKind::additive ? hidden : encoder_width();  // keys
  out.maps = {{.name = "cross", .numbered = false}};
  return out;
}

std::vector<NamedShape> Seq2SeqConfig::layout(const VocabularySizes& words) const {
  return layout_of([&] { return Seq2Seq(*this, words, Rng(0)); });
}

void Seq2SeqConfig::check() const {
  require(!bidirectional || !facts_of(attention).equal_widths,
          "model.attention {attention} needs states of equal width, but model.bidirectional is true",
          "attention"_a = attention);
}

Seq2Seq::Seq2Seq(const Seq2SeqConfig& o, const VocabularySizes& words, const Rng& rng) : config(o) {
  check(words.source > 0 && words.target > 0, "[seq2seq] vocabularies need at least one token, got ", words.source,
        " and ", words.target);
  check(o.embed > 0 && o.hidden > 0 && o.layers > 0, "[seq2seq] embed, hidden and layers must be positive, got ",
        o.embed, ", ", o.hidden, " and ", o.layers);
  const int64_t width = o.encoder_width();
  check(!facts_of(o.attention).equal_widths || width == o.hidden, "[seq2seq] queries of ", o.hidden, " and states of ",
        width, " have no dot product: a bidirectional encoder needs additive or bilinear scores");
  const auto stack = [&](int64_t inputs, bool both, const Rng& r) {
    return Recurrent(inputs, o.hidden, {o.layers, o.cell, o.dropout, both, RecurrentOptions::Init::xavier}, r);
  };
  encoder = {Embedding(words.source, o.embed, rng.at("encoder").at("embedding")),
             stack(o.embed, o.bidirectional, rng.at("encoder").at("recurrent")),
             {}};
  if (o.values == SourceValues::words) encoder.words = xavier_linear(o.embed, width, rng.at("encoder").at("words"));
  for (uint64_t l = 0; o.bidirectional && l < static_cast<uint64_t>(o.layers); ++l) {
    bridge.h.push_back(xavier_linear(width, o.hidden, rng.at("bridge").at("h").at(l)));
    if (o.cell == CellKind::lstm) bridge.c.push_back(xavier_linear(width, o.hidden, rng.at("bridge").at("c").at(l)));
  }
  decoder.attention = make_scorer(o.attention, {o.hidden, width, o.hidden}, rng.at("decoder").at("attention"));
  decoder.embedding = Embedding(words.target, o.embed, rng.at("decoder").at("embedding"));
  decoder.recurrent = stack(o.embed + width, false, rng.at("decoder").at("recurrent"));
  output = xavier_linear(o.hidden, words.target, rng.at("output"));
}

Seq2Seq::Encoded Seq2Seq::encode(const Ids& source, const Ids& source_lens, const Run& run) const {
  check_source(source, source_lens);
  const Run here = run.at("encoder");
  const Tensor x = qkv::dropout(encoder.embedding(source), config.embed_dropout, here.at("embedding"));
  Recurrent::Output out = encoder.recurrent(x, here.at("recurrent"), config.skip_padding ? source_lens : Ids());
  const Tensor values = config.values == SourceValues::words ? encoder.words(x) : out.y;
  if (!config.bidirectional) return {out.y, values, out.state.back().h, std::move(out.state)};
  Encoded encoded{out.y, values, concat({out.state.back().h, out.reverse_state.back().h}, -1), {}};
  for (size_t l = 0; l < out.state.size(); ++l) {
    CellState first{bridge.h[l](concat({out.state[l].h, out.reverse_state[l].h}, -1), Activation::tanh), {}};
    if (config.cell == CellKind::lstm) first.c = bridge.c[l](concat({out.state[l].c, out.reverse_state[l].c}, -1));
    encoded.first.push_back(std::move(first));
  }
  return encoded;
}

Tensor Seq2Seq::keys_of(const Tensor& states) const {
  const auto* additive = decoder.attention.as<Additive>();
  return additive ? additive->project(states) : states;
}

Tensor Seq2Seq::features(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run,
                         const Ids& target_lens) const {
  check_present("seq2seq", source, "source");
  check_present("seq2seq", target_in, "target_in");
  check(target_in.rank() == 2 && source.rank() == 2 && target_in.size(0) == source.size(0),
        "[seq2seq] source and target differ in rows: ", source.shape(), " and ", target_in.shape());
  const Encoded encoded = encode(source, source_lens, run);
  const Run here = run.at("decoder");
  const Tensor embedded = qkv::dropout(decoder.embedding(target_in), config.embed_dropout, here.at("embedding"));
  const Tensor y = config.attention == ScorerKind::none ? decode_baseline(encoded, embedded, here, target_lens)
                   : config.attention != ScorerKind::cosine && !is_edited(here.at("attention"))
                       ? decode_fused(encoded, source_lens, embedded, here, target_lens)
                       : decode_stepwise(encoded, source_lens, embedded, here, target_lens);
  return qkv::dropout(y, config.embed_dropout, run.at("output"));
}

Tensor Seq2Seq::logits(const Ids& source, const Ids& source_lens, const Ids& target_in, const Run& run,
                       const Ids& target_lens) const {
  return output(features(source, source_lens, target_in, run, target_lens));
}

Tensor Seq2Seq::decode_baseline(const Encoded& encoded, const Tensor& embedded, const Run& run,
                                const Ids& target_lens) const {
  const int64_t B = embedded.size(0), T = embedded.size(1), width = encoded.context.size(1);
  const Tensor context = repeat_interleave(reshape(encoded.context, {B, 1, width}), T, 1);
  return decoder.recurrent(concat({embedded, context}, -1), run.at("recurrent"), target_lens, encoded.first).y;
}

Tensor Seq2Seq::decode_fused(const Encoded& encoded, const Ids& source_lens, const Tensor& embedded, const Run& run,
                             const Ids& target_lens) const {
  const int64_t B = embedded.size(0), T = embedded.size(1), S = encoded.states.size(1);
  AttentionDecoder d{.kind = config.cell,
                     .keys = keys_of(encoded.states),
                     .values = encoded.values,
                     .source_lens = source_lens,
                     .W_q = {},
                     .w_v = {},
                     .inputs = embedded,
                     .target_lens = target_lens,
                     .layers = {},
                     .first = encoded.first,
                     .weight_factors = {},
                     .factors = {}};
  if (const auto* additive = decoder.attention.as<Additive>()) {
    d.W_q = additive->W_q;
    d.w_v = additive->w_v;
  } else if (const auto* bilinear = decoder.attention.as<Bilinear>()) {
    d.W_q = transpose(bilinear->W);
  } else if (const auto* scaled = decoder.attention.as<ScaledDot>()) {
    d.scale = scaled->scale_for(config.hidden);
  }
  for (const RecurrentLayer& layer : decoder.recurrent.layers) d.layers.push_back(layer.weights());
  if (drops("seq2seq", config.dropout, run)) {
    d.weight_factors = qkv::dropout(ones({B, T, S}), config.dropout, run.at("attention"));
    for (size_t l = 1; l < d.layers.size(); ++l)
      d.factors.push_back(
          qkv::dropout(ones({B, T, config.hidden}), config.dropout, run.at("recurrent").at("dropout").at(l)));
  }
  const AttentionDecoderResult result = attention_decoder(d);
  show(run.at("attention"), result.weights);
  return result.y;
}

Tensor Seq2Seq::decode_stepwise(const Encoded& encoded, const Ids& source_lens, const Tensor& embedded, const Run& run,
                                const Ids& target_lens) const {
  const int64_t B = embedded.size(0), T = embedded.size(1), H = config.hidden;
  const Tensor keys = keys_of(encoded.states);
  const Run attention = run.at("attention"), between = run.at("recurrent").at("dropout");
  Few<CellState> state = encoded.first;
  std::vector<Tensor> tops, weights;
  tops.reserve(static_cast<size_t>(T));
  std::optional<EditsOnly> editor;
  if (is_edited(attention)) editor.emplace(*attention.probe);
  for (int64_t t = 0; t < T; ++t) {
    Run step = attention.at(static_cast<uint64_t>(t));
    step.probe = nullptr;  // the probe gets all steps at once, below
    const std::vector<int32_t> number(editor ? static_cast<size_t>(B) : 0, static_cast<int32_t>(t));
    if (editor) {
      step.probe = &*editor;
      step.path = attention.path;
      step.first_queries = number;
    }
    const Attended seen =
        attend_with(*this, reshape(state.back().h, {B, 1, H}), keys, encoded.values, source_lens, step);
    if (attention.probe) weights.push_back(seen.weights.matrix().viewed({B, 1, keys.size(1)}));
    Tensor x = reshape(concat({seen.output, slice(embedded, 1, t, t + 1)}, -1), {B, -1});
    for (size_t l = 0; l < state.size(); ++l) {
      if (l > 0) x = qkv::dropout(x, config.dropout, between.at(l).at(static_cast<uint64_t>(t)));
      state[l] = recurrent_step(config.cell, x, decoder.recurrent.layers[l].weights(), state[l]);
      x = state[l].h;
    }
    tops.push_back(reshape(x, {B, 1, H}));
  }
  if (tops.empty()) return zeros({B, 0, H});
  if (attention.probe) {
    const TapePause pause;
    show(attention, concat(weights, 1));
  }
  const Tensor y = concat(tops, 1);
  return target_lens.defined() ? mul(y, step_mask(target_lens, T)) : y;
}

Seq2Seq::State Seq2Seq::start(const Ids& source, const Ids& source_lens, const Run& run) const {
  Encoded encoded = encode(source, source_lens, run);
  State state;
  state.layers = std::move(encoded.first);
  if (config.attention == ScorerKind::none) {
    state.context = encoded.context;
  } else {
    state.keys = keys_of(encoded.states);
    state.values = encoded.values;
    state.lens = source_lens;
  }
  for (int64_t b = 0; b < source.size(0); ++b) state.sentence.push_back(static_cast<int32_t>(b));
  return state;
}

Tensor Seq2Seq::step(State& state, const Ids& tokens, const Run& run) const {
  check_present("seq2seq", tokens, "tokens");
  const int64_t R = state.rows();
  check(tokens.shape() == Shape{R}, "[seq2seq] expected one token for each of ", R, " rows, got ids of shape ",
        tokens.shape());
  const Run here = run.at("decoder");
  const Tensor embedded = decoder.embedding(tokens);
  Tensor x;
  if (config.attention == ScorerKind::none) {
    x = concat({embedded, state.context}, -1);
  } else {
    const Tensor query = reshape(state.layers.back().h, {R, 1, config.hidden});
    Run attention = here.at("attention");
    const std::vector<int32_t> number(attention.probe ? static_cast<size_t>(R) : 0, state.steps);
    attention.first_queries = number;
    const Attended seen = attend_with(*this, query, state.keys, state.values, state.lens, attention);
    x = concat({reshape(seen.output, {R, state.values.size(2)}), embedded}, -1);
  }
  for (size_t l = 0; l < state.layers.size(); ++l) {
    state.layers[l] = recurrent_step(config.cell, x, decoder.recurrent.layers[l].weights(), state.layers[l]);
    x = state.layers[l].h;
  }
  ++state.steps;
  return output(x);
}

void Seq2Seq::select(State& state, std::span<const int32_t> rows) const {
  for (const int32_t row : rows)
    check(row >= 0 && row < state.rows(), "[seq2seq] row ", row, " is not in 0 to ", state.rows() - 1);
  for (CellState& layer : state.layers) layer = {taken(layer.h, rows), taken(layer.c, rows)};
  std::vector<int32_t> sentence;
  for (const int32_t row : rows) sentence.push_back(state.sentence[static_cast<size_t>(row)]);
  // Rows of one sentence attend to the same states: if the sentences keep their order, nothing needs to move.
  if (sentence == state.sentence) return;
  state.keys = taken(state.keys, rows);
  state.values = taken(state.values, rows);
  state.context = taken(state.context, rows);
  state.lens = taken(state.lens, rows);
  state.sentence = std::move(sentence);
}

}  // namespace qkv
