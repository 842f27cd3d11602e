// Encoders of texts and images as folders: BERT, RoBERTa and ViT.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ranges>

#include "qkv/core/check.h"
#include "qkv/tasks/pretrained/activations.h"
#include "qkv/tasks/pretrained/export_folder.h"
#include "qkv/tasks/pretrained/vit.h"

namespace qkv {
namespace {

using Json = nlohmann::ordered_json;

constexpr NeededSetting kVit[] = {{"model.pooling", "cls"},
                                  {"model.positions", "learned"},
                                  {"model.norm", "pre"},
                                  {"model.attention", "scaled-dot"},
                                  {"model.bias", "true"}};

void put_classes(Json& config, const std::vector<std::string>& classes) {
  for (size_t i = 0; i < classes.size(); ++i) {
    config["id2label"][std::to_string(i)] = classes[i];
    config["label2id"][classes[i]] = i;
  }
}

// config.json; every folder has its weights in float32.
std::string written(Json config) {
  config["torch_dtype"] = "float32";
  return config.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string class_name(Architecture architecture, EncoderHead head) {
  const std::string family = architecture == Architecture::bert      ? "Bert"
                             : architecture == Architecture::roberta ? "Roberta"
                                                                     : "XLMRoberta";
  constexpr std::string_view kHeads[] = {"Model", "ForMaskedLM", "ForSequenceClassification"};
  return family + std::string(kHeads[static_cast<size_t>(head)]);
}

Json id_or_null(int32_t id) { return id < 0 ? Json(nullptr) : Json(id); }

// How sentence-transformers makes a vector of a text.
void put_modules(const SentenceModules& modules, int64_t width, std::map<std::string, std::string>& others) {
  const auto put = [&](const char* name, const Json& json) { others[name] = json.dump(2); };
  Json list = Json::array();
  const auto add = [&](const char* path, const char* type) {
    const size_t number = list.size();
    list.push_back({{"idx", number},
                    {"name", std::to_string(number)},
                    {"path", path},
                    {"type", std::string("sentence_transformers.models.") + type}});
  };
  add("", "Transformer");
  add("1_Pooling", "Pooling");
  if (modules.normalize) add("2_Normalize", "Normalize");
  put("modules.json", list);
  put("1_Pooling/config.json", {{"word_embedding_dimension", width},
                                {"pooling_mode_cls_token", modules.pooling == TextPooling::cls},
                                {"pooling_mode_mean_tokens", modules.pooling == TextPooling::mean},
                                {"pooling_mode_max_tokens", modules.pooling == TextPooling::max},
                                {"pooling_mode_mean_sqrt_len_tokens", false}});
  Json transformer = Json::object();
  if (modules.most) transformer["max_seq_length"] = *modules.most;
  transformer["do_lower_case"] = modules.lowercase;
  put("sentence_bert_config.json", transformer);
  if (!modules.prompt.empty())
    put("config_sentence_transformers.json",
        {{"prompts", {{"default", modules.prompt}}}, {"default_prompt_name", "default"}});
}

// Poolers and heads that we do not compute; not the buffers of numbers that every program makes anew.
std::vector<std::string> left_out_of(const PretrainedWeights& weights, const BertTable& table,
                                     const std::map<std::string, Tensor>& written) {
  std::vector<std::string> out;
  for (const std::string_view ignored : table.ignored) {
    const auto is_it = [&](const std::string& name) { return name.ends_with(ignored); };
    if (ignored.ends_with("_ids") || std::ranges::any_of(written | std::views::keys, is_it)) continue;
    for (const std::string& name : weights.names())
      if (is_it(name)) out.push_back(name);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace

ExportFolder bert_folder(const std::string& model, const SentenceEncoder& encoder) {
  const BertConfig& bert = encoder.config();
  const TransformerConfig& o = bert.model.blocks;
  const Architecture architecture = encoder.architecture();
  const SpecialIds& special = encoder.tokenizer().special();
  ExportFolder out{
      .architecture = architecture, .config = {}, .others = {}, .weights = {}, .tokenizer = &encoder.tokenizer()};
  Json config = {{"architectures", {class_name(architecture, bert.head)}},
                 {"model_type", name_of(architecture)},
                 {"attention_probs_dropout_prob", plain_number(o.attention_rate())},
                 {"bos_token_id", id_or_null(special.bos)},
                 {"eos_token_id", id_or_null(special.eos)},
                 {"hidden_act", activation_word(o.activation, SiluWord::silu)},
                 {"hidden_dropout_prob", plain_number(o.dropout)},
                 {"hidden_size", o.hidden},
                 {"intermediate_size", o.ffn},
                 {"is_decoder", false},
                 {"layer_norm_eps", plain_number(o.norm_eps)},
                 {"max_position_embeddings", o.max_positions},
                 {"num_attention_heads", o.heads},
                 {"num_hidden_layers", o.layers},
                 {"pad_token_id", bert.pad},
                 {"tie_word_embeddings", bert.tied},
                 {"type_vocab_size", bert.model.types},
                 {"vocab_size", bert.model.words}};
  if (bert.head == EncoderHead::classes) {
    put_classes(config, bert.classes);
    config["problem_type"] =
        bert.outputs == ClassOutputs::one ? "single_label_classification" : "multi_label_classification";
  }
  out.config = written(config);
  if (encoder.modules().given) put_modules(encoder.modules(), o.hidden, out.others);
  const auto table = bert_table(architecture, bert, nullptr);
  out.weights = in_their_layout(in_place(encoder.model()), table->table, {});
  if (is_pretrained_folder(model)) out.left_out = left_out_of(PretrainedWeights(model), *table, out.weights);
  return out;
}

ExportFolder vit_folder(const std::string& model, const Classifier& classifier) {
  VisionConfig config = classifier.config();
  check_needed(model, config.settings(), kVit, "ViT");
  const VisionTransformerConfig& o = config.model;
  const ImageFacts& facts = classifier.facts();
  const ImageSize& size = facts.size;
  ExportFolder out{.architecture = Architecture::vit, .config = {}, .others = {}, .weights = {}, .tokenizer = nullptr};
  const auto sides = [](int64_t height, int64_t width) { return height == width ? Json(height) : Json{height, width}; };
  Json json = {{"architectures", {"ViTForImageClassification"}},
               {"model_type", "vit"},
               {"attention_probs_dropout_prob", plain_number(o.dropout)},
               {"hidden_act", activation_word(o.activation, SiluWord::silu)},
               {"hidden_dropout_prob", plain_number(o.embedding_dropout)},
               {"hidden_size", o.hidden},
               {"image_size", sides(size.height, size.width)},
               {"intermediate_size", o.ffn},
               {"layer_norm_eps", plain_number(o.norm_eps)},
               {"num_attention_heads", o.heads},
               {"num_channels", size.channels},
               {"num_hidden_layers", o.layers},
               {"patch_size", o.patch},
               {"qkv_bias", true}};
  put_classes(json, facts.classes);
  out.config = written(json);
  const ImageScaling& scaling = classifier.scaling();
  const auto of_channels = [&](const std::array<double, 3>& x) {
    return std::vector<double>(x.begin(), x.begin() + size.channels);
  };
  const Json preprocessor = {{"do_normalize", true},
                             {"do_rescale", true},
                             {"do_resize", classifier.stretches()},
                             {"image_mean", of_channels(scaling.mean)},
                             {"image_processor_type", "ViTImageProcessor"},
                             {"image_std", of_channels(scaling.deviation)},
                             {"resample", scaling.filter == ImageFilter::bicubic ? 3 : 2},
                             {"rescale_factor", 1 / 255.0},
                             {"size", {{"height", size.height}, {"width", size.width}}}};
  out.others["preprocessor_config.json"] = preprocessor.dump(2);
  out.weights = in_their_layout(in_place(classifier.model()), vit_table(), [&](const std::string& theirs) {
    return theirs.ends_with("position_embeddings") ? Shape({1, o.tokens(size), o.hidden})
                                                   : Shape({o.hidden, size.channels, o.patch, o.patch});
  });
  return out;
}

}  // namespace qkv
