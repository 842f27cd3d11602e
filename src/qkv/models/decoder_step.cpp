// Decoding: a step runs some rows through all blocks on one thread, and reads keys and values where they were written.
#include <algorithm>
#include <cmath>
#include <optional>

#include "qkv/core/check.h"
#include "qkv/core/parallel.h"
#include "qkv/kernels/step_attention.h"
#include "qkv/models/cache.h"
#include "qkv/models/rows.h"
#include "qkv/models/step_weights.h"
#include "qkv/models/transformer_decoder.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/present.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr double kFlopsPerNanosecond = 60;
constexpr int64_t kSlotsPerRow = 2;  // slots that are not worth counting
constexpr int64_t kManyLogits = 1 << 20;
constexpr int64_t kCachedOutput = 1 << 20;  // floats: an output layer of this size stays in a cache

// Rows per pass of a step: few enough for their activations to stay in L2, many enough to share each load of the
// weights.
int64_t rows_together(int64_t rows) { return std::clamp<int64_t>(((rows + 3) / 4 + 5) / 6 * 6, 24, 96); }

// Whether the kernel of a step supports this attention.
bool is_plain(const MultiHead& attention) {
  return (attention.scorer.as<Dot>() || attention.scorer.as<ScaledDot>()) && !attention.positions.biases() &&
         !attention.gates.defined() && (attention.kind.exact() || attention.kind.pattern());
}

// Whether the kernel of a step computes this attention: the run's probe does not edit it.
bool uses_kernel(const MultiHead& attention, const Run& run) {
  return is_plain(attention) && !run.training && !(run.probe && run.probe->edits(run.path));
}

// The slots of the keys of each row: (rows, stride) slots and (rows) counts.
struct Places {
  std::vector<int32_t> slots, counts;
  int64_t stride;
  // The part from row `first` on.
  kernels::StepKeys keys(const KeyValues& kv, int64_t first) const {
    return {kv.k.ptr(), kv.v.ptr(), slots.data() + first * stride, stride, counts.data() + first};
  }
};

class Step {
 public:
  Step(const TransformerDecoder& decoder, DecoderState& state, const Ids& tokens, const Run& run);
  /// The input of the output layer for rows [begin, end) of the step.
  Tensor operator()(int64_t begin, int64_t end) const;
  /// Every row now has one more token.
  void commit();

 private:
  struct Rows {
    int64_t begin, count;
    size_t block;
  };

  Tensor self(const Tensor& x, const Rows& rows, const Run& run) const;
  Tensor cross(const Tensor& x, const Rows& rows, const Run& run) const;
  Tensor attended(const MultiHead& attention, const Tensor& q, const KeyValues& kv, const Places& places,
                  const Rows& rows) const;
  // The run with the numbers of the rows' queries.
  Run numbered(const Run& run, const Rows& rows) const;
  KeyValues gathered(const KeyValues& kv, const Places& places, const Rows& rows) const;
  // Concatenates part(rows, length) of stretches of rows with equal lengths; usually there is only one stretch.
  template <class Part>
  Tensor by_length(const Rows& rows, const Part& part) const;
  template <class Sublayer>
  Tensor residual(const Tensor& x, const Norm& norm, const TransformerBlock& block, const Run& run,
                  const Sublayer& f) const;

  const TransformerDecoder& decoder_;
  DecoderState& state_;
  const Ids& tokens_;
  const Run run_;
  Places past_, memory_;
  std::optional<Places> seen_;  // the part of the past that a sparse kind of attention sees
};

// The slots of the keys that each row's new token sees.
Places in_pattern(const KeyPattern& pattern, const Places& past) {
  Places out{.slots = {}, .counts = {}, .stride = past.stride};
  for (size_t r = 0; r < past.counts.size(); ++r) {
    const int32_t* slots = past.slots.data() + static_cast<int64_t>(r) * past.stride;
    int32_t count = 0;
    for (const KeyRun& run : pattern.seen(past.counts[r] - 1, past.counts[r], true))
      for (int32_t j = run.begin; j < run.end; j += run.step, ++count) out.slots.push_back(slots[j]);
    out.slots.resize((r + 1) * static_cast<size_t>(past.stride), 0);
    out.counts.push_back(count);
  }
  return out;
}

// Slots that are in no row's past any more, as of hypotheses that a search gave up, are reused: once they are the
// majority, the others move together.
void give_up_slots(DecoderState& state) {
  const int64_t R = state.rows(), stride = state.longest();
  if (state.written <= 2 * stride + kSlotsPerRow * R) return;  // a row has no slot twice
  std::vector<int32_t> place(static_cast<size_t>(state.written), -1);
  const auto each_used = [&](const auto& f) {
    for (int64_t r = 0; r < R; ++r)
      for (int64_t i = 0; i < state.lengths[static_cast<size_t>(r)]; ++i)
        f(state.slots[static_cast<size_t>(r * stride + i)]);
  };
  each_used([&](int32_t slot) { place[static_cast<size_t>(slot)] = 0; });
  int32_t count = 0;
  for (int32_t& p : place)
    if (p == 0) p = count++;
  if (2 * count > state.written) return;
  for (size_t i = 0; i < state.self.size(); ++i) {
    const StepWeights::Block& w = state.weights->blocks[i];
    move_rows(state.self[i].k, place, w.k.out());
    move_rows(state.self[i].v, place, w.v.out());
  }
  each_used([&](int32_t& slot) { slot = place[static_cast<size_t>(slot)]; });
  state.written = count;
}

// Memory for logits (R, V). Large ones are blocks of few sizes, since the number of rows falls from step to step and
// the pool keeps a block of each size. Pages that are never written cost no memory.
Tensor logits_of(int64_t R, int64_t V) {
  if (R * V < kManyLogits) return Tensor::empty({R, V});
  int64_t room = 1;
  while (room < R) room *= 4;
  return Tensor::empty({room * V}).part(0, {R, V});
}

Step::Step(const TransformerDecoder& decoder, DecoderState& state, const Ids& tokens, const Run& run)
    : decoder_(decoder), state_(state), tokens_(tokens), run_(run) {
  const int64_t R = state.rows(), stride = state.longest();
  past_.stride = stride + 1;
  for (int64_t r = 0; r < R; ++r) {
    const int32_t before = state.lengths[static_cast<size_t>(r)];
    const auto first = state.slots.begin() + r * stride;
    past_.slots.insert(past_.slots.end(), first, first + before);
    past_.slots.push_back(static_cast<int32_t>(state.written + r));
    past_.slots.resize(static_cast<size_t>((r + 1) * past_.stride), 0);
    past_.counts.push_back(before + 1);
  }
  for (size_t i = 0; i < state.self.size(); ++i) {
    const StepWeights::Block& w = state.weights->blocks[i];
    make_room(state.self[i].k, state.written, state.written + R, w.k.out());
    make_room(state.self[i].v, state.written, state.written + R, w.v.out());
  }
  if (!decoder.stack.blocks.empty())
    if (const KeyPattern* pattern = decoder.stack.blocks[0].self.kind.pattern()) seen_ = in_pattern(*pattern, past_);
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
  for (int32_t& length : state_.lengths) ++length;
}

// norm(x + dropout(f(x))), or x + dropout(f(norm(x))): dropout only if a training run decodes.
template <class Sublayer>
Tensor Step::residual(const Tensor& x, const Norm& norm, const TransformerBlock& block, const Run& run,
                      const Sublayer& f) const {
  if (block.norm == NormPlace::post) return norm(x, f(x), block.dropout, run);
  const Tensor y = f(norm(x));
  return add(x, run.training ? Dropout{block.dropout}(y, run) : y);
}

Run Step::numbered(const Run& run, const Rows& rows) const {
  Run out = run;
  out.first_queries =
      std::span(state_.lengths).subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count));
  return out;
}

// The keys and values of the rows as attend takes them: (rows, most keys, width).
KeyValues Step::gathered(const KeyValues& kv, const Places& places, const Rows& rows) const {
  const auto first = places.slots.begin() + rows.begin * places.stride;
  const std::vector<int32_t> slots(first, first + rows.count * places.stride);
  const auto as_rows = [&](const Tensor& x) { return taken(x, slots).viewed({rows.count, places.stride, x.size(1)}); };
  return {as_rows(kv.k), as_rows(kv.v)};
}

Tensor Step::attended(const MultiHead& attention, const Tensor& q, const KeyValues& kv, const Places& places,
                      const Rows& rows) const {
  const int64_t width = q.size(2) / attention.heads;
  const float scale = attention.scorer.as<Dot>() ? 1 : 1 / std::sqrt(static_cast<float>(width));
  Tensor out = Tensor::empty(q.shape());
  kernels::step_attention({attention.heads, attention.key_heads, width, scale}, q.ptr(), places.keys(kv, rows.begin),
                          out.mutable_ptr(), 0, rows.count);
  return out;
}

template <class Part>
Tensor Step::by_length(const Rows& rows, const Part& part) const {
  std::vector<Tensor> parts;
  for (int64_t begin = rows.begin, end = begin; begin < rows.begin + rows.count; begin = end) {
    const int32_t length = state_.lengths[static_cast<size_t>(begin)];
    while (end < rows.begin + rows.count && state_.lengths[static_cast<size_t>(end)] == length) ++end;
    parts.push_back(part(Rows{begin, end - begin, rows.block}, length));
  }
  return parts.size() == 1 ? parts[0] : concat(parts, 0);
}

Tensor Step::self(const Tensor& x, const Rows& rows, const Run& run) const {
  const TransformerBlock& block = decoder_.stack.blocks[rows.block];
  const StepWeights::Block& w = state_.weights->blocks[rows.block];
  const MultiHead& attention = block.self;
  const KeyValues& past = state_.self[rows.block];
  const int64_t slot = state_.written + rows.begin;
  const auto of_rows = [&](const Tensor& y, const Rows& some) {
    return y.part((some.begin - rows.begin) * y.size(2), {some.count, 1, y.size(2)});
  };
  const auto turned = [&](const Tensor& y, int64_t heads) {
    if (!attention.positions.turns()) return y;
    return by_length(rows, [&](const Rows& some, int64_t before) {
      const Tensor z = of_rows(y, some);
      return attention.positions.placed(z.viewed({some.count, 1, heads, z.size(2) / heads}), before).viewed(z.shape());
    });
  };
  float* k = detail::writable(past.k) + slot * w.k.out();
  if (attention.positions.turns())
    std::ranges::copy(turned(w.k(x), attention.key_heads).data(), k);
  else
    w.k(x.ptr(), rows.count, k);
  w.v(x.ptr(), rows.count, detail::writable(past.v) + slot * w.v.out());
  const bool plain = uses_kernel(attention, run);
  Tensor general;
  if (!plain || run.probe)
    general = by_length(rows, [&](const Rows& some, int64_t before) {
      return attention(of_rows(x, some), gathered(past, past_, some), Mask::causal(before), numbered(run, some),
                       before);
    });
  return plain ? w.out(attended(attention, turned(w.q(x), attention.heads), past, seen_ ? *seen_ : past_, rows))
               : general;
}

Tensor Step::cross(const Tensor& x, const Rows& rows, const Run& run) const {
  const MultiHead& attention = *decoder_.stack.blocks[rows.block].cross;
  const StepWeights::Block& w = state_.weights->blocks[rows.block];
  const KeyValues& memory = state_.cross[rows.block];
  const bool plain = uses_kernel(attention, run);
  Tensor general;
  if (!plain || run.probe) {
    const Ids lens({rows.count},
                   std::span(memory_.counts).subspan(static_cast<size_t>(rows.begin), static_cast<size_t>(rows.count)));
    general = attention(x, gathered(memory, memory_, rows), Mask::valid_lens(lens), numbered(run, rows));
  }
  return plain ? w.cross_out(attended(attention, w.cross_q(x), memory, memory_, rows)) : general;
}

Tensor Step::operator()(int64_t begin, int64_t end) const {
  const int64_t count = end - begin;
  Tensor x = by_length({begin, count, 0}, [&](const Rows& some, int64_t before) {
    return decoder_.embedding(tokens_.part(some.begin, {some.count, 1}), decoder_.advance_positions ? before : 0,
                              run_.at("embedding"));
  });
  for (size_t i = 0; i < decoder_.stack.blocks.size(); ++i) {
    const TransformerBlock& block = decoder_.stack.blocks[i];
    const StepWeights::Block& w = state_.weights->blocks[i];
    const Rows rows{begin, count, i};
    const Run run = run_.at(i);
    x = residual(x, block.self_norm, block, run.at("self_norm"),
                 [&](const Tensor& in) { return self(in, rows, run.at("self")); });
    if (block.cross)
      x = residual(x, block.cross_norm, block, run.at("cross_norm"),
                   [&](const Tensor& in) { return cross(in, rows, run.at("cross")); });
    x = residual(x, block.ffn_norm, block, run.at("ffn_norm"), [&](const Tensor& in) { return w.ffn(in); });
  }
  return decoder_.stack.norm ? (*decoder_.stack.norm)(x) : x;
}

}  // namespace

Tensor TransformerDecoder::step(DecoderState& state, const Ids& tokens, const Run& run) const {
  check_present("step", tokens, "tokens");
  const int64_t R = state.rows(), V = output.weight.size(0), d = output.weight.size(1);
  check(tokens.shape() == Shape{R}, "[transformer] the cache has ", R, " rows, got tokens of shape ", tokens.shape());
  check(state.self.size() == stack.blocks.size(), "[transformer] the cache is from a model with ", state.self.size(),
        " decoder blocks, but this one has ", stack.blocks.size());
  const StepLinear& last = state.weights->output;
  check(last.in() == d && last.out() == V, "[transformer] the cache is from a model of width ", last.in(), " and ",
        last.out(), " target tokens, but this one has ", d, " and ", V);
  check(last.is_of(output),
        "[transformer] the cache was started by another model, or by this one before its weights moved");
  const TapePause pause;
  give_up_slots(state);
  Step step(*this, state, tokens, run);
  Tensor logits = logits_of(R, V);
  int64_t elements = d * V;
  for (const StepWeights::Block& block : state.weights->blocks) elements += block.elements();
  const double flops = 2.0 * static_cast<double>(R) * static_cast<double>(elements);
  const int64_t together = run.probe || run.training ? std::max<int64_t>(R, 1) : rows_together(R);
  // A large output layer is a product of its own, of all rows.
  const bool apart = V * d > kCachedOutput;
  Tensor states = apart ? Tensor::empty({R, d}) : Tensor();
  const auto pass = [&](int64_t begin, int64_t end) {
    const Tensor x = step(begin, end);
    if (apart)
      std::ranges::copy(x.data(), states.mutable_ptr() + begin * d);
    else
      last(x.ptr(), end - begin, logits.mutable_ptr() + begin * V);
  };
  if (together >= R)
    pass(0, R);
  else
    parallel_ranges(R, together, flops / kFlopsPerNanosecond, [&](int64_t begin, int64_t end) {
      const TapePause here;  // this may be another caller's thread
      pass(begin, end);
    });
  if (apart) last(states.ptr(), R, logits.mutable_ptr());
  step.commit();
  return logits;
}

}  // namespace qkv
