// Places of tensors in model.bin, and their names here.
#include "qkv/tasks/pretrained/llama2c.h"

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"

namespace qkv {
namespace {

constexpr size_t kHeader = 7;
constexpr uint64_t kHeaderBytes = kHeader * sizeof(int32_t);
constexpr int32_t kTextBegin = 1, kTextEnd = 2;  // <s> and </s>: where run.c stops

constexpr WeightRule kRules[] = {
    {"model.embedding.weight", "tok_embeddings.weight"},
    {"model.*.self.to_q.weight", "layers.*.attention.wq.weight"},
    {"model.*.self.to_k.weight", "layers.*.attention.wk.weight"},
    {"model.*.self.to_v.weight", "layers.*.attention.wv.weight"},
    {"model.*.self.to_out.weight", "layers.*.attention.wo.weight"},
    {"model.*.self_norm.gamma", "layers.*.attention_norm.weight"},
    {"model.*.ffn.gate.weight", "layers.*.feed_forward.w1.weight"},
    {"model.*.ffn.up.weight", "layers.*.feed_forward.w3.weight"},
    {"model.*.ffn.down.weight", "layers.*.feed_forward.w2.weight"},
    {"model.*.ffn_norm.gamma", "layers.*.ffn_norm.weight"},
    {"model.norm.gamma", "norm.weight"},
};
constexpr WeightRule kOwnOutput{"model.output.weight", "output.weight"};
constexpr WeightRule kTiedOutput{"model.output.weight", "tok_embeddings.weight"};

}  // namespace

Llama2cWeights::Llama2cWeights(const std::string& folder) : folder_(folder), file_(folder + "/model.bin") {
  read_header();
  place_tensors();
  pages_ = file_.mapped();
}

void Llama2cWeights::read_header() {
  require(file_.size() >= kHeaderBytes, "{path}: has {size} bytes, expected a header of {header} bytes and weights",
          "path"_a = file_.path(), "size"_a = grouped(file_.size()), "header"_a = kHeaderBytes);
  std::array<int32_t, kHeader> header{};
  file_.read(0, std::as_writable_bytes(std::span(header)));
  const auto number = [&](size_t i, const char* name, int64_t most) {
    // A negative vocabulary says that the output layer has a matrix of its own.
    const int64_t found = header[i], size = name == std::string_view("vocab_size") && found < 0 ? -found : found;
    require(size >= 1 && size <= most,
            "{path}: {name} is {found}, expected 1 to {most}: is this a model.bin of llama2.c?",
            "path"_a = file_.path(), "name"_a = name, "found"_a = found, "most"_a = most);
    return size;
  };
  LanguageModelConfig& model = settings_.config.model;
  TransformerConfig& o = model.transformer;
  o.hidden = number(0, "dim", 65536);
  o.ffn = number(1, "hidden_dim", 1'000'000);
  o.layers = number(2, "n_layers", 1024);
  o.heads = number(3, "n_heads", 1024);
  const int64_t key_heads = number(4, "n_kv_heads", 1024);
  settings_.words = number(5, "vocab_size", kMostRows);
  model.context = number(6, "seq_len", 10'000'000);
  const bool fits = o.hidden % o.heads == 0 && o.heads % key_heads == 0 && o.hidden / o.heads % 2 == 0;
  require(fits, "{path}: dim {dim}, n_heads {heads} and n_kv_heads {key_heads} do not fit together",
          "path"_a = file_.path(), "dim"_a = o.hidden, "heads"_a = o.heads, "key_heads"_a = key_heads);
  o.key_heads = key_heads == o.heads ? std::nullopt : std::optional(key_heads);
  o.tied = header[5] > 0;
  o.ffn_kind = FeedForwardKind::gated;
  o.activation = Activation::silu;
  o.norm = NormPlace::pre;
  o.norm_kind = NormKind::rms;
  o.norm_eps = 1e-5f;
  o.positions = PositionKind::rotary;
  o.rotary_pairs = RotaryPairs::neighbours;
  o.bias = o.ffn_bias = o.norm_bias = o.output_bias = o.scale_embeddings = false;
  o.dropout = 0;
  settings_.ends = {kTextBegin, kTextEnd};
  settings_.config.decoding.temperature = 1;  // as run.c, as is top_p
  settings_.config.decoding.top_p = 0.9;
}

void Llama2cWeights::place_tensors() {
  const TransformerConfig& o = settings_.config.model.transformer;
  const int64_t d = o.hidden, k = d / o.heads * o.key_head_count(), words = settings_.words;
  uint64_t offset = kHeaderBytes;
  const auto place = [&](const std::string& name, const Shape& shape) {
    places_.emplace(name, Place{shape, offset});
    offset += static_cast<uint64_t>(shape.numel()) * sizeof(float);
  };
  const auto per_layer = [&](const char* name, const Shape& shape) {
    for (int64_t i = 0; i < o.layers; ++i) place(text("layers.", i, ".", name, ".weight"), shape);
  };
  place("tok_embeddings.weight", {words, d});
  per_layer("attention_norm", {d});
  per_layer("attention.wq", {d, d});
  per_layer("attention.wk", {k, d});
  per_layer("attention.wv", {k, d});
  per_layer("attention.wo", {d, d});
  per_layer("ffn_norm", {d});
  per_layer("feed_forward.w1", {o.ffn, d});
  per_layer("feed_forward.w2", {d, o.ffn});
  per_layer("feed_forward.w3", {o.ffn, d});
  place("norm.weight", {d});
  offset += static_cast<uint64_t>(settings_.config.model.context * (d / o.heads)) * sizeof(float);  // sines, cosines
  if (!o.tied) place("output.weight", {words, d});
  require(file_.size() == offset, "{path}: has {size} bytes, but its header asks for {needed}", "path"_a = file_.path(),
          "size"_a = grouped(file_.size()), "needed"_a = grouped(offset));
}

std::vector<std::string> Llama2cWeights::names() const {
  std::vector<std::string> out;
  for (const auto& [name, place] : places_) out.push_back(name);
  return out;
}

Tensor Llama2cWeights::tensor(const std::string& name) const {
  const Place& place = places_.at(name);
  Tensor out = Tensor::borrowed(place.shape, reinterpret_cast<float*>(pages_.get() + place.offset), pages_);
  check_finite(out, file_.path(), name);
  return out;
}

void Llama2cWeights::release(const std::string& name) const {
  const Place& place = places_.at(name);
  drop_pages(pages_.get() + place.offset, static_cast<size_t>(place.shape.numel()) * sizeof(float));
}

WeightTable llama2c_table(bool tied) {
  static const auto tied_rules = with_rule(kRules, kTiedOutput), own_rules = with_rule(kRules, kOwnOutput);
  return {.architecture = "llama2.c", .rules = tied ? tied_rules : own_rules};
}

std::unique_ptr<LanguageModel> open_llama2c_model(const Llama2cWeights& weights) {
  const LanguageModelConfig& c = weights.settings().config.model;
  return std::make_unique<LanguageModel>(with_pretrained_weights(
      [&] { return LanguageModel(c, weights.settings().words, Rng(0)); }, weights, llama2c_table(c.transformer.tied)));
}

}  // namespace qkv
