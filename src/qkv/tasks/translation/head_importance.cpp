// Gates and maps in whole forward passes, ablation by forced decoding.
#include "qkv/tasks/translation/head_importance.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "qkv/attention/weights.h"
#include "qkv/core/check.h"
#include "qkv/data/translation.h"
#include "qkv/ops/linear_loss.h"
#include "qkv/tasks/translation/task.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

constexpr int64_t kRows = 32;  // sentences at once

const Transformer& transformer_of(const Translator& translator) {
  const Transformer* model = translator.model().transformer();
  require(model != nullptr, "the model is a seq2seq model with one attention: only a Transformer has heads to compare");
  return *model;
}

TranslationBatches batches_of(const Translator& translator, const SentencePairs& pairs) {
  const Tokenizer &source = translator.tokenizers().source, &target = translator.tokenizers().target;
  return TranslationBatches(
      encode_pairs(pairs, source, target), source.pad(), target.pad(), target.bos(),
      {.rows = kRows, .by_length = true, .source_steps = source_steps(translator.config()), .shuffle = false});
}

MultiHead& attention_at(Transformer& model, const PrunableAttention& at) {
  const auto layer = static_cast<size_t>(at.layer);
  if (at.part == AttentionPart::encoder) return model.encoder.stack.blocks[layer].self;
  TransformerBlock& block = model.decoder.stack.blocks[layer];
  return at.part == AttentionPart::decoder ? block.self : *block.cross;
}

// Adds |d loss of a sentence / d gate| of every head to `sums`.
void add_gates(const Translator& translator, const TranslationBatch& batch,
               const std::vector<PrunableAttention>& places, std::vector<std::vector<double>>& sums) {
  Transformer model = frozen(transformer_of(translator));
  const int64_t rows = batch.source.size(0);
  std::vector<Tensor> gates;
  for (const PrunableAttention& place : places) {
    MultiHead& attention = attention_at(model, place);
    gates.push_back(attention.gates = parameter(ones({rows, 1, attention.heads, 1})));
  }
  Tape tape;
  const Tensor x = model.features(batch.source, batch.source_lens, batch.target_in, {});
  tape.backward(linear_cross_entropy(x, model.decoder.output.weight, model.decoder.output.bias, batch.target_out,
                                     {.ignore_id = translator.tokenizers().target.pad(), .reduction = Reduction::sum}));
  for (size_t i = 0; i < places.size(); ++i) {
    const Tensor slope = tape.grad(gates[i]);
    const int64_t heads = slope.size(2), shared = model.config.shared_heads();
    for (int64_t n = 0; n < slope.numel(); ++n)
      sums[i][static_cast<size_t>(n % heads / shared)] +=
          std::abs(slope.ptr()[n]) / static_cast<double>(batch.target_lens.ptr()[n / heads]);
  }
}

// Adds up, over the queries that are not padding, what the weights of each head look like.
class Shapes : public Probe {
 public:
  Shapes(const TranslationBatch& batch, ImportanceBy by, int64_t shared, std::vector<std::vector<double>>& sums,
         const std::vector<PrunableAttention>& places)
      : batch_(batch), by_(by), shared_(shared), sums_(sums) {
    for (size_t i = 0; i < places.size(); ++i) index_[places[i].path] = i;
  }
  void attention(std::string_view path, const Weights& weights) override {
    const auto at = index_.find(path);
    if (at == index_.end()) return;
    const bool encoder = path.starts_with("encoder"), causal = path.starts_with("decoder") && path.ends_with("self");
    const Shape s = weights.shape();
    std::vector<float> row(static_cast<size_t>(s[3]));
    for (int64_t b = 0; b < s[0]; ++b) {
      const int64_t queries = (encoder ? batch_.source_lens : batch_.target_lens).ptr()[b];
      for (int64_t h = 0; h < s[1]; ++h)
        for (int64_t i = 0; i < queries; ++i) {
          weights.row(b, h, i, row.data());
          const int64_t seen = causal ? i + 1 : batch_.source_lens.ptr()[b];
          sums_[at->second][static_cast<size_t>(h / shared_)] += value(row, seen) / static_cast<double>(queries);
        }
    }
  }

 private:
  double value(const std::vector<float>& row, int64_t seen) const {
    if (by_ == ImportanceBy::confidence) return *std::ranges::max_element(row);
    double entropy = 0;
    for (const float w : row) entropy -= w > 0 ? w * std::log(static_cast<double>(w)) : 0;
    return std::log(static_cast<double>(seen)) - entropy;
  }
  const TranslationBatch& batch_;
  ImportanceBy by_;
  int64_t shared_;
  std::vector<std::vector<double>>& sums_;
  std::map<std::string, size_t, std::less<>> index_;
};

std::vector<double> ranks(const std::vector<double>& x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> out(x.size());
  for (size_t begin = 0, end = 0; begin < x.size(); begin = end) {
    while (end < x.size() && x[order[end]] == x[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) out[order[i]] = (static_cast<double>(begin + end) - 1) / 2;
  }
  return out;
}

}  // namespace

double forced_loss(const Translator& translator, const SentencePairs& pairs, const AttentionEdits& edits) {
  double sum = 0, tokens = 0;
  for (const ForcedTranslation& one : translator.force(pairs, {.keep_attention = false, .edits = edits})) {
    sum -= one.forced.log_probability();
    tokens += static_cast<double>(one.forced.log_probabilities.size());
  }
  return sum / std::max(tokens, 1.0);
}

AttentionEdits unit_off(const TransformerConfig& config, const PrunableAttention& attention, int64_t unit) {
  AttentionEdits out;
  for (int64_t h = unit * config.shared_heads(); h < (unit + 1) * config.shared_heads(); ++h)
    out.push_back({.path = attention.path, .what = EditKind::off, .head = h});
  return out;
}

std::vector<std::vector<double>> head_importance(const Translator& translator, const SentencePairs& pairs,
                                                 ImportanceBy by, const std::function<void(double done)>& progress) {
  const Transformer& model = transformer_of(translator);
  const std::vector<PrunableAttention> places = prunable_attentions(model.config);
  std::vector<std::vector<double>> out;
  int64_t all = 0, done = 0;
  for (const PrunableAttention& place : places) {
    out.emplace_back(static_cast<size_t>(place.units), 0.0);
    all += place.units;
  }
  const auto report = [&](int64_t count, int64_t of) {
    if (progress) progress(static_cast<double>(count) / static_cast<double>(of));
  };
  if (by == ImportanceBy::ablation) {
    const double whole = forced_loss(translator, pairs);
    for (size_t i = 0; i < places.size(); ++i)
      for (int64_t unit = 0; unit < places[i].units; ++unit) {
        report(done++, all);
        out[i][static_cast<size_t>(unit)] =
            forced_loss(translator, pairs, unit_off(model.config, places[i], unit)) - whole;
      }
    return out;
  }
  const TranslationBatches batches = batches_of(translator, pairs);
  for (int64_t b = 0; b < batches.batches(); ++b) {
    report(b, batches.batches());
    const TranslationBatch batch = batches.batch(0, b);
    if (by == ImportanceBy::gate) {
      add_gates(translator, batch, places, out);
      continue;
    }
    Shapes probe(batch, by, model.config.shared_heads(), out, places);
    model.features(batch.source, batch.source_lens, batch.target_in, Run{.probe = &probe});
  }
  for (auto& units : out)
    for (double& x : units) x /= static_cast<double>(pairs.source.size());
  return out;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  check(a.size() == b.size(), "[rank_correlation] lists of different lengths: ", a.size(), " and ", b.size());
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = (static_cast<double>(a.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

}  // namespace qkv
