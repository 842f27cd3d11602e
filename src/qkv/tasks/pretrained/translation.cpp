// Model and tokenizers of a folder, checked against each other.
#include "qkv/tasks/pretrained/translation.h"

#include "qkv/core/check.h"
#include "qkv/core/numbers.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/tasks/pretrained/folder.h"
#include "qkv/tasks/pretrained/marian.h"

namespace qkv {
namespace {

MarianConfig read_config(const std::string& folder) {
  check_task(folder, task_of(architecture_of(folder)), TaskKind::translation);
  return read_marian_config(folder);
}

Tokenizers tokenizers_of(const std::string& folder, const MarianConfig& config) {
  const PretrainedTokenizer tokenizer = PretrainedTokenizer::open(folder, "marian");
  require(tokenizer.size() <= config.words.target,
          "{folder}: its tokenizer has {tokens} tokens, but its embedding only {rows} rows", "folder"_a = folder,
          "tokens"_a = grouped(static_cast<uint64_t>(tokenizer.size())),
          "rows"_a = grouped(static_cast<uint64_t>(config.words.target)));
  const Tokenizer::Tokens tokens{
      .begin = config.start, .end = config.end, .pad = config.pad, .rows = static_cast<int32_t>(config.words.target)};
  return {Tokenizer::pretrained(tokenizer, Tokenizer::Side::source, tokens),
          Tokenizer::pretrained(tokenizer, Tokenizer::Side::target, tokens)};
}

}  // namespace

TranslationConfig read_pretrained_translation_config(const std::string& folder) {
  return read_config(folder).translation;
}

Tokenizers open_pretrained_tokenizers(const std::string& folder) { return tokenizers_of(folder, read_config(folder)); }

PretrainedTranslation open_pretrained_translation(const std::string& folder) {
  const MarianConfig config = read_config(folder);
  return {.config = config.translation,
          .tokenizers = tokenizers_of(folder, config),
          .model = open_marian_model(folder, config)};
}

}  // namespace qkv
