// GPT-2: its settings, and the table of its weights, which are stored as (in, out).
#include "qkv/tasks/pretrained/gpt2.h"

#include "qkv/core/check.h"
#include "qkv/tasks/pretrained/activations.h"

namespace qkv {
namespace {

constexpr WeightChange kCopy = WeightChange::copy, kTranspose = WeightChange::transpose;

constexpr WeightRule kRules[] = {
    {"model.embedding.weight", "wte.weight"},
    {"model.embedding.positions", "wpe.weight"},
    {"model.*.self_norm.gamma", "h.*.ln_1.weight"},
    {"model.*.self_norm.beta", "h.*.ln_1.bias"},
    {"model.*.self.to_q.weight", "h.*.attn.c_attn.weight", kTranspose, 0, 3},
    {"model.*.self.to_k.weight", "h.*.attn.c_attn.weight", kTranspose, 1, 3},
    {"model.*.self.to_v.weight", "h.*.attn.c_attn.weight", kTranspose, 2, 3},
    {"model.*.self.to_q.bias", "h.*.attn.c_attn.bias", kCopy, 0, 3},
    {"model.*.self.to_k.bias", "h.*.attn.c_attn.bias", kCopy, 1, 3},
    {"model.*.self.to_v.bias", "h.*.attn.c_attn.bias", kCopy, 2, 3},
    {"model.*.self.to_out.weight", "h.*.attn.c_proj.weight", kTranspose},
    {"model.*.self.to_out.bias", "h.*.attn.c_proj.bias"},
    {"model.*.ffn_norm.gamma", "h.*.ln_2.weight"},
    {"model.*.ffn_norm.beta", "h.*.ln_2.bias"},
    {"model.*.ffn.first.weight", "h.*.mlp.c_fc.weight", kTranspose},
    {"model.*.ffn.first.bias", "h.*.mlp.c_fc.bias"},
    {"model.*.ffn.second.weight", "h.*.mlp.c_proj.weight", kTranspose},
    {"model.*.ffn.second.bias", "h.*.mlp.c_proj.bias"},
    {"model.norm.gamma", "ln_f.weight"},
    {"model.norm.beta", "ln_f.bias"},
    {"model.output.weight", "wte.weight"},
};
constexpr WeightRepeat kRepeats[] = {{"lm_head.weight", "wte.weight"}};
constexpr std::string_view kIgnored[] = {"h.*.attn.bias", "h.*.attn.masked_bias"};  // causal masks

TransformerConfig model_of(const ModelJson& json) {
  TransformerConfig o;
  o.hidden = json.whole("n_embd", 1, 65536);
  o.layers = json.whole("n_layer", 1, 1024);
  o.heads = json.whole("n_head", 1, 1024);
  require(o.hidden % o.heads == 0, "{path}: \"n_embd\" {width} is not a multiple of its {heads} heads",
          "path"_a = json.path(), "width"_a = o.hidden, "heads"_a = o.heads);
  o.ffn = json.whole("n_inner", 1, 1'000'000, 4 * o.hidden);
  o.activation = read_activation(json, "activation_function", "gelu_new");
  o.norm = NormPlace::pre;
  o.norm_eps = static_cast<float>(json.number("layer_norm_epsilon", 1e-12, 1, 1e-5));
  o.positions = PositionKind::learned;
  json.expect("scale_attn_weights", true, true);
  json.expect("scale_attn_by_inverse_layer_idx", false, false);
  json.expect("add_cross_attention", false, false);
  json.expect("tie_word_embeddings", true, true);
  o.bias = o.tied = true;
  o.output_bias = o.scale_embeddings = false;
  o.dropout = static_cast<float>(json.number("resid_pdrop", 0, 0.99, 0.1));  // of the embeddings as well
  o.attention_dropout = static_cast<float>(json.number("attn_pdrop", 0, 0.99, 0.1));
  return o;
}

}  // namespace

LanguageSettings read_gpt2_settings(const std::string& folder) {
  const ModelJson json(folder + "/config.json");
  LanguageSettings out;
  LanguageModelConfig& model = out.config.model;
  model.transformer = model_of(json);
  model.context = json.whole("n_positions", 2, 10'000'000, 1024);
  out.words = json.whole("vocab_size", 1, kMostRows);
  read_generation(folder, json, out);
  return out;
}

WeightTable gpt2_table(bool inside) {
  return {.architecture = "GPT-2",
          .rules = kRules,
          .repeats = kRepeats,
          .ignored = kIgnored,
          .prefix = inside ? "transformer." : ""};
}

std::unique_ptr<LanguageModel> open_gpt2_model(const std::string& folder, const LanguageSettings& settings) {
  const PretrainedWeights weights(folder);
  return std::make_unique<LanguageModel>(
      with_pretrained_weights([&] { return LanguageModel(settings.config.model, settings.words, Rng(0)); }, weights,
                              gpt2_table(weights.has("transformer.wte.weight"))));
}

}  // namespace qkv
