// What a pretrained folder says about itself.
#include "qkv/report/pretrained.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "qkv/core/counts.h"
#include "qkv/core/numbers.h"
#include "qkv/data/pretrained_tokenizer.h"
#include "qkv/data/text.h"
#include "qkv/tasks/encoding/sentence_encoder.h"
#include "qkv/tasks/pretrained/language.h"
#include "qkv/tasks/pretrained/start.h"
#include "qkv/tasks/pretrained/translation.h"
#include "qkv/tasks/pretrained/vit.h"

namespace qkv::report {

namespace fs = std::filesystem;

namespace {

constexpr size_t kNamedClasses = 12;  // more are counted

void describe(const PretrainedTokenizer& tokenizer, PretrainedReport& out) {
  out.tokenizer = tokenizer.kind();
  out.tokens = tokenizer.size();
}

void describe_translation(const std::string& folder, PretrainedReport& out) {
  const PretrainedTranslation opened = open_pretrained_translation(folder);
  out.model = opened.model->facts().summary;
  out.positions = opened.config.longest_input().value_or(0);
  out.parameters = static_cast<uint64_t>(opened.model->parameters().count());
  describe(PretrainedTokenizer::open(folder, name_of(out.architecture)), out);
}

void describe_language(const std::string& folder, PretrainedReport& out) {
  const PretrainedLanguage opened = open_pretrained_language(folder);
  out.model = opened.config.model.facts().summary;
  out.positions = opened.config.model.context;
  out.parameters = static_cast<uint64_t>(count_parameters(*opened.model));
  describe(*opened.tokenizer.pretrained(), out);
}

void describe_encoder(const std::string& folder, PretrainedReport& out) {
  const SentenceEncoder encoder(folder);
  out.model = encoder.facts().summary;
  out.positions = encoder.longest();
  out.parameters = static_cast<uint64_t>(count_parameters(encoder.model()));
  out.classes = encoder.config().classes;
  if (encoder.config().head != EncoderHead::none) out.head = name_of(encoder.config().head);
  const EmbedOptions how = encoder.defaults();
  out.vectors = text(how.pooling, how.normalize ? ", length 1" : "", ", ", how.most, " tokens");
  describe(encoder.tokenizer(), out);
}

void describe_vision(const std::string& folder, PretrainedReport& out) {
  const PretrainedVision opened = open_pretrained_vision(folder);
  out.model = opened.config.facts().summary;
  out.parameters = static_cast<uint64_t>(count_parameters(*opened.model));
  out.images = opened.facts.size;
  out.classes = opened.facts.classes;
}

void describe_by_task(const std::string& folder, PretrainedReport& out) {
  switch (task_of(out.architecture)) {
    case TaskKind::translation:
      return describe_translation(folder, out);
    case TaskKind::language:
      return describe_language(folder, out);
    case TaskKind::encoding:
      return describe_encoder(folder, out);
    case TaskKind::vision:
      return describe_vision(folder, out);
  }
}

}  // namespace

PretrainedReport report_pretrained(const std::string& folder) {
  PretrainedReport out;
  out.path = folder;
  out.architecture = architecture_of(folder);
  describe_by_task(folder, out);
  out.types = pretrained_weights(folder)->types();
  out.licence = licence_of(folder);
  for (const std::string& path : files_of(folder)) {
    std::error_code gone;
    const uint64_t bytes = fs::file_size(path, gone);
    if (gone) continue;
    out.files.push_back({fs::path(path).lexically_relative(folder).string(), bytes});
    out.bytes += bytes;
  }
  return out;
}

std::string to_text(const PretrainedReport& report, Language language) {
  const auto say = [&](const Text& text) { return text.in(language); };
  std::string out = say(tr("{folder}: a pretrained model\n", "folder"_a = printable(report.path)));
  out += say(
      tr("model       {architecture}: {model}\n", "architecture"_a = report.architecture, "model"_a = report.model));
  if (!report.tokenizer.empty())
    out += say(tr("tokenizer   {kind}, {tokens} tokens\n", "kind"_a = report.tokenizer,
                  "tokens"_a = grouped(static_cast<uint64_t>(report.tokens))));
  if (report.positions > 0)
    out += say(tr("texts       at most {positions} tokens\n",
                  "positions"_a = grouped(static_cast<uint64_t>(report.positions))));
  if (report.images) out += say(tr("images      {size}\n", "size"_a = size_text(*report.images)));
  if (!report.vectors.empty()) out += say(tr("vectors     {pooling}\n", "pooling"_a = report.vectors));
  if (!report.head.empty()) out += say(tr("head        {head}\n", "head"_a = report.head));
  if (!report.classes.empty()) {
    std::vector<std::string> names = report.classes;
    const size_t more = names.size() - std::min(names.size(), kNamedClasses);
    names.resize(names.size() - more);
    const std::string list = printable(listed(names));
    out += say(
        tr("classes     {count}: {names}\n", "count"_a = report.classes.size(),
           "names"_a = more == 0 ? verbatim(list) : tr("{list} and {more} more", "list"_a = list, "more"_a = more)));
  }
  out += say(tr("parameters  {count}, stored as {types}\n", "count"_a = grouped(report.parameters),
                "types"_a = listed(report.types)));
  out += say(report.licence.empty() ? tr("licence     the folder names none\n")
                                    : tr("licence     {licence}\n", "licence"_a = printable(report.licence)));
  out +=
      say(tr("files       {files}, {bytes}\n", "files"_a = report.files.size(), "bytes"_a = byte_count(report.bytes)));
  size_t width = 0;
  for (const RunFile& file : report.files) width = std::max(width, printable(file.name).size());
  for (const RunFile& file : report.files)
    out += fmt::format("  {:<{}}  {:>{}}\n", printable(file.name), width, grouped(file.bytes),
                       grouped(report.bytes).size());
  return out;
}

std::string to_json(const PretrainedReport& report) {
  using Json = nlohmann::ordered_json;
  Json files = Json::array();
  for (const RunFile& file : report.files) files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  Json json = {{"path", report.path},
               {"kind", "pretrained"},
               {"bytes", report.bytes},
               {"architecture", name_of(report.architecture)},
               {"model", report.model.in(Language::en)}};
  if (!report.tokenizer.empty()) json["tokenizer"] = {{"kind", report.tokenizer}, {"tokens", report.tokens}};
  if (report.positions > 0) json["positions"] = report.positions;
  if (report.images)
    json["images"] = {
        {"channels", report.images->channels}, {"height", report.images->height}, {"width", report.images->width}};
  if (!report.vectors.empty()) json["vectors"] = report.vectors;
  if (!report.head.empty()) json["head"] = report.head;
  if (!report.classes.empty()) json["classes"] = report.classes;
  json["parameters"] = report.parameters;
  json["types"] = report.types;
  json["licence"] = report.licence.empty() ? Json(nullptr) : Json(report.licence);
  json["files"] = files;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace qkv::report
