// The tables of settings, one per kind of model, and the checks of settings that depend on each other.
#include "qkv/tasks/translation/config.h"

#include <algorithm>

#include "qkv/core/check.h"

namespace qkv {
namespace {

ModelConfig model_of(ModelKind kind) {
  ModelConfig model;
  if (kind == ModelKind::transformer) model = TransformerConfig{};
  return model;
}

// Settings of other kinds of models in a file: refused, or dropped if an older version wrote them.
enum class OtherKinds { refused, dropped };

void for_other_kinds(const TranslationConfig& config, Settings& s, OtherKinds others) {
  for (const ModelKind kind : every<ModelKind>()) {
    if (kind == config.kind()) continue;
    ModelConfig other = model_of(kind);
    Settings table;
    std::visit([&](auto& model) { table.add_block("model", model); }, other);
    for (const Setting& setting : table.all()) {
      if (s.has(setting.name())) continue;
      if (others == OtherKinds::dropped)
        s.drop(setting.name());
      else
        s.explain(setting.name(),
                  tr("a setting of {kind}, but model.kind is {actual}", "kind"_a = kind, "actual"_a = config.kind()));
    }
  }
}

Settings settings_of(TranslationConfig& c, OtherKinds others) {
  Settings s;
  s.add_block("data", c.data);
  s.add_fixed("model", "kind", tr("the architecture"), names_of(every<ModelKind>()), std::string(name_of(c.kind())));
  std::visit([&](auto& model) { s.add_block("model", model); }, c.model);
  for_other_kinds(c, s, others);
  s.add_block("training", c.training);
  s.add_block("book", c.book);
  s.add_block("decoding", c.decoding);
  s.accept("model.book_positions", "book.positions");
  for (const char* key : {"loss", "num_steps", "mask_loss", "feed_back"})
    s.accept(text("training.", key), text("book.", key));
  s.accept("training.init_from", "training.init");
  if (s.has("model.initial"))
    s.accept("model.init", "model.initial");
  else if (others == OtherKinds::dropped)
    s.drop("model.init");
  std::visit(
      [&](const auto& model) { s.accept_value("model.attention", "auto", std::string(name_of(model.attention))); },
      model_of(c.kind()));
  return s;
}

void parse_into(TranslationConfig& config, const std::string& yaml, const std::string& name, OtherKinds others) {
  TranslationConfig next = config;
  if (const auto kind = find_setting(yaml, name, "model.kind"))
    next.set_kind(parse_name<ModelKind>(kind->value, kind->where));
  settings_of(next, others).parse(yaml, name);
  config = std::move(next);
}

}  // namespace

void TranslationConfig::set_kind(ModelKind wanted) {
  if (kind() != wanted) model = model_of(wanted);
}

ModelFacts TranslationConfig::facts() const {
  return std::visit([](const auto& m) { return m.facts(); }, model);
}

std::optional<int64_t> TranslationConfig::longest_input() const {
  if (data.tokenizer == TokenizerKind::pretrained && kind() == ModelKind::transformer)
    return transformer().max_positions;
  return facts().longest_input;
}

Settings TranslationConfig::settings() { return settings_of(*this, OtherKinds::refused); }
void TranslationConfig::read(const std::string& path) { parse(read_settings_text(path), path); }
// Older versions wrote the settings of all kinds into every file. Such a file has a key that later ones lack.
void TranslationConfig::parse(const std::string& yaml, const std::string& name) {
  parse_into(*this, yaml, name,
             find_setting(yaml, name, "model.book_positions") ? OtherKinds::dropped : OtherKinds::refused);
}

bool TranslationConfig::has_data() const { return !data.pairs.empty() || !data.source.empty(); }
void TranslationConfig::clear_files() {
  for (std::string* file :
       {&data.pairs, &data.source, &data.target, &data.valid_pairs, &data.valid_source, &data.valid_target})
    file->clear();
}
void TranslationConfig::use_source(const std::string& setting) {
  if (setting != "data.pairs") return data.pairs.clear();
  data.source.clear();
  data.target.clear();
}

void TranslationConfig::check() const {
  const auto& d = data;
  require(has_data(), "there is no data: give --data FILE (tab-separated pairs, or en-fr), or --source and --target");
  require(d.pairs.empty() || (d.source.empty() && d.target.empty()), "data.pairs and data.source exclude each other");
  require(d.source.empty() == d.target.empty(),
          "data.source and data.target go together: source is \"{source}\", target is \"{target}\"",
          "source"_a = d.source, "target"_a = d.target);
  require(d.valid_source.empty() == d.valid_target.empty(),
          "data.valid_source and data.valid_target go together: \"{source}\" and \"{target}\"",
          "source"_a = d.valid_source, "target"_a = d.valid_target);
  require(d.valid_pairs.empty() || d.valid_source.empty(), "data.valid_pairs and data.valid_source exclude each other");
  const bool valid_files = !d.valid_pairs.empty() || !d.valid_source.empty();
  const bool book = d.tokenizer == TokenizerKind::book || d.tokenizer == TokenizerKind::book_en;
  require(!book || !d.reverse,
          "data.tokenizer {tokenizer} translates from the first side into the second, but data.reverse is true",
          "tokenizer"_a = d.tokenizer);
  require(
      d.tokenizer != TokenizerKind::book_en || (!valid_files && d.valid_share == 0 && d.limit == 0),
      "data.tokenizer book-en reads 641 pairs, 129 of them for validation: data.limit and other validation data do not "
      "apply");
  require(d.tokenizer != TokenizerKind::book || (!valid_files && d.valid_share == 0),
          "data.tokenizer book has no validation data: the book trains on all pairs");
  require(
      !d.built_in() || (!valid_files && d.valid_share == 0),
      "data.pairs en-fr has its own validation data: data.valid_pairs, data.valid_source and data.valid_share do not "
      "apply");
  const bool subwords = d.has_subwords();
  require(!d.shared_vocabulary || subwords || d.tokenizer == TokenizerKind::pretrained,
          "data.shared_vocabulary needs data.tokenizer bpe or unigram, got {tokenizer}", "tokenizer"_a = d.tokenizer);
  if (d.tokenizer == TokenizerKind::pretrained && training.init.empty())
    throw Error(tr("data.tokenizer is pretrained, but there is no folder that has it"),
                tr("--init DIR names the folder of a pretrained model"));
  const bool validates = valid_files || d.valid_share > 0 || d.built_in() || d.tokenizer == TokenizerKind::book_en;
  training.check(validates);
  check_model();
}

void TranslationConfig::check_model() const {
  std::visit([](const auto& m) { m.check(); }, model);
  const auto* transformer = std::get_if<TransformerConfig>(&model);
  require(!transformer || !transformer->tied || data.shared_vocabulary,
          "model.tied needs one vocabulary for both sides, but data.shared_vocabulary is false");
  require(transformer || !book.positions, "book.positions is true, but model.kind is {kind}, which has no positions",
          "kind"_a = kind());
}

TranslationConfig read_run_config(const std::string& path) {
  const std::string yaml = read_settings_text(path);
  TranslationConfig config, before;
  parse_into(config, yaml, path, OtherKinds::dropped);
  if (!config.data.has_subwords()) return config;
  before.data.normalize = Normalization::none;  // unless the file says otherwise
  parse_into(before, yaml, path, OtherKinds::dropped);
  return before;
}

}  // namespace qkv
