// Decoding of many rows at once: weights in panels, shared slots, and the same bits for any other rows.
#include <gtest/gtest.h>

#include "qkv/core/parallel.h"
#include "qkv/models/transformer.h"
#include "qkv/ops/shape.h"
#include "qkv/tensor/probe.h"
#include "support/threads.h"
#include "unit/models/model_checks.h"

namespace qkv::tests {
namespace {

constexpr VocabularySizes kWords{40, 600};
TransformerConfig sizes() {
  return {.hidden = 24, .ffn = 36, .heads = 4, .layers = 2, .norm = NormPlace::pre, .bias = true};
}

Ids lengths(int64_t rows, int64_t most) {
  Ids lens = Ids::empty({rows});
  for (int64_t b = 0; b < rows; ++b) lens.mutable_ptr()[b] = static_cast<int32_t>(1 + b * 7 % most);
  return lens;
}

Tensor row(const Tensor& x, int64_t r) { return x.part(r * x.size(1), {x.size(1)}).copied(); }

// Logits of three steps; rows are doubled and reversed after the first, and a third of them is dropped after the
// second.
std::vector<Tensor> three_steps(const Transformer& model, const Ids& source, const Ids& lens, const Ids& target,
                                const qkv::Run& run) {
  Transformer::State state = model.start(source, lens, {});
  const int64_t B = source.size(0);
  std::vector<Tensor> out{model.step(state, column(target, 0), run)};
  std::vector<int32_t> rows;
  Ids second = Ids::empty({2 * B});
  for (int64_t r = 0; r < 2 * B; ++r) {
    rows.push_back(static_cast<int32_t>(B - 1 - r / 2));
    second.mutable_ptr()[r] = target.ptr()[(B - 1 - r / 2) * 3 + 1];
  }
  model.select(state, rows);
  out.push_back(model.step(state, second, run));
  rows.clear();
  std::vector<int32_t> third;
  for (int64_t r = 0; r < 2 * B; ++r)
    if (r % 3 != 0) {
      rows.push_back(static_cast<int32_t>(r));
      third.push_back(target.ptr()[(B - 1 - r / 2) * 3 + 2]);
    }
  model.select(state, rows);
  out.push_back(model.step(state, Ids({std::ssize(third)}, third), run));
  return out;
}

TEST(TransformerStep, ManyRowsHaveTheLogitsOfTheWholePrefixAndTheBitsOfARowAlone) {
  const int64_t B = 75;
  const Transformer model(sizes(), kWords, Rng(3));
  const Ids source = some_ids(B, 9, 40, 1), target = some_ids(B, 3, 600, 2), lens = lengths(B, 9);
  const Tensor logits = model.logits(source, lens, target, {});
  const std::vector<Tensor> steps = three_steps(model, source, lens, target, {});
  const auto wanted = [&](int64_t b, int64_t t) { return Array(logits.part((b * 3 + t) * 600, {600})); };
  for (int64_t r = 0; r < B; ++r) expect_near(row(steps[0], r), wanted(r, 0), 1e-6, "first step");
  for (int64_t r = 0; r < 2 * B; ++r) expect_near(row(steps[1], r), wanted(B - 1 - r / 2, 1), 1e-6, "second step");
  for (int64_t r = 0, i = 0; r < 2 * B; ++r)
    if (r % 3 != 0) expect_near(row(steps[2], i++), wanted(B - 1 - r / 2, 2), 1e-6, "third step");
  for (const int64_t b : {0, 41, 74}) {
    const int64_t length = lens.ptr()[b];
    Transformer::State alone = model.start(source.part(b * 9, {1, length}), {}, {});
    for (int64_t t = 0; t < 2; ++t)
      expect_same(model.step(alone, target.part(b * 3 + t, {1}), {}).viewed({600}),
                  row(steps[static_cast<size_t>(t)], t == 0 ? b : 2 * (B - 1 - b)), "alone");
  }
}

struct Count : Probe {
  int64_t attentions = 0;
  Shape last;
  void attention(std::string_view, const Weights& weights) override {
    ++attentions;
    last = weights.shape();
  }
};

TEST(TransformerStep, ThreadsAndProbesChangeNoBit) {
  const Transformer model(sizes(), kWords, Rng(3));
  const Ids source = some_ids(60, 9, 40, 1), target = some_ids(60, 3, 600, 2), lens = lengths(60, 9);
  const qkv_test::ThreadsScope threads_scope;
  set_threads(1);
  const std::vector<Tensor> one = three_steps(model, source, lens, target, {});
  set_threads(3);
  const std::vector<Tensor> three = three_steps(model, source, lens, target, {});
  Count probe;
  const std::vector<Tensor> probed = three_steps(model, source, lens, target, {.probe = &probe});
  for (size_t t = 0; t < 3; ++t) {
    expect_same(one[t], three[t], "threads");
    expect_same(one[t], probed[t], "probe");
  }
  EXPECT_EQ(probe.attentions, 3 * 4);
  EXPECT_EQ(probe.last, Shape({80, 4, 1, 9}));
}

TEST(TransformerStep, ACopiedStateGoesItsOwnWay) {
  const Transformer model(sizes(), kWords, Rng(3));
  const Ids source = some_ids(2, 5, 40, 1), a({2}, {7, 8}), b({2}, {17, 18}), next({2}, {5, 6});
  Transformer::State first = model.start(source, {}, {});
  model.step(first, a, {});
  Transformer::State second = first, third = first;
  model.step(first, a, {});
  model.step(second, b, {});
  model.step(third, a, {});
  const Tensor kept = model.step(first, next, {});
  expect_same(kept, model.step(third, next, {}), "the same tokens");
  const Tensor other = model.step(second, next, {});
  EXPECT_NE(kept.ptr()[0], other.ptr()[0]);
}

TEST(TransformerStep, AStateWithACopyAtEveryStepTakesNoMoreRoomThanOneWithout) {
  const Transformer model(sizes(), kWords, Rng(3));
  const Ids source = some_ids(1, 5, 40, 1), token({1}, {7});
  Transformer::State state = model.start(source, {}, {});
  for (int i = 0; i < 16; ++i) {
    const Transformer::State before = state;
    model.step(state, token, {});
    EXPECT_EQ(before.longest(), i);
  }
  EXPECT_LE(state.self[0].k.size(0), 2 * state.written);
}

// Hypotheses as in a search: each row continues any row of the same sentence.
TEST(TransformerStep, SlotsOfRowsThatWereGivenUpAreUsedAgain) {
  constexpr int64_t kSentences = 3, kEach = 8, kRows = kSentences * kEach, kSteps = 100;
  const Transformer model(sizes(), kWords, Rng(3));
  const Ids source = some_ids(kSentences, 5, 40, 1), drawn = some_ids(kSteps, 2 * kRows, 600, 2);
  Transformer::State state = model.start(source, {}, {});
  std::vector<std::vector<int32_t>> pasts(kSentences);
  std::vector<int32_t> from;
  for (int64_t r = 0; r < kRows; ++r) from.push_back(static_cast<int32_t>(r / kEach));
  Tensor last;
  int64_t most = 0;
  for (int64_t t = 0; t < kSteps; ++t) {
    const int32_t* now = drawn.ptr() + t * 2 * kRows;
    for (int64_t r = 0; t > 0 && r < kRows; ++r)
      from[static_cast<size_t>(r)] = static_cast<int32_t>(r / kEach * kEach + now[kRows + r] % kEach);
    model.select(state, from);
    std::vector<std::vector<int32_t>> next;
    for (int64_t r = 0; r < kRows; ++r) {
      next.push_back(pasts[static_cast<size_t>(from[static_cast<size_t>(r)])]);
      next.back().push_back(now[r]);
    }
    pasts = std::move(next);
    last = model.step(state, Ids({kRows}, std::span(now, kRows)), {});
    most = std::max(most, state.written);
  }
  EXPECT_LT(most, kRows * kSteps / 2);
  for (int64_t r = 0; r < kRows; ++r) {
    Transformer::State alone = model.start(source.part(r / kEach * 5, {1, 5}), {}, {});
    Tensor wanted;
    for (const int32_t token : pasts[static_cast<size_t>(r)]) wanted = model.step(alone, Ids({1}, {token}), {});
    expect_same(row(last, r), wanted.viewed({600}), "alone");
  }
}

}  // namespace
}  // namespace qkv::tests
