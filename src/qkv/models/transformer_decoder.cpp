// The decoder over whole sequences, and operations on its state: start, prefill, select.
#include "qkv/models/transformer_decoder.h"

#include <algorithm>

#include "qkv/core/check.h"
#include "qkv/models/cache.h"
#include "qkv/models/rows.h"
#include "qkv/models/step_weights.h"
#include "qkv/nn/init.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kManySentences = 8;  // with at least this many, copying the weights into panels pays off

Tensor flat(const Tensor& x) { return x.viewed({x.size(0) * x.size(1), x.size(2)}); }

}  // namespace

int64_t DecoderState::longest() const { return lengths.empty() ? 0 : *std::ranges::max_element(lengths); }

TransformerDecoder::TransformerDecoder(const TransformerConfig& o, int64_t vocabulary, Cross cross, const Rng& rng)
    : embedding(vocabulary, o, rng.at("embedding")),
      stack(o, o.decoder_depth(), cross, rng),
      output(o.hidden, vocabulary, rng.at("output"), o.output_bias ? Linear::Bias::yes : Linear::Bias::no) {
  if (o.init == TransformerConfig::Init::gpt2) {
    output.weight = parameter(normal(output.weight.shape(), rng.at("gpt2").at("output.weight"), 0, kGpt2Deviation));
    if (o.output_bias) output.bias = parameter(zeros(output.bias.shape()));
  } else if (o.init != TransformerConfig::Init::pytorch) {
    output.weight = parameter(xavier_uniform(output.weight.shape(), rng.at("xavier").at("output.weight")));
  }
  if (o.tied) output.weight = embedding.weight;
}

Tensor TransformerDecoder::features(const Ids& ids, const Memory& memory, const Run& run, const Mask& mask) const {
  check_present("transformer", ids, "ids");
  const bool crosses = !stack.blocks.empty() && stack.blocks[0].cross;
  check(!crosses || memory.states.defined(),
        "[transformer] the decoder attends to an encoder: its outputs are missing, pass them as memory");
  return stack(embedding(ids, 0, run.at("embedding")), mask, memory, run);
}

DecoderState TransformerDecoder::start(int64_t rows, const Tensor& states, const Ids& lens,
                                       const std::shared_ptr<const StepWeights>& ready) const {
  const TapePause pause;
  const bool crosses = !stack.blocks.empty() && stack.blocks[0].cross;
  check(crosses == states.defined(),
        crosses ? "[transformer] the decoder has cross-attention: start needs the encoder's outputs"
                : "[transformer] the decoder has no cross-attention: start takes no encoder outputs");
  check(!crosses || (states.rank() == 3 && states.size(0) == rows), "[transformer] ", rows,
        " rows, but the encoder's outputs have shape ", states.shape());
  DecoderState state;
  state.self.resize(stack.blocks.size());
  if (crosses) {
    state.source_length = states.size(1);
    for (const TransformerBlock& block : stack.blocks) {
      const KeyValues kv = block.cross->project(states, states);
      state.cross.push_back({flat(kv.k), flat(kv.v)});
    }
    state.lens = lens;
  }
  for (int64_t b = 0; b < rows; ++b) state.sentence.push_back(static_cast<int32_t>(b));
  state.lengths.assign(static_cast<size_t>(rows), 0);
  const auto panels = rows >= kManySentences ? StepLinear::Panels::yes : StepLinear::Panels::no;
  state.weights = ready && ready->serve(*this, panels) ? ready : std::make_shared<const StepWeights>(*this, panels);
  state.weights->give_back();
  return state;
}

Tensor TransformerDecoder::prefill(DecoderState& state, const Ids& ids, const Ids& lens, const Run& run) const {
  check_present("prefill", ids, "ids");
  const int64_t R = state.rows(), n = ids.rank() == 2 ? ids.size(1) : 0;
  check(n > 0 && ids.size(0) == R, "[prefill] expected tokens of shape (", R, ", n) with n of at least 1, got ",
        ids.shape());
  check(!lens.defined() || lens.shape() == Shape{R}, "[prefill] ", R, " rows, but lengths have shape ", lens.shape());
  check(state.longest() == 0, "[prefill] the rows have already read ", state.longest(), " tokens");
  std::vector<int32_t> lengths(static_cast<size_t>(R), static_cast<int32_t>(n));
  if (lens.defined()) std::ranges::copy(lens.data(), lengths.begin());
  for (const int32_t length : lengths)
    check(length >= 1 && length <= n, "[prefill] a row has ", length, " tokens, expected 1 to ", n);

  const TapePause pause;
  std::vector<int32_t> last, rows;  // indices in (R, n) of the rows' last tokens, and of all their tokens
  std::vector<int32_t> slots(static_cast<size_t>(R * n), 0);
  for (int64_t r = 0; r < R; ++r) {
    const int32_t length = lengths[static_cast<size_t>(r)];
    for (int32_t i = 0; i < length; ++i) {
      slots[static_cast<size_t>(r * n + i)] = static_cast<int32_t>(rows.size());
      rows.push_back(static_cast<int32_t>(r * n + i));
    }
    last.push_back(rows.back());
  }
  Tensor x = embedding(ids, 0, run.at("embedding"));
  for (size_t i = 0; i < stack.blocks.size(); ++i) {
    const TransformerBlock& block = stack.blocks[i];
    KeyValues memory, seen;
    if (block.cross) {
      const auto apart = [&](const Tensor& y) { return y.viewed({R, state.source_length, y.size(1)}); };
      memory = {apart(state.cross[i].k), apart(state.cross[i].v)};
    }
    x = block(x, Mask::causal(), memory, state.lens.defined() ? Mask::valid_lens(state.lens) : Mask::none(), run.at(i),
              &seen);
    keep_rows(state.self[i].k, flat(seen.k), rows);
    keep_rows(state.self[i].v, flat(seen.v), rows);
  }
  x = taken(flat(x), last);
  if (stack.norm) x = (*stack.norm)(x);
  state.lengths = std::move(lengths);
  state.slots.clear();
  const int64_t longest = state.longest();
  for (int64_t r = 0; r < R; ++r)
    state.slots.insert(state.slots.end(), slots.begin() + r * n, slots.begin() + r * n + longest);
  state.written = std::ssize(rows);
  return state.weights->output(x);
}

void TransformerDecoder::select(DecoderState& state, std::span<const int32_t> rows) const {
  const int64_t stride = state.longest();
  std::vector<int32_t> sentence, lengths;
  for (const int32_t row : rows) {
    check(row >= 0 && row < state.rows(), "[transformer] row ", row, " is not in 0 to ", state.rows() - 1);
    sentence.push_back(state.sentence[static_cast<size_t>(row)]);
    lengths.push_back(state.lengths[static_cast<size_t>(row)]);
  }
  const int64_t longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
  std::vector<int32_t> slots;
  slots.reserve(rows.size() * static_cast<size_t>(longest));
  for (const int32_t row : rows) {
    const auto first = state.slots.begin() + row * stride;
    slots.insert(slots.end(), first, first + longest);
  }
  state.sentence = std::move(sentence);
  state.lengths = std::move(lengths);
  state.slots = std::move(slots);
}

}  // namespace qkv
