// The table of settings, and the checks of settings that depend on each other.
#include "qkv/tasks/encoding/config.h"

#include <algorithm>
#include <cmath>

#include "qkv/core/check.h"
#include "qkv/tasks/pretrained/start.h"

namespace qkv {

int64_t EncodingModelConfig::hidden_of(int64_t tokens) const {
  if (tokens == 0) return 0;
  return std::clamp<int64_t>(std::llround(mask_share * static_cast<double>(tokens)), 1, tokens);
}

Settings EncodingConfig::settings() {
  Settings s;
  s.add_block("data", data);
  s.add_fixed("model", "kind", tr("the architecture"), facts_of(kTask).kinds, kind_name());
  s.add_block("model", model);
  s.add_block("training", training);
  return s;
}

void EncodingConfig::read(const std::string& path) { parse(read_settings_text(path), path); }

void EncodingConfig::parse(const std::string& yaml, const std::string& name) {
  EncodingConfig next = *this;
  next.settings().parse(yaml, name);
  *this = std::move(next);
}

void EncodingConfig::check() const {
  if (training.init.empty())
    throw Error(tr("an encoder of texts is not trained from random weights here: training.init is not set"),
                tr("--init DIR names the folder of a pretrained model"));
  require(has_data(), "there are no texts: give --text FILE");
  if (model.bert.head == EncoderHead::none)
    throw Error(tr("{folder}: its config.json names no head, so there is nothing to train", "folder"_a = training.init),
                tr("--head words trains it to fill in hidden tokens, --head classes to say what a text is"));
  require(model.bert.outputs == ClassOutputs::one,
          "{folder}: each of its classes may be right at the same time (multi_label_classification); what is trained "
          "are models with one right class",
          "folder"_a = training.init);
  const TransformerConfig& o = model.bert.model.blocks;
  require(o.hidden % o.heads == 0, "model.hidden {width} is not a multiple of model.heads {heads}",
          "width"_a = o.hidden, "heads"_a = o.heads);
  require(model.bert.model.longest() > 0, "model.max_positions is {positions}, expected more than model.first_position",
          "positions"_a = o.max_positions);
  require(data.max_tokens <= model.bert.model.longest(),
          "data.max_tokens is {tokens}, but the model reads {context} at once", "tokens"_a = data.max_tokens,
          "context"_a = model.bert.model.longest());
  require(model.mask_random + model.mask_kept <= 1, "model.mask_random and model.mask_kept are more than 1 together");
  require(data.valid_text.empty() || data.valid_share == 0, "data.valid_text and data.valid_share exclude each other");
  require(!training.by_length && training.batch_tokens == 0,
          "training.by_length and training.batch_tokens are for translation; texts have training.batch_rows");
  training.check(!data.valid_text.empty() || data.valid_share > 0);
}

void EncodingConfig::clear_files() {
  data.text.clear();
  data.valid_text.clear();
}

EncodingConfig read_encoding_config(const std::string& path) {
  EncodingConfig config;
  config.read(path);
  return config;
}

EncodingConfig read_pretrained_encoding_config(const std::string& folder) {
  const Architecture architecture = architecture_of(folder);
  check_task(folder, task_of(architecture), TaskKind::encoding);
  EncodingConfig out;
  out.model.architecture = architecture;
  out.model.bert = read_bert_config(folder, architecture);
  set_fine_tuning(out.training);
  return out;
}

}  // namespace qkv
