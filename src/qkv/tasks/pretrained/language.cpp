// Model and tokenizer of a folder, checked against each other.
#include "qkv/tasks/pretrained/language.h"

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/gpt2.h"
#include "qkv/tasks/pretrained/llama.h"
#include "qkv/tasks/pretrained/llama2c.h"

namespace qkv {
namespace {

PretrainedLanguage joined(const std::string& folder, LanguageSettings settings, const PretrainedTokenizer& tokenizer,
                          std::unique_ptr<LanguageModel> model) {
  require(tokenizer.size() <= settings.words,
          "{folder}: its tokenizer has {tokens} tokens, but its embedding only {rows} rows", "folder"_a = folder,
          "tokens"_a = grouped(static_cast<uint64_t>(tokenizer.size())),
          "rows"_a = grouped(static_cast<uint64_t>(settings.words)));
  for (auto id = tokenizer.size(); id < settings.words; ++id) settings.never.push_back(id);  // they have no text
  return {.config = std::move(settings.config),
          .tokenizer = TextTokenizer::pretrained(tokenizer),
          .model = std::move(model),
          .ends = std::move(settings.ends),
          .never = std::move(settings.never)};
}

}  // namespace

PretrainedLanguage open_pretrained_language(const std::string& folder) {
  const Architecture architecture = architecture_of(folder);
  check_task(folder, task_of(architecture), TaskKind::language);
  if (is_llama2c_folder(folder)) {
    const Llama2cWeights weights(folder);
    const auto words = static_cast<int32_t>(weights.settings().words);
    return joined(folder, weights.settings(), PretrainedTokenizer::open_llama2c(folder + "/tokenizer.bin", words),
                  open_llama2c_model(weights));
  }
  const bool gpt2 = architecture == Architecture::gpt2;
  const LanguageSettings settings = gpt2 ? read_gpt2_settings(folder) : read_llama_settings(folder);
  const PretrainedTokenizer tokenizer = PretrainedTokenizer::open(folder, name_of(architecture));
  return joined(folder, settings, tokenizer,
                gpt2 ? open_gpt2_model(folder, settings) : open_llama_model(folder, settings));
}

}  // namespace qkv
