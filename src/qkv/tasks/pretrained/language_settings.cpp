// How a folder wants its model to write.
#include "qkv/tasks/pretrained/language_settings.h"

#include <algorithm>
#include <filesystem>

namespace qkv {
namespace {

constexpr int64_t kUsualTopK = 50;  // of transformers, where a folder names none

void add_ids(const ModelJson& json, std::string_view key, int64_t words, std::vector<int32_t>& out) {
  for (const int64_t id : json.wholes(key, 0, words - 1)) out.push_back(static_cast<int32_t>(id));
}

}  // namespace

void read_generation(const std::string& folder, const ModelJson& config, LanguageSettings& settings) {
  const std::string path = folder + "/generation_config.json";
  const bool apart = std::filesystem::exists(path);
  const ModelJson how = apart ? ModelJson(path) : config;
  add_ids(how, "eos_token_id", settings.words, settings.ends);
  if (settings.ends.empty()) add_ids(config, "eos_token_id", settings.words, settings.ends);
  for (const char* key : {"bad_words_ids", "suppress_tokens"}) add_ids(how, key, settings.words, settings.never);
  GenerationConfig& d = settings.config.decoding;
  d.temperature = 0;
  d.repetition_penalty = how.number("repetition_penalty", 0.01, 100, 1.0);
  d.max_tokens = how.whole("max_new_tokens", 1, 10'000'000, d.max_tokens);
  if (!how.flag("do_sample", false)) return;
  d.temperature = how.number("temperature", 0, 100, 1.0);
  d.top_k = how.whole("top_k", 0, 1'000'000'000, kUsualTopK);
  d.top_p = how.number("top_p", 0.000001, 1, 1.0);
}

}  // namespace qkv
