// Lab 10.4: a small translator whose encoder and output layer can be exchanged.
#include "qkv/labs/bahdanau_designs.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "qkv/nn/init.h"
#include "qkv/ops/attention_decoder.h"
#include "qkv/ops/conv.h"
#include "qkv/ops/elementwise.h"
#include "qkv/ops/loss.h"
#include "qkv/ops/matmul.h"
#include "qkv/ops/reduce.h"
#include "qkv/ops/shape.h"

namespace qkv::labs::bahdanau {
namespace {

constexpr int64_t kDesignRows = 16;
constexpr float kDesignRate = 0.003f;

// 1 / length within a row, 0 beyond it: (B, 1, S).
Tensor mean_shares(const Ids& lens, int64_t steps) {
  Tensor out = zeros({lens.size(0), 1, steps});
  for (int64_t b = 0; b < lens.size(0); ++b)
    std::fill_n(out.mutable_ptr() + b * steps, lens.ptr()[b], 1 / static_cast<float>(lens.ptr()[b]));
  return out;
}

// 1 within a row, 0 beyond it: (B, S, 1).
Tensor within(const Ids& lens, int64_t steps) {
  Tensor out = zeros({lens.size(0), steps, 1});
  for (int64_t b = 0; b < lens.size(0); ++b) std::fill_n(out.mutable_ptr() + b * steps, lens.ptr()[b], 1.f);
  return out;
}

struct DesignTask {
  const Design& model;
  const IdText& text;
  TranslationBatches data;

  int64_t batches() const { return data.batches(); }
  TranslationBatch batch(int64_t epoch, int64_t index) const { return data.batch(epoch, index); }
  int64_t rows(const TranslationBatch& batch) const { return batch.source.size(0); }
  double count(const TranslationBatch& batch) const {
    double tokens = 0;
    for (const int32_t n : batch.target_lens.data()) tokens += n;
    return tokens;
  }
  Loss loss(const TranslationBatch& batch, int64_t begin, int64_t end, const Run&) const {
    const int64_t n = end - begin, S = batch.source.size(1), T = batch.target_in.size(1);
    const TranslationBatch part{batch.source.part(begin * S, {n, S}), batch.source_lens.part(begin, {n}),
                                batch.target_in.part(begin * T, {n, T}), batch.target_out.part(begin * T, {n, T}),
                                batch.target_lens.part(begin, {n})};
    return {
        cross_entropy(model.logits(part), part.target_out, {.ignore_id = text.pad_target, .reduction = Reduction::sum}),
        count(part)};
  }
};

TranslationBatches design_batches(const IdText& text, const std::vector<IdPair>& pairs, uint64_t seed, bool shuffle) {
  return TranslationBatches(pairs, text.pad_source, text.pad_target, text.bos,
                            {.rows = kDesignRows, .by_length = true, .shuffle = shuffle, .seed = seed});
}

struct DesignLosses : Observer {
  std::vector<double> losses;
  void epoch(const Progress& p) override { losses.push_back(p.epoch_loss); }
};

// A pair is exact if every forced token is the likeliest one: then a greedy decoder writes the same.
void judge_fresh(const Design& model, const IdText& text, Outcome& out) {
  const DesignTask task{model, text, design_batches(text, text.fresh, 0, false)};
  double sum = 0, tokens = 0, exact = 0;
  for (int64_t i = 0; i < task.batches(); ++i) {
    const TranslationBatch batch = task.batch(0, i);
    const Tensor logits = model.logits(batch);
    sum += cross_entropy(logits, batch.target_out, {.ignore_id = text.pad_target, .reduction = Reduction::sum}).item();
    tokens += task.count(batch);
    const Ids best = argmax(logits);
    const int64_t T = batch.target_out.size(1);
    for (int64_t b = 0; b < task.rows(batch); ++b)
      exact += std::equal(best.ptr() + b * T, best.ptr() + b * T + batch.target_lens.ptr()[b],
                          batch.target_out.ptr() + b * T);
  }
  out.nats = sum / std::max(tokens, 1.0);
  out.exact = exact / static_cast<double>(std::max<size_t>(text.fresh.size(), 1));
}

}  // namespace

Design::Design(Reading r, Writing w, const VocabularySizes& words, int64_t width, const Rng& rng)
    : reading(r),
      writing(w),
      source(words.source, width, rng.at("source")),
      target(words.target, width, rng.at("target")),
      first(width, width, rng.at("first")),
      keys(width, width, rng.at("keys"), Linear::Bias::no),
      W_q(parameter(xavier_uniform({width, width}, rng.at("query")))),
      w_v(parameter(xavier_uniform({1, width}, rng.at("score")).viewed({width}))),
      decoder(2 * width, width, {.init = RecurrentOptions::Init::xavier}, rng.at("decoder")) {
  if (r == Reading::recurrent)
    gru.emplace(width, width, RecurrentOptions{.init = RecurrentOptions::Init::xavier}, rng.at("gru"));
  if (r == Reading::self_attention)
    attention.emplace(
        TransformerConfig{
            .hidden = width, .ffn = 2 * width, .heads = 4, .layers = 2, .dropout = 0, .norm = NormPlace::pre},
        words.source, rng.at("attention"));
  if (r == Reading::convolution)
    convolution =
        parameter(normal({width, width, 3}, rng.at("convolution"), 0, 1 / std::sqrt(3 * static_cast<float>(width))));
  if (w == Writing::deep) inner = Linear(2 * width, width, rng.at("inner"));
  if (w == Writing::shared)
    bias = parameter(zeros({words.target}));
  else
    output = Linear(width, words.target, rng.at("output"));
}

Tensor Design::states(const TranslationBatch& batch) const {
  if (attention) return (*attention)(batch.source, batch.source_lens, Run{});
  const Tensor x = source(batch.source);
  if (gru) return (*gru)(x, Run{}, batch.source_lens).y;
  const Tensor words = mul(x, within(batch.source_lens, x.size(1)));
  return add(words, tanh(transpose(conv1d(transpose(words, 1, 2), convolution, {}, {.padding = 1}), 1, 2)));
}

Tensor Design::logits(const TranslationBatch& batch) const {
  const Tensor read = states(batch), before = target(batch.target_in);
  const int64_t B = read.size(0), S = read.size(1), width = read.size(2);
  const Tensor mean = reshape(matmul(mean_shares(batch.source_lens, S), read), {B, width});
  Few<CellWeights> layers;
  layers.push_back(decoder.layers[0].weights());
  Few<CellState> start;
  start.push_back({first(mean, Activation::tanh), {}});
  const Tensor y = attention_decoder({.keys = keys(read),
                                      .values = read,
                                      .source_lens = batch.source_lens,
                                      .W_q = W_q,
                                      .w_v = w_v,
                                      .inputs = before,
                                      .target_lens = batch.target_lens,
                                      .layers = layers,
                                      .first = start,
                                      .weight_factors = {},
                                      .factors = {}})
                       .y;
  if (writing == Writing::shared) return linear(y, target.weight, bias);
  return output(writing == Writing::deep ? inner(concat({y, before}, -1), Activation::tanh) : y);
}

Outcome trained_design(Reading reading, Writing writing, const IdText& text, int64_t epochs, const Rng& rng,
                       Observer& observer) {
  constexpr int64_t kWidth = 64;
  Design model(reading, writing, text.words, kWidth, rng.at("init"));
  const DesignTask task{model, text, design_batches(text, text.train, rng.at("order").word(0), true)};
  const int64_t steps = epochs * task.batches();
  DesignLosses losses;
  Observer* observers[] = {&losses, &observer};
  Parameters all = flatten(model);
  Adam adam;
  fit(all, adam, {.epochs = epochs, .rate = cosine_rate(kDesignRate, steps, steps / 10), .clip = 1}, task, observers);
  Outcome out{.parameters = all.count(), .first_loss = losses.losses.front(), .last_loss = losses.losses.back()};
  judge_fresh(model, text, out);
  return out;
}

}  // namespace qkv::labs::bahdanau
