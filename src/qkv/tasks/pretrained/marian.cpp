// Marian: a Transformer with post-norm, sines and cosines in halves, tied embeddings and a bias on the logits.
#include "qkv/tasks/pretrained/marian.h"

#include <algorithm>
#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/tasks/pretrained/activations.h"
#include "qkv/tasks/pretrained/ctranslate2.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/start.h"

namespace qkv {
namespace {

constexpr WeightRule kRules[] = {
    {"encoder.embedding.weight", "model.shared.weight"},
    {"encoder.*.self.to_q.weight", "model.encoder.layers.*.self_attn.q_proj.weight"},
    {"encoder.*.self.to_q.bias", "model.encoder.layers.*.self_attn.q_proj.bias"},
    {"encoder.*.self.to_k.weight", "model.encoder.layers.*.self_attn.k_proj.weight"},
    {"encoder.*.self.to_k.bias", "model.encoder.layers.*.self_attn.k_proj.bias"},
    {"encoder.*.self.to_v.weight", "model.encoder.layers.*.self_attn.v_proj.weight"},
    {"encoder.*.self.to_v.bias", "model.encoder.layers.*.self_attn.v_proj.bias"},
    {"encoder.*.self.to_out.weight", "model.encoder.layers.*.self_attn.out_proj.weight"},
    {"encoder.*.self.to_out.bias", "model.encoder.layers.*.self_attn.out_proj.bias"},
    {"encoder.*.self_norm.gamma", "model.encoder.layers.*.self_attn_layer_norm.weight"},
    {"encoder.*.self_norm.beta", "model.encoder.layers.*.self_attn_layer_norm.bias"},
    {"encoder.*.ffn.first.weight", "model.encoder.layers.*.fc1.weight"},
    {"encoder.*.ffn.first.bias", "model.encoder.layers.*.fc1.bias"},
    {"encoder.*.ffn.second.weight", "model.encoder.layers.*.fc2.weight"},
    {"encoder.*.ffn.second.bias", "model.encoder.layers.*.fc2.bias"},
    {"encoder.*.ffn_norm.gamma", "model.encoder.layers.*.final_layer_norm.weight"},
    {"encoder.*.ffn_norm.beta", "model.encoder.layers.*.final_layer_norm.bias"},
    {"decoder.embedding.weight", "model.shared.weight"},
    {"decoder.*.self.to_q.weight", "model.decoder.layers.*.self_attn.q_proj.weight"},
    {"decoder.*.self.to_q.bias", "model.decoder.layers.*.self_attn.q_proj.bias"},
    {"decoder.*.self.to_k.weight", "model.decoder.layers.*.self_attn.k_proj.weight"},
    {"decoder.*.self.to_k.bias", "model.decoder.layers.*.self_attn.k_proj.bias"},
    {"decoder.*.self.to_v.weight", "model.decoder.layers.*.self_attn.v_proj.weight"},
    {"decoder.*.self.to_v.bias", "model.decoder.layers.*.self_attn.v_proj.bias"},
    {"decoder.*.self.to_out.weight", "model.decoder.layers.*.self_attn.out_proj.weight"},
    {"decoder.*.self.to_out.bias", "model.decoder.layers.*.self_attn.out_proj.bias"},
    {"decoder.*.self_norm.gamma", "model.decoder.layers.*.self_attn_layer_norm.weight"},
    {"decoder.*.self_norm.beta", "model.decoder.layers.*.self_attn_layer_norm.bias"},
    {"decoder.*.cross.to_q.weight", "model.decoder.layers.*.encoder_attn.q_proj.weight"},
    {"decoder.*.cross.to_q.bias", "model.decoder.layers.*.encoder_attn.q_proj.bias"},
    {"decoder.*.cross.to_k.weight", "model.decoder.layers.*.encoder_attn.k_proj.weight"},
    {"decoder.*.cross.to_k.bias", "model.decoder.layers.*.encoder_attn.k_proj.bias"},
    {"decoder.*.cross.to_v.weight", "model.decoder.layers.*.encoder_attn.v_proj.weight"},
    {"decoder.*.cross.to_v.bias", "model.decoder.layers.*.encoder_attn.v_proj.bias"},
    {"decoder.*.cross.to_out.weight", "model.decoder.layers.*.encoder_attn.out_proj.weight"},
    {"decoder.*.cross.to_out.bias", "model.decoder.layers.*.encoder_attn.out_proj.bias"},
    {"decoder.*.cross_norm.gamma", "model.decoder.layers.*.encoder_attn_layer_norm.weight"},
    {"decoder.*.cross_norm.beta", "model.decoder.layers.*.encoder_attn_layer_norm.bias"},
    {"decoder.*.ffn.first.weight", "model.decoder.layers.*.fc1.weight"},
    {"decoder.*.ffn.first.bias", "model.decoder.layers.*.fc1.bias"},
    {"decoder.*.ffn.second.weight", "model.decoder.layers.*.fc2.weight"},
    {"decoder.*.ffn.second.bias", "model.decoder.layers.*.fc2.bias"},
    {"decoder.*.ffn_norm.gamma", "model.decoder.layers.*.final_layer_norm.weight"},
    {"decoder.*.ffn_norm.beta", "model.decoder.layers.*.final_layer_norm.bias"},
    {"decoder.output.weight", "model.shared.weight"},
    {"decoder.output.bias", "final_logits_bias", WeightChange::reshape},
};
constexpr WeightRepeat kRepeats[] = {{"model.encoder.embed_tokens.weight", "model.shared.weight"},
                                     {"model.decoder.embed_tokens.weight", "model.shared.weight"},
                                     {"lm_head.weight", "model.shared.weight"}};
constexpr std::string_view kIgnored[] = {"model.encoder.embed_positions.weight",
                                         "model.decoder.embed_positions.weight"};

// Refuses two keys of one config.json that differ: encoder and decoder have the same sizes here.
void check_equal(const ModelJson& json, std::string_view a, std::string_view b, int64_t x, int64_t y) {
  require(x == y, "{path}: \"{a}\" is {x} and \"{b}\" is {y}; encoder and decoder must be alike here",
          "path"_a = json.path(), "a"_a = a, "x"_a = x, "b"_a = b, "y"_a = y);
}

TransformerConfig model_of(const ModelJson& json) {
  TransformerConfig o;
  o.hidden = json.whole("d_model", 1, 65536);
  o.layers = json.whole("encoder_layers", 1, 64);
  o.decoder_layers = json.whole("decoder_layers", 1, 64);
  o.heads = json.whole("encoder_attention_heads", 1, 1024);
  check_equal(json, "encoder_attention_heads", "decoder_attention_heads", o.heads,
              json.whole("decoder_attention_heads", 1, 1024));
  o.ffn = json.whole("encoder_ffn_dim", 1, 1'000'000);
  check_equal(json, "encoder_ffn_dim", "decoder_ffn_dim", o.ffn, json.whole("decoder_ffn_dim", 1, 1'000'000));
  require(o.hidden % o.heads == 0, "{path}: \"d_model\" {width} is not a multiple of its {heads} heads",
          "path"_a = json.path(), "width"_a = o.hidden, "heads"_a = o.heads);
  o.activation = read_activation(json, "activation_function", "gelu");
  o.scale_embeddings = json.flag("scale_embedding", false);
  json.expect("static_position_embeddings", true, true);
  json.expect("normalize_before", false, false);
  json.expect("normalize_embedding", false, false);
  json.expect("add_final_layer_norm", false, false);
  json.expect("share_encoder_decoder_embeddings", true, true);
  json.expect("tie_word_embeddings", true, true);
  o.dropout = static_cast<float>(json.number("dropout", 0, 0.99, 0.1));
  o.attention_dropout = static_cast<float>(json.number("attention_dropout", 0, 0.99, 0.0));
  o.inner_dropout = static_cast<float>(json.number("activation_dropout", 0, 0.99, 0.0));
  o.positions = PositionKind::sinusoidal;
  o.waves = Waves::halves;
  o.max_positions = json.whole("max_position_embeddings", 1, 1'000'000, 1024);
  o.norm = NormPlace::post;
  o.bias = o.tied = o.output_bias = true;
  return o;
}

}  // namespace

namespace {

// How a translation model is trained further.
void add_training(TranslationConfig& t) {
  t.decoding.batch_rows = 32;
  t.data.tokenizer = TokenizerKind::pretrained;
  t.data.shared_vocabulary = true;
  t.data.max_tokens = t.transformer().max_positions;
  t.training.by_length = true;
  set_fine_tuning(t.training);
}

// The last row of the embedding is <pad>, with which a translation begins.
MarianConfig read_ctranslate2_config(const std::string& folder) {
  constexpr int64_t kLongest = 511;  // tokens, as OPUS-MT folders say
  const Ctranslate2Weights weights(folder);
  MarianConfig out;
  TranslationConfig& t = out.translation;
  t.model = weights.config();
  out.words = {weights.words(), weights.words()};
  out.pad = out.start = static_cast<int32_t>(weights.words() - 1);
  out.end = PretrainedTokenizer::open(folder, "marian").special().eos;
  t.decoding.never = {out.pad};
  t.decoding.length_penalty = 1;
  t.decoding.max_length = std::min(kLongest, t.transformer().max_positions - 1);
  add_training(t);
  return out;
}

}  // namespace

MarianConfig read_marian_config(const std::string& folder) {
  if (is_ctranslate2_folder(folder)) return read_ctranslate2_config(folder);
  const ModelJson json(folder + "/config.json");
  const std::string generation = folder + "/generation_config.json";
  const ModelJson how(std::filesystem::exists(generation) ? generation : folder + "/config.json");
  MarianConfig out;
  TranslationConfig& t = out.translation;
  t.model = model_of(json);
  const int64_t words = json.whole("vocab_size", 1, kMostRows);
  check_equal(json, "vocab_size", "decoder_vocab_size", words, json.whole("decoder_vocab_size", 1, kMostRows, words));
  out.words = {words, words};
  const int64_t positions = t.transformer().max_positions;
  const auto id = [&](const char* key) { return static_cast<int32_t>(json.whole(key, 0, words - 1)); };
  out.pad = id("pad_token_id");
  out.end = id("eos_token_id");
  out.start = json.has("decoder_start_token_id") ? id("decoder_start_token_id") : out.pad;
  std::vector<int32_t>& never = t.decoding.never = {out.pad};
  for (const char* key : {"bad_words_ids", "suppress_tokens"})
    for (const int64_t one : how.wholes(key, 0, words - 1)) never.push_back(static_cast<int32_t>(one));
  std::ranges::sort(never);
  never.erase(std::ranges::unique(never).begin(), never.end());
  t.decoding.beam = how.whole("num_beams", 1, 1000, 1);
  t.decoding.length_penalty = how.number("length_penalty", 0, 10, 1.0);
  t.decoding.max_length = std::min(how.whole("max_length", 2, kLongestOutput, positions), positions) - 1;
  t.decoding.max_length = std::max<int64_t>(t.decoding.max_length, 1);
  add_training(t);
  return out;
}

WeightTable marian_table() {
  return {.architecture = "Marian", .rules = kRules, .repeats = kRepeats, .ignored = kIgnored};
}

std::unique_ptr<TranslationModel> open_marian_model(const std::string& folder, const MarianConfig& config) {
  const PretrainedSource source = pretrained_source(folder);
  Transformer model =
      with_pretrained_weights([&] { return Transformer(config.translation.transformer(), config.words, Rng(0)); },
                              *source.weights, source.table);
  model.encoder.embedding.positions.prepare();
  model.decoder.embedding.positions.prepare();
  return std::make_unique<TranslationModel>(std::move(model));
}

}  // namespace qkv
