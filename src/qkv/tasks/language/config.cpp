// The table of settings, and the checks of settings that depend on each other.
#include "qkv/tasks/language/config.h"

#include "qkv/core/check.h"

namespace qkv {

Settings LanguageConfig::settings() {
  Settings s;
  s.add_block("data", data);
  s.add_fixed("model", "kind", tr("the architecture"), facts_of(kTask).kinds, kind_name());
  s.add_block("model", model);
  s.add_block("training", training);
  s.accept("training.init_from", "training.init");
  s.accept("model.init", "model.initial");
  s.add_block("decoding", decoding);
  return s;
}

void LanguageConfig::read(const std::string& path) { parse(read_settings_text(path), path); }

void LanguageConfig::parse(const std::string& yaml, const std::string& name) {
  LanguageConfig next = *this;
  next.settings().parse(yaml, name);
  *this = std::move(next);
}

void LanguageConfig::check() const {
  require(data.valid_text.empty() || !data.built_in(),
          "data.valid_text needs data.text: the built-in corpus has its own validation data");
  require(data.epoch_batches == 0 || data.order == BlockOrder::random,
          "data.epoch_batches is {batches}, but data.order is {order}: only random blocks make epochs of any length",
          "batches"_a = data.epoch_batches, "order"_a = data.order);
  require(!training.by_length && training.batch_tokens == 0,
          "training.by_length and training.batch_tokens are for sentences: all blocks of a text have model.context "
          "tokens");
  if (data.tokenizer == TextTokens::pretrained && training.init.empty())
    throw Error(tr("data.tokenizer is pretrained, but there is no folder that has it"),
                tr("--init DIR names the folder of a pretrained model"));
  const bool validates = data.built_in() || !data.valid_text.empty() || data.valid_share > 0;
  training.check(validates);
  model.check();
}

void LanguageConfig::clear_files() {
  data.text.clear();
  data.valid_text.clear();
}

LanguageConfig read_language_config(const std::string& path) {
  LanguageConfig config;
  config.read(path);
  return config;
}

}  // namespace qkv
