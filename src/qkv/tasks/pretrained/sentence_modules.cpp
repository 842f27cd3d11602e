// modules.json, the pooling's config.json, sentence_bert_config.json and config_sentence_transformers.json.
#include "qkv/tasks/pretrained/sentence_modules.h"

#include <filesystem>
#include <utility>

#include "qkv/core/check.h"
#include "qkv/core/names.h"
#include "qkv/tasks/pretrained/model_json.h"

namespace qkv {
namespace {

bool is_there(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

// The folder of a module, which must be inside the model's.
std::string module_folder(const ModelJson& module, const std::string& folder) {
  const std::string path = module.word("path");
  const bool inside = path.find("..") == std::string::npos && !path.starts_with('/');
  require(inside, "{path}: a module is in \"{module}\", expected a folder inside this one", "path"_a = module.path(),
          "module"_a = path);
  return path.empty() ? folder : folder + "/" + path;
}

TextPooling pooling_of(const ModelJson& json) {
  if (const std::string mode = json.word("pooling_mode"); !mode.empty()) {
    const auto found = find_named<TextPooling>(mode);
    require(found.has_value(), "{path}: \"{key}\" is \"{word}\", expected one of {known}", "path"_a = json.path(),
            "key"_a = "pooling_mode", "word"_a = mode, "known"_a = listed(names_of(every<TextPooling>())));
    return *found;
  }
  static constexpr std::pair<std::string_view, TextPooling> kModes[] = {{"pooling_mode_cls_token", TextPooling::cls},
                                                                        {"pooling_mode_mean_tokens", TextPooling::mean},
                                                                        {"pooling_mode_max_tokens", TextPooling::max}};
  for (const char* other :
       {"pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"})
    json.expect(other, false, false);
  std::optional<TextPooling> found;
  for (const auto& [key, pooling] : kModes) {
    if (!json.flag(key, false)) continue;
    require(!found, "{path}: asks for several kinds of pooling, expected one", "path"_a = json.path());
    found = pooling;
  }
  require(found.has_value(), "{path}: asks for no kind of pooling, expected one", "path"_a = json.path());
  return *found;
}

}  // namespace

SentenceModules read_sentence_modules(const std::string& folder) {
  SentenceModules out;
  const std::string list = folder + "/modules.json";
  if (!is_there(list)) return out;
  out.given = true;
  bool pools_prompt = true;
  for (const ModelJson& module : ModelJson::list(list)) {
    const std::string type = module.word("type"), name = type.substr(type.rfind('.') + 1);
    const std::string inside = module_folder(module, folder);
    if (name == "Transformer") {
      require(inside == folder, "{path}: the model is in \"{module}\", expected this folder", "path"_a = list,
              "module"_a = module.word("path"));
    } else if (name == "Pooling") {
      const ModelJson json(inside + "/config.json");
      out.pooling = pooling_of(json);
      pools_prompt = json.flag("include_prompt", true);
    } else if (name == "Normalize") {
      out.normalize = true;
    } else {
      refuse("{path}: has a module {type}; qkv has Transformer, Pooling and Normalize", "path"_a = list,
             "type"_a = type);
    }
  }
  for (const char* name : {"sentence_bert_config.json", "sentence_roberta_config.json"}) {
    if (!is_there(folder + "/" + name)) continue;
    const ModelJson json(folder + "/" + name);
    if (json.has("max_seq_length")) out.most = json.whole("max_seq_length", 1, 1'000'000);
    out.lowercase = json.flag("do_lower_case", false);
    break;
  }
  const std::string prompts = folder + "/config_sentence_transformers.json";
  if (!is_there(prompts)) return out;
  const ModelJson json(prompts);
  const std::string chosen = json.word("default_prompt_name");
  for (const auto& [name, prompt] : json.strings("prompts"))
    if (name == chosen) out.prompt = prompt;
  require(out.prompt.empty() || pools_prompt,
          "{path}: \"default_prompt_name\" is \"{name}\", but the pooling leaves prompts "
          "out, which qkv does not",
          "path"_a = prompts, "name"_a = chosen);
  return out;
}

}  // namespace qkv
