// Decoding: a step runs some rows through all blocks on one thread, writes their keys and values once and reads them where they are.
#include <algorithm>
#include <cmath>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/kernels/step_attention.h"
#include "qkv/models/rows.h"
#include "qkv/models/step_weights.h"
#include "qkv/models/transformer.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/rotary.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kManySentences = 8;  // from here on it pays to copy the weights into panels
constexpr double kFlopsPerNanosecond = 60;

// Rows that go through a step together: few enough for their activations to stay in L2, many enough for the weights that pass by.
int64_t rows_together(int64_t rows) { return std::clamp<int64_t>(((rows + 3) / 4 + 5) / 6 * 6, 24, 96); }

// What the kernel of a step can do.
bool is_plain(const MultiHead& attention) {
  return (attention.scorer.kind() == ScorerKind::dot || attention.scorer.kind() == ScorerKind::scaled_dot) &&
         attention.positions != PositionKind::relative && attention.positions != PositionKind::alibi;
}

// Room for `wanted` rows, of which the first `used` are kept; a state that was copied keeps its own.
void make_room(Tensor& x, int64_t used, int64_t wanted, int64_t width) {
  const int64_t have = x.defined() ? x.size(0) : 0;
  if (have >= wanted && have > 0 && x.sole_owner()) return;
  const int64_t room = have >= wanted ? have : have > 0 ? std::max(wanted, 4 * have) : 4 * wanted;  // what is never written costs no memory
  Tensor more = Tensor::empty({room, width});
  if (used > 0) std::copy_n(x.ptr(), used * width, more.mutable_ptr());
  x = std::move(more);
}

// Where rows find their keys: (rows, stride) slots and (rows) counts.
struct Places {
  std::vector<int32_t> slots, counts;
  int64_t stride;
  // From row `first` on.
  kernels::StepKeys keys(const KeyValues& kv, int64_t first) const {
    return {kv.k.ptr(), kv.v.ptr(), slots.data() + first * stride, stride, counts.data() + first};
  }
};

class Step {
 public:
  Step(const Transformer& model, Transformer::State& state, const Ids& tokens, const Run& run);
  /// Logits of rows [begin, end) of the step.
  void operator()(int64_t begin, int64_t end, float* logits) const;
  /// The rows have one token more.
  void commit();

 private:
  struct Rows {
    int64_t begin, count;
    size_t block;
  };

  Tensor self(const Tensor& x, const Rows& rows, const Run& run) const;
  Tensor cross(const Tensor& x, const Rows& rows, const Run& run) const;
  Tensor attended(const MultiHead& attention, const Tensor& q, const KeyValues& kv, const Places& places, const Rows& rows) const;
  KeyValues gathered(const KeyValues& kv, const Places& places, const Rows& rows) const;
  template <class Sublayer>
  Tensor residual(const Tensor& x, const LayerNorm& norm, const DecoderBlock& block, const Run& run, const Sublayer& f) const;

  const Transformer& model_;
  Transformer::State& state_;
  const Ids& tokens_;
  const Run run_;
  Places past_, memory_;
};

Step::Step(const Transformer& model, Transformer::State& state, const Ids& tokens, const Run& run)
    : model_(model), state_(state), tokens_(tokens), run_(run) {
  const int64_t R = state.rows(), before = state.position;
  past_.stride = before + 1;
  for (int64_t r = 0; r < R; ++r) {
    past_.slots.insert(past_.slots.end(), state.slots.begin() + r * before, state.slots.begin() + (r + 1) * before);
    past_.slots.push_back(static_cast<int32_t>(state.written + r));
  }
  past_.counts.assign(static_cast<size_t>(R), static_cast<int32_t>(before + 1));
  for (size_t i = 0; i < state.self.size(); ++i) {
    const StepWeights::Block& w = state.weights->blocks[i];
    make_room(state.self[i].k, state.written, state.written + R, w.k.out());
    make_room(state.self[i].v, state.written, state.written + R, w.v.out());
  }
  memory_.stride = state.source_length;
  for (const int32_t s : state.sentence) {
    for (int64_t j = 0; j < memory_.stride; ++j) memory_.slots.push_back(static_cast<int32_t>(s * memory_.stride + j));
    const int64_t seen = state.lens.defined() ? state.lens.ptr()[s] : memory_.stride;
    memory_.counts.push_back(static_cast<int32_t>(std::min(seen, memory_.stride)));
  }
}

void Step::commit() {
  state_.slots = std::move(past_.slots);
  state_.written += state_.rows();
  ++state_.position;
}

// LN(x + dropout(f(x))), or x + dropout(f(LN(x))): dropout only where a training run decodes.
template <class Sublayer>
Tensor Step::residual(const Tensor& x, const LayerNorm& norm, const DecoderBlock& block, const Run& run, const Sublayer& f) const {
  if (block.norm == NormPlace::post) return norm(x, f(x), block.dropout, run);
  const Tensor y = f(norm(x));
  return add(x, run.training ? Dropout{block.dropout}(y, run) : y);
}

// The rows' keys and values side by side, as attend reads them: (rows, most keys, width).
KeyValues Step::gathered(const KeyValues& kv, const Places& places, const Rows& rows) const {
  const auto first = places.slots.begin() + rows.begin * places.stride;
  const std::vector<int32_t> slots(first, first + rows.count * places.stride);
  const auto as_rows = [&](const Tensor& x) { return taken(x, slots).viewed({rows.count, places.stride, x.size(1)}); };
  return {as_rows(kv.k), as_rows(kv.v)};
}

Tensor Step::attended(const MultiHead& attention, const Tensor& q, const KeyValues& kv, const Places& places, const Rows& rows) const {
  const int64_t width = q.size(2) / attention.heads;
  const float scale = attention.scorer.kind() == ScorerKind::dot ? 1 : 1 / std::sqrt(static_cast<float>(width));
  Tensor out = Tensor::empty(q.shape());
  kernels::step_attention({attention.heads, attention.key_heads, width, scale}, q.ptr(), places.keys(kv, rows.begin), out.mutable_ptr(), 0,
                          rows.count);
  return out;
}

Tensor Step::self(const Tensor& x, const Rows& rows, const Run& run) const {
  const DecoderBlock& block = model_.decoder.blocks[rows.block];
  const StepWeights::Block& w = state_.weights->blocks[rows.block];
  const MultiHead& attention = block.self;
  const KeyValues& past = state_.self[rows.block];
  const int64_t before = state_.position, slot = state_.written + rows.begin;
  const auto turned = [&](const Tensor& y, int64_t heads) {
    if (attention.positions != PositionKind::rotary) return y;
    return rotate(y.viewed({rows.count, 1, heads, y.size(2) / heads}), HeadAxis::inner, before).viewed(y.shape());
  };
  float* k = past.k.mutable_ptr() + slot * w.k.out();
  if (attention.positions == PositionKind::rotary) std::ranges::copy(turned(w.k(x), attention.key_heads).data(), k);
  else w.k(x.ptr(), rows.count, k);
  w.v(x.ptr(), rows.count, past.v.mutable_ptr() + slot * w.v.out());
  const bool plain = is_plain(attention) && !run.training;
  Tensor general;
  if (!plain || run.probe) general = attention(x, gathered(past, past_, rows), Mask::causal(before), run, before);
  return plain ? w.out(attended(attention, turned(w.q(x), attention.heads), past, past_, rows)) : general;
}

Tensor Step::cross(const Tensor& x, const Rows& rows, const Run& run) const {
  const MultiHead& attention = *model_.decoder.blocks[rows.block].cross;
  const StepWeights::Block& w = state_.weights->blocks[rows.block];
  const KeyValues& memory = state_.cross[rows.block];
  const bool plain = is_plain(attention) && !run.training;
  Tensor general;
  if (!plain || run.probe) {
    const Ids lens({rows.count}, std::span(memory_.counts).subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count)));
    general = attention(x, gathered(memory, memory_, rows), Mask::valid_lens(lens), run);
  }
  return plain ? w.cross_out(attended(attention, w.cross_q(x), memory, memory_, rows)) : general;
}

void Step::operator()(int64_t begin, int64_t end, float* logits) const {
  const int64_t count = end - begin;
  const TransformerDecoder& decoder = model_.decoder;
  const int64_t position = model_.options.advance_positions ? state_.position : 0;
  Tensor x = decoder.embedding(tokens_.part(begin, {count, 1}), position, run_.at("embedding"));
  for (size_t i = 0; i < decoder.blocks.size(); ++i) {
    const DecoderBlock& block = decoder.blocks[i];
    const StepWeights::Block& w = state_.weights->blocks[i];
    const Rows rows{begin, count, i};
    const Run run = run_.at(i);
    x = residual(x, block.self_norm, block, run.at("self_norm"), [&](const Tensor& in) { return self(in, rows, run.at("self")); });
    x = residual(x, block.cross_norm, block, run.at("cross_norm"), [&](const Tensor& in) { return cross(in, rows, run.at("cross")); });
    x = residual(x, block.ffn_norm, block, run.at("ffn_norm"), [&](const Tensor& in) { return w.second(w.first(in, block.ffn.activation)); });
  }
  if (decoder.norm) x = (*decoder.norm)(x);
  state_.weights->output(x.ptr(), count, logits);
}

}  // namespace

Transformer::State Transformer::start(const Ids& source, const Ids& source_lens, const Run& run) const {
  check(!source_lens.defined() || source_lens.shape() == Shape{source.size(0)}, "[transformer] lengths of shape ", source_lens.shape(), " for source ",
        source.shape());
  const TapePause pause;
  const Tensor memory = encoder(source, source_lens, run.at("encoder"));
  State state;
  state.self.resize(decoder.blocks.size());
  state.source_length = source.size(1);
  for (const DecoderBlock& block : decoder.blocks) {
    const KeyValues kv = block.cross->project(memory, memory);
    const auto flat = [&](const Tensor& x) { return x.viewed({x.size(0) * x.size(1), x.size(2)}); };
    state.cross.push_back({flat(kv.k), flat(kv.v)});
  }
  state.lens = source_lens;
  for (int64_t b = 0; b < source.size(0); ++b) state.sentence.push_back(static_cast<int32_t>(b));
  const auto panels = source.size(0) >= kManySentences ? StepLinear::Panels::yes : StepLinear::Panels::no;
  state.weights = std::make_shared<const StepWeights>(decoder, panels);
  return state;
}

Tensor Transformer::step(State& state, const Ids& tokens, const Run& run) const {
  const int64_t R = state.rows(), V = decoder.output.weight.size(0);
  check(tokens.shape() == Shape{R}, "[transformer] the cache is of a batch of ", R, " rows, got tokens of shape ", tokens.shape());
  check(state.self.size() == decoder.blocks.size(), "[transformer] the cache is of a model with ", state.self.size(), " decoder blocks, this one has ",
        decoder.blocks.size());
  const StepLinear& output = state.weights->output;
  check(output.in() == options.width && output.out() == V, "[transformer] the cache is of a model of width ", output.in(), " and ", output.out(),
        " target tokens, this one has ", options.width, " and ", V);
  check(output.is_of(decoder.output), "[transformer] the cache was started by another model, or by this one before its weights moved");
  const TapePause pause;
  Step step(*this, state, tokens, run.at("decoder"));
  Tensor logits = Tensor::empty({R, V});
  const int64_t d = options.width, layer = 6 * d * d + 2 * d * options.ffn;
  const double flops = 2.0 * static_cast<double>(R) * static_cast<double>(std::ssize(decoder.blocks) * layer + d * V);
  const int64_t together = run.probe || run.training ? std::max<int64_t>(R, 1) : rows_together(R);
  if (together >= R) step(0, R, logits.mutable_ptr());
  else
    parallel_ranges(R, together, flops / kFlopsPerNanosecond, [&](int64_t begin, int64_t end) {
      const TapePause here;  // this may be another caller's thread
      step(begin, end, logits.mutable_ptr() + begin * V);
    });
  step.commit();
  return logits;
}

void Transformer::select(State& state, std::span<const int32_t> rows) const {
  std::vector<int32_t> sentence, slots;
  for (const int32_t row : rows) {
    check(row >= 0 && row < state.rows(), "[transformer] row ", row, " is not in 0 to ", state.rows() - 1);
    sentence.push_back(state.sentence[static_cast<size_t>(row)]);
    const auto first = state.slots.begin() + row * state.position;
    slots.insert(slots.end(), first, first + state.position);
  }
  state.sentence = std::move(sentence);
  state.slots = std::move(slots);
}

}  // namespace qkv
