// From settings and weights to the files of a folder: the inverse of what the architectures read.
#include "qkv/tasks/pretrained/export.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "qkv/core/check.h"
#include "qkv/io/atomic_file.h"
#include "qkv/io/safetensors.h"
#include "qkv/run/run_folder.h"
#include "qkv/tasks/language/generator.h"
#include "qkv/tasks/pretrained/activations.h"
#include "qkv/tasks/pretrained/export_folder.h"
#include "qkv/tasks/pretrained/gpt2.h"
#include "qkv/tasks/pretrained/llama.h"
#include "qkv/tasks/pretrained/marian.h"
#include "qkv/tasks/pretrained/start.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv {

void check_needed(const std::string& model, const Settings& settings, std::span<const NeededSetting> needed,
                  std::string_view architecture) {
  for (const auto& [name, value] : needed) {
    if (!settings.has(name)) continue;  // another kind of model, which model.kind says first
    const std::string found = settings.find(name).get();
    if (found == value) continue;
    throw Error(
        tr("{model}: {setting} is {found}, but a {architecture} model of Hugging Face has {value}", "model"_a = model,
           "setting"_a = name, "found"_a = found, "architecture"_a = architecture, "value"_a = value),
        tr("what is written: models that started from a pretrained folder (qkv train --init DIR), with the "
           "settings that it has"));
  }
}

double plain_number(float x) { return std::stod(text(x)); }

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kGeneration = "generation_config.json";

constexpr NeededSetting kMarian[] = {{"model.kind", "transformer"},     {"model.attention", "scaled-dot"},
                                     {"model.attention_kind", "exact"}, {"model.key_heads", "same"},
                                     {"model.encoder_heads", "\"\""},   {"model.decoder_heads", "\"\""},
                                     {"model.cross_heads", "\"\""},     {"model.norm", "post"},
                                     {"model.norm_kind", "layer"},      {"model.norm_eps", "1e-05"},
                                     {"model.ffn_kind", "plain"},       {"model.positions", "sinusoidal"},
                                     {"model.waves", "halves"},         {"model.bias", "true"},
                                     {"model.ffn_bias", "true"},        {"model.norm_bias", "true"},
                                     {"model.output_bias", "true"},     {"model.tied", "true"}};
constexpr NeededSetting kLanguage[] = {
    {"model.objective", "causal"},   {"model.attention", "scaled-dot"}, {"model.attention_kind", "exact"},
    {"model.encoder_heads", "\"\""}, {"model.decoder_heads", "\"\""},   {"model.cross_heads", "\"\""},
    {"model.norm", "pre"},           {"model.output_bias", "false"},    {"model.scale_embeddings", "false"}};
constexpr NeededSetting kGpt2[] = {{"model.norm_kind", "layer"}, {"model.positions", "learned"},
                                   {"model.key_heads", "same"},  {"model.ffn_kind", "plain"},
                                   {"model.bias", "true"},       {"model.ffn_bias", "true"},
                                   {"model.norm_bias", "true"},  {"model.tied", "true"}};
constexpr NeededSetting kLlama[] = {{"model.norm_kind", "rms"},
                                    {"model.positions", "rotary"},
                                    {"model.rotary_pairs", "halves"},
                                    {"model.ffn_kind", "gated"}};

// A tokenizer that we made from a text is none of those that the format's programs have.
const PretrainedTokenizer& needed_tokenizer(const std::string& model, const PretrainedTokenizer* tokenizer) {
  if (!tokenizer)
    throw Error(tr("{model}: its tokenizer is one of qkv, for which the format has no place", "model"_a = model),
                tr("what is written: models that started from a pretrained folder (qkv train --init DIR), with the "
                   "settings that it has"));
  for (const std::string& file : tokenizer->files())
    require(file != "tokenizer.bin",
            "{model}: its tokenizer is llama2.c's tokenizer.bin, which no program of Hugging Face reads",
            "model"_a = model);
  return *tokenizer;
}

Json lists_of_one(const std::vector<int32_t>& ids) {
  Json out = Json::array();
  for (const int32_t id : ids) out.push_back(Json::array({id}));
  return out;
}

ExportFolder marian_folder(const std::string& model, const Translator& translator) {
  TranslationConfig config = translator.config();
  check_needed(model, config.settings(), kMarian, "Marian");
  const Tokenizer& tokenizer = translator.tokenizers().target;
  ExportFolder out{.architecture = Architecture::marian,
                   .config = {},
                   .others = {},
                   .weights = {},
                   .tokenizer = &needed_tokenizer(model, tokenizer.pretrained())};
  const TransformerConfig& o = config.transformer();
  const int64_t words = tokenizer.size();
  const Json json = {{"architectures", {"MarianMTModel"}},
                     {"model_type", "marian"},
                     {"activation_dropout", plain_number(o.inner_dropout)},
                     {"activation_function", activation_word(o.activation, SiluWord::swish)},
                     {"attention_dropout", plain_number(o.attention_rate())},
                     {"bos_token_id", tokenizer.eos()},
                     {"d_model", o.hidden},
                     {"decoder_attention_heads", o.heads},
                     {"decoder_ffn_dim", o.ffn},
                     {"decoder_layers", o.decoder_depth()},
                     {"decoder_start_token_id", tokenizer.bos()},
                     {"decoder_vocab_size", words},
                     {"dropout", plain_number(o.dropout)},
                     {"encoder_attention_heads", o.heads},
                     {"encoder_ffn_dim", o.ffn},
                     {"encoder_layers", o.layers},
                     {"eos_token_id", tokenizer.eos()},
                     {"forced_eos_token_id", tokenizer.eos()},
                     {"is_encoder_decoder", true},
                     {"max_position_embeddings", o.max_positions},
                     {"pad_token_id", tokenizer.pad()},
                     {"scale_embedding", o.scale_embeddings},
                     {"share_encoder_decoder_embeddings", true},
                     {"static_position_embeddings", true},
                     {"tie_word_embeddings", true},
                     {"torch_dtype", "float32"},
                     {"vocab_size", words}};
  out.config = json.dump(2);
  const TranslationDecodingConfig& d = config.decoding;
  Json generation = {{"bad_words_ids", lists_of_one(d.never)}, {"decoder_start_token_id", tokenizer.bos()},
                     {"eos_token_id", tokenizer.eos()},        {"forced_eos_token_id", tokenizer.eos()},
                     {"length_penalty", d.length_penalty},     {"num_beams", d.beam},
                     {"pad_token_id", tokenizer.pad()}};
  if (d.never.empty()) generation.erase("bad_words_ids");
  if (d.max_length > 0) generation["max_length"] = std::min(d.max_length + 1, o.max_positions);
  out.others[kGeneration] = generation.dump(2);
  out.weights = in_their_layout(translator.model().parameters(), marian_table(), [&](const std::string&) {
    return Shape({1, words});  // final_logits_bias
  });
  return out;
}

Json config_of_gpt2(const LanguageModelConfig& model) {
  const TransformerConfig& o = model.transformer;
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"activation_function", activation_word(o.activation, SiluWord::silu)},
          {"attn_pdrop", plain_number(o.attention_rate())},
          {"embd_pdrop", plain_number(o.dropout)},
          {"layer_norm_epsilon", plain_number(o.norm_eps)},
          {"n_embd", o.hidden},
          {"n_head", o.heads},
          {"n_inner", o.ffn == 4 * o.hidden ? Json(nullptr) : Json(o.ffn)},
          {"n_layer", o.layers},
          {"n_positions", model.context},
          {"resid_pdrop", plain_number(o.dropout)},
          {"scale_attn_by_inverse_layer_idx", false},
          {"scale_attn_weights", true},
          {"tie_word_embeddings", true}};
}

Json config_of_llama(const LanguageModelConfig& model) {
  const TransformerConfig& o = model.transformer;
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"attention_bias", o.bias},
          {"attention_dropout", plain_number(o.attention_rate())},
          {"head_dim", o.hidden / o.heads},
          {"hidden_act", activation_word(o.activation, SiluWord::silu)},
          {"hidden_size", o.hidden},
          {"intermediate_size", o.ffn},
          {"max_position_embeddings", model.context},
          {"mlp_bias", o.ffn_bias},
          {"num_attention_heads", o.heads},
          {"num_hidden_layers", o.layers},
          {"num_key_value_heads", o.key_head_count()},
          {"rms_norm_eps", plain_number(o.norm_eps)},
          {"rope_theta", o.rotary_base},
          {"rope_parameters", {{"rope_theta", o.rotary_base}, {"rope_type", "default"}}},
          {"tie_word_embeddings", o.tied}};
}

ExportFolder language_folder(const std::string& model, const LanguageGenerator& generator) {
  LanguageConfig config = generator.config();
  const TransformerConfig& o = config.model.transformer;
  const Settings settings = config.settings();
  const bool llama = o.norm_kind == NormKind::rms || o.positions == PositionKind::rotary;
  const std::string_view name = llama ? "Llama" : "GPT-2";
  check_needed(model, settings, kLanguage, name);
  check_needed(model, settings, llama ? std::span<const NeededSetting>(kLlama) : kGpt2, name);
  const TextTokenizer& tokenizer = generator.tokenizer();
  ExportFolder out{.architecture = llama ? Architecture::llama : Architecture::gpt2,
                   .config = {},
                   .others = {},
                   .weights = {},
                   .tokenizer = &needed_tokenizer(model, tokenizer.pretrained())};
  const GenerationConfig& d = config.decoding;
  Json json = llama ? config_of_llama(config.model) : config_of_gpt2(config.model), generation = Json::object();
  const auto id_or_null = [](int32_t id) { return id < 0 ? Json(nullptr) : Json(id); };
  const Json ends = d.ends.size() == 1 ? Json(d.ends[0]) : Json(d.ends);
  for (Json* one : {&json, &generation}) {
    (*one)["bos_token_id"] = id_or_null(tokenizer.pretrained()->special().bos);
    (*one)["eos_token_id"] = d.ends.empty() ? Json(nullptr) : ends;
  }
  json["vocab_size"] = tokenizer.size();
  json["torch_dtype"] = "float32";
  out.config = json.dump(2);
  if (!d.never.empty()) generation["suppress_tokens"] = d.never;
  if (d.repetition_penalty != 1) generation["repetition_penalty"] = d.repetition_penalty;
  if (d.temperature > 0) {
    generation["do_sample"] = true;
    generation["temperature"] = d.temperature;
    generation["top_k"] = d.top_k;
    generation["top_p"] = d.top_p;
  }
  out.others[kGeneration] = generation.dump(2);
  out.weights = in_their_layout(in_place(generator.model()), llama ? llama_table(o.tied) : gpt2_table(true), {});
  return out;
}

// CTranslate2 lists the vocabulary that others number; its SentencePiece model has another name.
void write_tokenizer(const PretrainedTokenizer& tokenizer, const std::string& folder) {
  tokenizer.save(folder);
  const std::string list = folder + "/shared_vocabulary.json", model = folder + "/sentencepiece.model";
  if (!fs::exists(list)) return;
  Json numbers = Json::object();
  for (int32_t id = 0; id < tokenizer.size(); ++id) numbers[tokenizer.piece(id)] = id;
  write_file(folder + "/vocab.json", numbers.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  fs::remove(list);
  if (fs::exists(model)) fs::rename(model, folder + "/source.spm");
}

std::string licence_of_model(const std::string& model) {
  if (is_pretrained_folder(model)) return licence_of(model);
  const auto start = read_start(model);
  return start ? start->licence : "";
}

void write(ExportFolder& files, const std::string& licence, const std::string& folder) {
  if (files.tokenizer) write_tokenizer(*files.tokenizer, folder);
  if (!licence.empty()) write_file(folder + "/README.md", "---\nlicense: " + licence + "\n---\n");
  write_safetensors(folder + "/model.safetensors", files.weights, {{"format", "pt"}});
  for (const auto& [name, content] : files.others) {
    if (name.find('/') != std::string::npos) make_folder(fs::path(folder + "/" + name).parent_path().string());
    write_file(folder + "/" + name, content + "\n");
  }
  write_file(folder + "/config.json", files.config + "\n");
}

// With a model in memory as long as its tensors are needed.
Exported write_from(ExportFolder files, const std::string& model, const std::string& folder) {
  Exported out{.architecture = files.architecture,
               .tensors = std::ssize(files.weights),
               .parameters = 0,
               .left_out = files.left_out};
  for (const auto& [name, tensor] : files.weights) out.parameters += tensor.numel();
  make_folder(folder);
  try {
    write(files, licence_of_model(model), folder);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    throw;
  }
  return out;
}

}  // namespace

Exported export_model(const std::string& model, const std::string& folder, ExportFormat) {
  require(!fs::exists(folder), "{folder}: already exists; choose another folder with -o", "folder"_a = folder);
  switch (const TaskKind task = run_task(model)) {
    case TaskKind::translation: {
      if (!is_pretrained_folder(model)) {  // before its weights are read
        TranslationConfig config = read_run_config(run_config_path(model, task));
        check_needed(model, config.settings(), kMarian, "Marian");
      }
      const Translator translator(model);
      return write_from(marian_folder(model, translator), model, folder);
    }
    case TaskKind::language: {
      const LanguageGenerator generator(model);
      return write_from(language_folder(model, generator), model, folder);
    }
    case TaskKind::encoding: {
      const SentenceEncoder encoder(model);
      return write_from(bert_folder(model, encoder), model, folder);
    }
    case TaskKind::vision: {
      const Classifier classifier(model);
      return write_from(vit_folder(model, classifier), model, folder);
    }
  }
  return {};
}

}  // namespace qkv
