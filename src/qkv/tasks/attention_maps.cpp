// Collects the maps with a probe during one forward pass.
#include "qkv/tasks/attention_maps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "qkv/attention/weights.h"
#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/core/parallel.h"
#include "qkv/models/attention_paths.h"
#include "qkv/tensor/probe.h"
#include "qkv/tensor/tape.h"

namespace qkv {
namespace {

class Collected : public Probe {
 public:
  explicit Collected(const MapsWanted& wanted) : wanted_(wanted) {}
  void attention(std::string_view path, const Weights& weights) override {
    if (!is_wanted(path)) return;
    const Shape& shape = weights.shape();
    bytes_ += (wanted_.head ? 1 : shape[1]) * shape[2] * shape[3] * static_cast<int64_t>(sizeof(float));
    if (bytes_ > MapsWanted::kMostBytes)
      throw Error(
          tr("the attention maps of {queries} x {keys} tokens need more than {bytes} bytes", "queries"_a = shape[2],
             "keys"_a = shape[3], "bytes"_a = grouped(static_cast<uint64_t>(MapsWanted::kMostBytes))),
          tr("--layer and --head choose one map"));
    check(!wanted_.head || *wanted_.head < shape[1], "[attention_maps] there is no head ", wanted_.head.value_or(0));
    weights_[std::string(path)] = wanted_.head ? weights.head(0, *wanted_.head).viewed({1, 1, shape[2], shape[3]})
                                               : weights.matrix(MapsWanted::kMostBytes);
  }
  void values(std::string_view path, const Tensor& v) override {
    if (wanted_.values && is_wanted(path)) values_[std::string(path)] = v;
  }
  /// (1, heads, n, m), and (1, m, key_heads D).
  const Tensor& weights(const std::string& path) const { return found(weights_, path); }
  /// The same for the last time.
  Tensor take_weights(const std::string& path) {
    Tensor out = found(weights_, path);
    weights_.erase(path);
    return out;
  }
  const Tensor& values(const std::string& path) const { return found(values_, path); }

 private:
  // The layer is the second part of a path: "encoder.3.self".
  bool is_wanted(std::string_view path) const {
    if (!wanted_.layer) return true;
    const size_t dot = path.find('.');
    return dot != std::string_view::npos && path.substr(dot + 1).starts_with(std::to_string(*wanted_.layer) + ".");
  }
  static const Tensor& found(const std::map<std::string, Tensor>& in, const std::string& path) {
    const auto at = in.find(path);
    check(at != in.end(), "[attention_maps] the model has no attention at ", path);
    return at->second;
  }
  MapsWanted wanted_;
  int64_t bytes_ = 0;
  std::map<std::string, Tensor> weights_, values_;
};

// Divides each row of `columns` numbers by its sum; a row of zeros stays.
void normalise_rows(float* rows, int64_t count, int64_t columns) {
  for (int64_t r = 0; r < count; ++r) {
    float* row = rows + r * columns;
    double sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += row[c];
    if (sum <= 0) continue;
    for (int64_t c = 0; c < columns; ++c) row[c] = static_cast<float>(row[c] / sum);
  }
}

// |W_o^h v_j| for heads first ... end - 1 and all keys: (heads, m). v (1, m, key_heads D); a query head reads the key
// head of its group.
std::vector<double> value_norms(const MultiHead& attention, const Tensor& v, int64_t first, int64_t end) {
  const int64_t heads = attention.heads, keys = v.size(1), width = attention.to_out.weight.size(0),
                all = attention.to_out.weight.size(1);
  const int64_t head = all / heads, shared = heads / attention.key_heads;
  std::vector<double> out;
  for (int64_t h = first; h < end; ++h)
    for (int64_t j = 0; j < keys; ++j) {
      const float* value = v.ptr() + j * v.size(2) + h / shared * head;
      double squares = 0;
      for (int64_t o = 0; o < width; ++o) {
        const float* row = attention.to_out.weight.ptr() + o * all + h * head;
        double sum = 0;
        for (int64_t d = 0; d < head; ++d) sum += static_cast<double>(row[d]) * value[d];
        squares += sum * sum;
      }
      out.push_back(std::sqrt(squares));
    }
  return out;
}

struct Both {
  Tensor weights, value_weighted;
};

// The attentions at "PREFIX.0.NAME", "PREFIX.1.NAME", ...
Both stacked(Collected& seen, const std::string& prefix, const std::string& name,
             const std::vector<const MultiHead*>& layers, const MapsWanted& wanted) {
  check(!layers.empty(), "[attention_maps] the ", prefix, " has no layers");
  check(wanted.layer.value_or(0) < std::ssize(layers), "[attention_maps] the ", prefix, " has no layer ",
        wanted.layer.value_or(0));
  const int64_t first = wanted.layer.value_or(0), count = wanted.layer ? 1 : std::ssize(layers);
  const Shape one = seen.weights(text(prefix, ".", first, ".", name)).shape();
  const int64_t n = one[2], m = one[3];
  int64_t most = 0;  // heads; layers with fewer have maps of zeros
  for (const MultiHead* layer : layers) most = std::max(most, layer->heads);
  if (wanted.head) most = 1;
  Both out{zeros({count, most, n, m}), wanted.values ? zeros({count, most, n, m}) : Tensor()};
  for (int64_t l = 0; l < count; ++l) {
    const std::string path = text(prefix, ".", first + l, ".", name);
    const MultiHead& layer = *layers[static_cast<size_t>(first + l)];
    const Tensor weights = seen.take_weights(path);
    float* raw = out.weights.mutable_ptr() + l * most * n * m;
    std::copy_n(weights.ptr(), weights.numel(), raw);
    if (!wanted.values) continue;
    const std::vector<double> norms =
        value_norms(layer, seen.values(path), wanted.head.value_or(0), wanted.head ? *wanted.head + 1 : layer.heads);
    float* valued = out.value_weighted.mutable_ptr() + l * most * n * m;
    for (int64_t i = 0; i < weights.numel(); ++i) {
      const int64_t h = i / (n * m), j = i % m;
      valued[i] = static_cast<float>(static_cast<double>(raw[i]) * norms[static_cast<size_t>(h * m + j)]);
    }
    normalise_rows(valued, weights.size(1) * n, m);
  }
  return out;
}

}  // namespace

Tensor mean_of_heads(const Tensor& x) {
  if (!x.defined()) return {};
  const int64_t layers = x.size(0), heads = x.size(1), cells = x.size(2) * x.size(3);
  Tensor out = Tensor::empty({layers, 1, x.size(2), x.size(3)});
  for (int64_t l = 0; l < layers; ++l) {
    int64_t there = 0;  // heads that this layer has: the maps of the others are 0
    for (int64_t h = 0; h < heads; ++h) {
      const float* map = x.ptr() + (l * heads + h) * cells;
      there += std::any_of(map, map + cells, [](float weight) { return weight != 0; });
    }
    there = std::max<int64_t>(there, 1);
    for (int64_t i = 0; i < cells; ++i) {
      double sum = 0;
      for (int64_t h = 0; h < heads; ++h) sum += x.ptr()[(l * heads + h) * cells + i];
      out.mutable_ptr()[l * cells + i] = static_cast<float>(sum / static_cast<double>(there));
    }
  }
  return out;
}

namespace {

// out (n, k) = a (n, m) b (m, k), rows normalised.
void product(const float* a, const float* b, int64_t n, int64_t m, int64_t k, float* out) {
  parallel_for(n, static_cast<double>(n * m * k), [&](int64_t i) {
    std::vector<double> sums(static_cast<size_t>(k));
    for (int64_t j = 0; j < m; ++j)
      for (int64_t c = 0; c < k; ++c) sums[static_cast<size_t>(c)] += static_cast<double>(a[i * m + j]) * b[j * k + c];
    for (int64_t c = 0; c < k; ++c) out[i * k + c] = static_cast<float>(sums[static_cast<size_t>(c)]);
  });
  normalise_rows(out, n, k);
}

// (layers, 1, n, n): products of (A + I) / 2, the last layer on the left.
Tensor self_rollout(const Tensor& mean) {
  if (!mean.defined()) return {};
  const int64_t layers = mean.size(0), n = mean.size(2), cells = n * n;
  Tensor out = Tensor::empty(mean.shape());
  Tensor mixed = Tensor::empty({n, n});
  for (int64_t l = 0; l < layers; ++l) {
    float* x = mixed.mutable_ptr();
    for (int64_t i = 0; i < cells; ++i) x[i] = (mean.ptr()[l * cells + i] + (i % (n + 1) == 0 ? 1.f : 0.f)) / 2;
    normalise_rows(x, n, n);
    if (l == 0)
      std::copy_n(x, cells, out.mutable_ptr());
    else
      product(x, out.ptr() + (l - 1) * cells, n, n, n, out.mutable_ptr() + l * cells);
  }
  return out;
}

}  // namespace

TransformerAttention transformer_attention(const Transformer& model, const Ids& source, const Ids& source_lens,
                                           const Ids& target_in, const AttentionEdits& edits,
                                           const MapsWanted& wanted) {
  check(source.rank() == 2 && source.size(0) == 1 && target_in.rank() == 2 && target_in.size(0) == 1,
        "[attention_maps] expected one sentence pair, got source ", source.shape(), " and target ", target_in.shape());
  check_edits(edits, model.config.facts());
  const TapePause pause;
  Collected seen(wanted);
  EditProbe probe(edits, &seen);
  Run run;
  run.probe = &probe;
  model.features(source, source_lens, target_in, run);
  std::vector<const MultiHead*> encoder, decoder, cross;
  for (const TransformerBlock& block : model.encoder.stack.blocks) encoder.push_back(&block.self);
  for (const TransformerBlock& block : model.decoder.stack.blocks) {
    decoder.push_back(&block.self);
    cross.push_back(&*block.cross);
  }
  const Both e = stacked(seen, "encoder", "self", encoder, wanted),
             d = stacked(seen, "decoder", "self", decoder, wanted),
             c = stacked(seen, "decoder", "cross", cross, wanted);
  return {{e.weights, d.weights, c.weights}, {e.value_weighted, d.value_weighted, c.value_weighted}};
}

AttentionMaps mean_of_heads(const AttentionMaps& maps) {
  return {mean_of_heads(maps.encoder), mean_of_heads(maps.decoder), mean_of_heads(maps.cross)};
}

Tensor rollout(const Tensor& weights) { return self_rollout(mean_of_heads(weights)); }

StackAttention stack_attention(const TransformerStack& stack, const std::string& prefix,
                               const std::function<void(const Run&)>& pass, const AttentionEdits& edits,
                               const MapsWanted& wanted) {
  const TapePause pause;
  Collected seen(wanted);
  EditProbe probe(edits, &seen);
  Run run;
  run.probe = &probe;
  pass(run);
  std::vector<const MultiHead*> layers;
  for (const TransformerBlock& block : stack.blocks) layers.push_back(&block.self);
  const Both both = stacked(seen, prefix, "self", layers, wanted);
  return {both.weights, both.value_weighted};
}

AttentionMaps rollout(const AttentionMaps& weights) {
  const AttentionMaps mean = mean_of_heads(weights);
  AttentionMaps out{self_rollout(mean.encoder), self_rollout(mean.decoder), {}};
  if (!mean.cross.defined()) return out;
  out.cross = Tensor::empty(mean.cross.shape());
  const int64_t layers = mean.cross.size(0), n = mean.cross.size(2), m = mean.cross.size(3);
  const float* source = out.encoder.ptr() + (out.encoder.size(0) - 1) * m * m;
  for (int64_t l = 0; l < layers; ++l)
    product(mean.cross.ptr() + l * n * m, source, n, m, m, out.cross.mutable_ptr() + l * n * m);
  return out;
}

}  // namespace qkv
