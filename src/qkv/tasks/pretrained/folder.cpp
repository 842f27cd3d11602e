// Recognises pretrained folders.
#include "qkv/tasks/pretrained/folder.h"

#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/core/limits.h"
#include "qkv/io/file.h"
#include "qkv/tasks/pretrained/model_json.h"

namespace qkv {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

}  // namespace

bool is_pretrained_folder(const std::string& folder) {
  return (is_file(folder + "/config.json") && !is_file(folder + "/config.yaml")) || is_llama2c_folder(folder) ||
         is_ctranslate2_folder(folder);
}

bool is_ctranslate2_folder(const std::string& folder) {
  return is_file(folder + "/model.bin") && is_file(folder + "/shared_vocabulary.json") &&
         !is_file(folder + "/config.yaml");
}

bool is_llama2c_folder(const std::string& folder) {
  return is_file(folder + "/model.bin") && is_file(folder + "/tokenizer.bin") && !is_file(folder + "/config.json") &&
         !is_file(folder + "/config.yaml");
}

Architecture architecture_of(const std::string& folder) {
  if (is_llama2c_folder(folder)) return Architecture::llama;
  if (is_ctranslate2_folder(folder)) return Architecture::marian;
  const ModelJson json(folder + "/config.json");
  const std::string type = json.word("model_type");
  std::string known;
  for (const Architecture one : every<Architecture>()) known += (known.empty() ? "" : ", ") + std::string(name_of(one));
  require(!type.empty(), "{path}: has no \"model_type\"; qkv opens {known}", "path"_a = json.path(), "known"_a = known);
  const auto found = find_named<Architecture>(type);
  require(found.has_value(), "{path}: \"model_type\" is \"{type}\"; qkv opens {known}", "path"_a = json.path(),
          "type"_a = type.substr(0, limits::kQuotedBytes), "known"_a = known);
  return *found;
}

TaskKind task_of(Architecture architecture) {
  switch (architecture) {
    case Architecture::marian:
      return TaskKind::translation;
    case Architecture::bert:
    case Architecture::roberta:
    case Architecture::xlm_roberta:
      return TaskKind::encoding;
    case Architecture::vit:
      return TaskKind::vision;
    case Architecture::llama:
    case Architecture::gpt2:
      return TaskKind::language;
  }
  return TaskKind::translation;
}

std::string licence_of(const std::string& folder) {
  const std::string path = folder + "/README.md";
  if (!is_file(path)) return "";
  const InputFile file(path);
  std::string text(std::min<uint64_t>(file.size(), 64 << 10), '\0');
  file.read(0, std::as_writable_bytes(std::span(text)));
  if (!text.starts_with("---\n")) return "";
  text = text.substr(0, text.find("\n---", 3));
  constexpr std::string_view kKey = "\nlicense:";
  const size_t at = text.find(kKey);
  if (at == std::string::npos) return "";
  const std::string line = text.substr(at + kKey.size(), text.find('\n', at + 1) - at - kKey.size());
  const size_t begin = line.find_first_not_of(" \"'"), end = line.find_last_not_of(" \"'\r");
  return begin == std::string::npos ? "" : line.substr(begin, end + 1 - begin);
}

}  // namespace qkv
