// BERT and RoBERTa: post-norm blocks on a sum of words, positions and types.
#include "qkv/tasks/pretrained/bert.h"

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/tasks/pretrained/activations.h"

namespace qkv {
namespace {

constexpr WeightRule kEncoder[] = {
    {"encoder.embedding.words", "embeddings.word_embeddings.weight"},
    {"encoder.embedding.positions", "embeddings.position_embeddings.weight"},
    {"encoder.embedding.types", "embeddings.token_type_embeddings.weight"},
    {"encoder.embedding.norm.gamma", "embeddings.LayerNorm.weight"},
    {"encoder.embedding.norm.beta", "embeddings.LayerNorm.bias"},
    {"encoder.*.self.to_q.weight", "encoder.layer.*.attention.self.query.weight"},
    {"encoder.*.self.to_q.bias", "encoder.layer.*.attention.self.query.bias"},
    {"encoder.*.self.to_k.weight", "encoder.layer.*.attention.self.key.weight"},
    {"encoder.*.self.to_k.bias", "encoder.layer.*.attention.self.key.bias"},
    {"encoder.*.self.to_v.weight", "encoder.layer.*.attention.self.value.weight"},
    {"encoder.*.self.to_v.bias", "encoder.layer.*.attention.self.value.bias"},
    {"encoder.*.self.to_out.weight", "encoder.layer.*.attention.output.dense.weight"},
    {"encoder.*.self.to_out.bias", "encoder.layer.*.attention.output.dense.bias"},
    {"encoder.*.self_norm.gamma", "encoder.layer.*.attention.output.LayerNorm.weight"},
    {"encoder.*.self_norm.beta", "encoder.layer.*.attention.output.LayerNorm.bias"},
    {"encoder.*.ffn.first.weight", "encoder.layer.*.intermediate.dense.weight"},
    {"encoder.*.ffn.first.bias", "encoder.layer.*.intermediate.dense.bias"},
    {"encoder.*.ffn.second.weight", "encoder.layer.*.output.dense.weight"},
    {"encoder.*.ffn.second.bias", "encoder.layer.*.output.dense.bias"},
    {"encoder.*.ffn_norm.gamma", "encoder.layer.*.output.LayerNorm.weight"},
    {"encoder.*.ffn_norm.beta", "encoder.layer.*.output.LayerNorm.bias"},
};

// A rule for a weight outside the encoder.
constexpr WeightRule outside(std::string_view ours, std::string_view theirs) {
  WeightRule out{ours, theirs};
  out.prefixed = false;
  return out;
}

constexpr std::string_view kWords = "embeddings.word_embeddings.weight";

constexpr WeightRule kBertHeads[] = {
    outside("words.transform.weight", "cls.predictions.transform.dense.weight"),
    outside("words.transform.bias", "cls.predictions.transform.dense.bias"),
    outside("words.norm.gamma", "cls.predictions.transform.LayerNorm.weight"),
    outside("words.norm.beta", "cls.predictions.transform.LayerNorm.bias"),
    outside("words.output.bias", "cls.predictions.bias"),
    {"classes.dense.weight", "pooler.dense.weight"},
    {"classes.dense.bias", "pooler.dense.bias"},
    outside("classes.output.weight", "classifier.weight"),
    outside("classes.output.bias", "classifier.bias"),
};
constexpr WeightRule kRobertaHeads[] = {
    outside("words.transform.weight", "lm_head.dense.weight"),
    outside("words.transform.bias", "lm_head.dense.bias"),
    outside("words.norm.gamma", "lm_head.layer_norm.weight"),
    outside("words.norm.beta", "lm_head.layer_norm.bias"),
    outside("words.output.bias", "lm_head.bias"),
    outside("classes.dense.weight", "classifier.dense.weight"),
    outside("classes.dense.bias", "classifier.dense.bias"),
    outside("classes.output.weight", "classifier.out_proj.weight"),
    outside("classes.output.bias", "classifier.out_proj.bias"),
};

// Buffers, and heads that we do not compute.
constexpr std::string_view kIgnored[] = {"embeddings.position_ids",     "embeddings.token_type_ids",
                                         "pooler.dense.weight",         "pooler.dense.bias",
                                         "cls.seq_relationship.weight", "cls.seq_relationship.bias"};
constexpr std::string_view kOtherHeads[] = {"qa_outputs.weight", "qa_outputs.bias", "classifier.weight",
                                            "classifier.bias"};

// How the names of one family differ from the other's.
struct Family {
  std::string_view name, prefix, decoder;  // of the head of words
  std::span<const WeightRule> heads;
};
Family family_of(Architecture architecture) {
  if (architecture == Architecture::bert) return {"BERT", "bert.", "cls.predictions.decoder", kBertHeads};
  return {"RoBERTa", "roberta.", "lm_head.decoder", kRobertaHeads};
}

// Which head the name of the model's class stands for: "BertForMaskedLM".
EncoderHead head_of(const ModelJson& json) {
  const std::vector<std::string> names = json.words("architectures");
  const std::string name = names.empty() ? "" : names[0];
  const auto ends = [&](std::string_view what) { return name.ends_with(what); };
  if (ends("ForMaskedLM") || ends("ForPreTraining")) return EncoderHead::words;
  if (ends("ForSequenceClassification")) return EncoderHead::classes;
  return EncoderHead::none;
}

TextEncoderConfig model_of(const ModelJson& json, Architecture architecture) {
  TextEncoderConfig out;
  TransformerConfig& o = out.blocks;
  o.hidden = json.whole("hidden_size", 1, 65536);
  o.layers = json.whole("num_hidden_layers", 1, 64);
  o.heads = json.whole("num_attention_heads", 1, 1024);
  o.ffn = json.whole("intermediate_size", 1, 1'000'000);
  require(o.hidden % o.heads == 0, "{path}: \"{key}\" {width} is not a multiple of its {heads} heads",
          "path"_a = json.path(), "key"_a = "hidden_size", "width"_a = o.hidden, "heads"_a = o.heads);
  o.activation = read_activation(json, "hidden_act", "gelu");
  o.norm_eps = static_cast<float>(json.number("layer_norm_eps", 1e-12, 1, 1e-12));
  o.dropout = static_cast<float>(json.number("hidden_dropout_prob", 0, 0.99, 0.1));
  o.attention_dropout = static_cast<float>(json.number("attention_probs_dropout_prob", 0, 0.99, 0.1));
  o.max_positions = json.whole("max_position_embeddings", 1, 1'000'000, 512);
  out.words = json.whole("vocab_size", 1, limits::kTokens);
  out.types = json.whole("type_vocab_size", 1, 1000, 2);
  const std::string positions = json.word("position_embedding_type", "absolute");
  require(positions == "absolute", "{path}: \"{key}\" is \"{word}\", expected one of {known}", "path"_a = json.path(),
          "key"_a = "position_embedding_type", "word"_a = positions, "known"_a = "absolute");
  json.expect("is_decoder", false, false);
  json.expect("add_cross_attention", false, false);
  if (architecture != Architecture::bert) {
    out.first_position = json.whole("pad_token_id", 0, out.words - 1, 1) + 1;
    require(out.longest() > 0, "{path}: \"{key}\" is {value}, expected more than {least}", "path"_a = json.path(),
            "key"_a = "max_position_embeddings", "value"_a = o.max_positions, "least"_a = out.first_position);
  }
  return out;
}

}  // namespace

BertConfig read_bert_config(const std::string& folder, Architecture architecture) {
  const ModelJson json(folder + "/config.json");
  BertConfig out;
  out.model = model_of(json, architecture);
  out.head = head_of(json);
  out.tied = json.flag("tie_word_embeddings", true);
  out.pad = json.whole("pad_token_id", 0, out.model.words - 1, out.model.first_position > 0 ? 1 : 0);
  if (out.head != EncoderHead::classes) return out;
  out.classes = json.numbered_words("id2label");
  if (out.classes.empty()) out.classes = {"LABEL_0", "LABEL_1"};  // what transformers assumes
  require(out.classes.size() > 1, "{path}: the model has one output, a number; expected at least two classes",
          "path"_a = json.path());
  if (json.word("problem_type") == "multi_label_classification") out.outputs = ClassOutputs::several;
  return out;
}

EncoderModel make_bert_model(const BertConfig& config, const Rng& rng) {
  EncoderModel made{.encoder = TextEncoder(config.model, rng.at("encoder")), .words = {}, .classes = {}};
  if (config.head == EncoderHead::words) {
    made.words = WordHead(config.model, rng.at("words"));
    if (config.tied) made.words->output.weight = made.encoder.embedding.words;
  }
  if (config.head == EncoderHead::classes)
    made.classes = ClassHead(config.model, std::ssize(config.classes), rng.at("classes"));
  return made;
}

std::unique_ptr<const BertTable> bert_table(Architecture architecture, const BertConfig& config,
                                            const WeightSource* weights) {
  const Family family = family_of(architecture);
  auto out = std::make_unique<BertTable>();
  const auto kept = [&](std::string name) -> std::string_view { return out->names.emplace_back(std::move(name)); };
  const bool prefixed = weights ? weights->has(std::string(family.prefix) + std::string(kWords))
                                : config.head != EncoderHead::none;  // a model without a head is saved alone
  const std::string prefix(prefixed ? family.prefix : "");
  std::vector<WeightRule>& rules = out->rules;
  rules.assign(std::begin(kEncoder), std::end(kEncoder));
  rules.insert(rules.end(), family.heads.begin(), family.heads.end());
  const std::string_view decoder = kept(std::string(family.decoder) + ".weight"),
                         bias = kept(std::string(family.decoder) + ".bias");
  if (config.tied)
    rules.push_back({"words.output.weight", kWords});
  else
    rules.push_back(outside("words.output.weight", decoder));
  // Norms of the first folders have TensorFlow's names.
  if (weights && weights->has(prefix + "embeddings.LayerNorm.gamma"))
    for (WeightRule& rule : rules)
      for (const auto& [end, old] :
           {std::pair("LayerNorm.weight", "LayerNorm.gamma"), {"LayerNorm.bias", "LayerNorm.beta"}})
        if (rule.theirs.ends_with(end)) {
          rule.theirs =
              kept(std::string(rule.theirs.substr(0, rule.theirs.size() - std::string_view(end).size())) + old);
          break;
        }
  if (config.head == EncoderHead::words) {
    if (config.tied) out->repeats.push_back({decoder, kWords});
    out->repeats.push_back({bias, architecture == Architecture::bert ? "cls.predictions.bias" : "lm_head.bias"});
  }
  out->ignored.assign(std::begin(kIgnored), std::end(kIgnored));
  if (config.head == EncoderHead::none)
    out->ignored.insert(out->ignored.end(), std::begin(kOtherHeads), std::end(kOtherHeads));
  out->table = {.architecture = family.name,
                .rules = out->rules,
                .repeats = out->repeats,
                .ignored = out->ignored,
                .prefix = prefix};
  return out;
}

EncoderModel open_bert_model(const std::string& folder, Architecture architecture, const BertConfig& config) {
  const PretrainedWeights weights(folder);
  const auto table = bert_table(architecture, config, &weights);
  return with_pretrained_weights([&] { return make_bert_model(config, Rng(0)); }, weights, table->table);
}

}  // namespace qkv
