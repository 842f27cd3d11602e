// Model and tokenizer of a folder, checked against each other.
#include "qkv/tasks/pretrained/language.h"

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/gpt2.h"
#include "qkv/tasks/pretrained/llama.h"
#include "qkv/tasks/pretrained/llama2c.h"
#include "qkv/tasks/pretrained/start.h"

namespace qkv {
namespace {

// What the folder's files say, with the tokenizer.
struct FolderSettings {
  LanguageSettings settings;
  TextTokenizer tokenizer;
};

FolderSettings joined(const std::string& folder, LanguageSettings settings, const PretrainedTokenizer& tokenizer) {
  require(tokenizer.size() <= settings.words,
          "{folder}: its tokenizer has {tokens} tokens, but its embedding only {rows} rows", "folder"_a = folder,
          "tokens"_a = grouped(static_cast<uint64_t>(tokenizer.size())),
          "rows"_a = grouped(static_cast<uint64_t>(settings.words)));
  LanguageConfig& config = settings.config;
  config.data.tokenizer = TextTokens::pretrained;
  config.decoding.ends = settings.ends;
  config.decoding.never = settings.never;
  set_fine_tuning(config.training);
  const auto rows = static_cast<int32_t>(settings.words);
  return {std::move(settings),
          TextTokenizer::pretrained(tokenizer, std::string(name_of(architecture_of(folder))), rows)};
}

FolderSettings read_settings(const std::string& folder) {
  const Architecture architecture = architecture_of(folder);
  check_task(folder, task_of(architecture), TaskKind::language);
  if (is_llama2c_folder(folder)) {
    const Llama2cWeights weights(folder);
    const auto words = static_cast<int32_t>(weights.settings().words);
    return joined(folder, weights.settings(), PretrainedTokenizer::open_llama2c(folder + "/tokenizer.bin", words));
  }
  const bool gpt2 = architecture == Architecture::gpt2;
  return joined(folder, gpt2 ? read_gpt2_settings(folder) : read_llama_settings(folder),
                PretrainedTokenizer::open(folder, name_of(architecture)));
}

}  // namespace

LanguageConfig read_pretrained_language_config(const std::string& folder) {
  return read_settings(folder).settings.config;
}

TextTokenizer open_text_tokenizer(const std::string& folder) {
  return is_pretrained_folder(folder) ? read_settings(folder).tokenizer : TextTokenizer::load(folder);
}

PretrainedLanguage open_pretrained_language(const std::string& folder) {
  FolderSettings found = read_settings(folder);
  auto model = is_llama2c_folder(folder)                       ? open_llama2c_model(Llama2cWeights(folder))
               : architecture_of(folder) == Architecture::gpt2 ? open_gpt2_model(folder, found.settings)
                                                               : open_llama_model(folder, found.settings);
  return {
      .config = std::move(found.settings.config), .tokenizer = std::move(found.tokenizer), .model = std::move(model)};
}

}  // namespace qkv
