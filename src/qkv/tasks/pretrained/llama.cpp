// Llama: its settings, and the table of its weights.
#include "qkv/tasks/pretrained/llama.h"

#include "qkv/core/check.h"
#include "qkv/tasks/pretrained/activations.h"

namespace qkv {
namespace {

constexpr WeightRule kRules[] = {
    {"model.embedding.weight", "model.embed_tokens.weight"},
    {"model.*.self.to_q.weight", "model.layers.*.self_attn.q_proj.weight"},
    {"model.*.self.to_q.bias", "model.layers.*.self_attn.q_proj.bias"},
    {"model.*.self.to_k.weight", "model.layers.*.self_attn.k_proj.weight"},
    {"model.*.self.to_k.bias", "model.layers.*.self_attn.k_proj.bias"},
    {"model.*.self.to_v.weight", "model.layers.*.self_attn.v_proj.weight"},
    {"model.*.self.to_v.bias", "model.layers.*.self_attn.v_proj.bias"},
    {"model.*.self.to_out.weight", "model.layers.*.self_attn.o_proj.weight"},
    {"model.*.self.to_out.bias", "model.layers.*.self_attn.o_proj.bias"},
    {"model.*.self_norm.gamma", "model.layers.*.input_layernorm.weight"},
    {"model.*.ffn.gate.weight", "model.layers.*.mlp.gate_proj.weight"},
    {"model.*.ffn.gate.bias", "model.layers.*.mlp.gate_proj.bias"},
    {"model.*.ffn.up.weight", "model.layers.*.mlp.up_proj.weight"},
    {"model.*.ffn.up.bias", "model.layers.*.mlp.up_proj.bias"},
    {"model.*.ffn.down.weight", "model.layers.*.mlp.down_proj.weight"},
    {"model.*.ffn.down.bias", "model.layers.*.mlp.down_proj.bias"},
    {"model.*.ffn_norm.gamma", "model.layers.*.post_attention_layernorm.weight"},
    {"model.norm.gamma", "model.norm.weight"},
};
constexpr WeightRule kOwnOutput{"model.output.weight", "lm_head.weight"};
constexpr WeightRule kTiedOutput{"model.output.weight", "model.embed_tokens.weight"};
constexpr WeightRepeat kTiedRepeats[] = {{"lm_head.weight", "model.embed_tokens.weight"}};
constexpr std::string_view kIgnored[] = {"model.layers.*.self_attn.rotary_emb.inv_freq"};

// The base of the angles: under "rope_parameters" in newer folders. Angles that change with the length of the text are
// refused.
double rotary_base(const ModelJson& json) {
  constexpr double kUsual = 10000;
  for (const char* key : {"rope_parameters", "rope_scaling"})
    if (const auto rope = json.object(key))
      for (const char* type : {"rope_type", "type"})
        if (rope->word(type, "default") != "default") rope->wrong(type, "\"default\"");
  const auto rope = json.object("rope_parameters");
  return (rope && rope->has("rope_theta") ? *rope : json).number("rope_theta", 1, 1e12, kUsual);
}

TransformerConfig model_of(const ModelJson& json) {
  TransformerConfig o;
  o.hidden = json.whole("hidden_size", 1, 65536);
  o.layers = json.whole("num_hidden_layers", 1, 1024);
  o.heads = json.whole("num_attention_heads", 1, 1024);
  const int64_t key_heads = json.whole("num_key_value_heads", 1, 1024, o.heads);
  if (key_heads != o.heads) o.key_heads = key_heads;
  require(o.hidden % o.heads == 0, "{path}: \"hidden_size\" {width} is not a multiple of its {heads} heads",
          "path"_a = json.path(), "width"_a = o.hidden, "heads"_a = o.heads);
  require(o.heads % key_heads == 0,
          "{path}: \"num_attention_heads\" {heads} is not a multiple of \"num_key_value_heads\" {key_heads}",
          "path"_a = json.path(), "heads"_a = o.heads, "key_heads"_a = key_heads);
  const int64_t width = o.hidden / o.heads;
  json.whole("head_dim", width, width, width);
  require(width % 2 == 0, "{path}: heads of width {width} have no pairs to rotate: \"hidden_size\" {hidden} / {heads}",
          "path"_a = json.path(), "width"_a = width, "hidden"_a = o.hidden, "heads"_a = o.heads);
  o.ffn = json.whole("intermediate_size", 1, 1'000'000);
  o.ffn_kind = FeedForwardKind::gated;
  o.activation = read_activation(json, "hidden_act", "silu");
  o.norm = NormPlace::pre;
  o.norm_kind = NormKind::rms;
  o.norm_eps = static_cast<float>(json.number("rms_norm_eps", 1e-12, 1, 1e-6));
  o.positions = PositionKind::rotary;
  o.rotary_base = rotary_base(json);
  o.rotary_pairs = RotaryPairs::halves;
  o.bias = json.flag("attention_bias", false);
  o.ffn_bias = json.flag("mlp_bias", false);
  o.norm_bias = o.output_bias = o.scale_embeddings = false;
  o.tied = json.flag("tie_word_embeddings", false);
  o.dropout = 0;
  o.attention_dropout = static_cast<float>(json.number("attention_dropout", 0, 0.99, 0.0));
  return o;
}

}  // namespace

LanguageSettings read_llama_settings(const std::string& folder) {
  const ModelJson json(folder + "/config.json");
  LanguageSettings out;
  LanguageModelConfig& model = out.config.model;
  model.transformer = model_of(json);
  model.context = json.whole("max_position_embeddings", 2, 10'000'000, 2048);
  out.words = json.whole("vocab_size", 1, kMostRows);
  read_generation(folder, json, out);
  return out;
}

WeightTable llama_table(bool tied) {
  static const auto tied_rules = with_rule(kRules, kTiedOutput), own_rules = with_rule(kRules, kOwnOutput);
  const std::span<const WeightRepeat> repeats = kTiedRepeats;
  return {.architecture = "Llama",
          .rules = tied ? tied_rules : own_rules,
          .repeats = tied ? repeats : repeats.first(0),
          .ignored = kIgnored};
}

std::unique_ptr<LanguageModel> open_llama_model(const std::string& folder, const LanguageSettings& settings) {
  const LanguageModelConfig& c = settings.config.model;
  return std::make_unique<LanguageModel>(
      with_pretrained_weights([&] { return LanguageModel(c, settings.words, Rng(0)); }, PretrainedWeights(folder),
                              llama_table(c.transformer.tied)));
}

}  // namespace qkv
