// What a run of a text encoder says about itself: texts, tokenizer, head, classes.
#include <nlohmann/json.hpp>

#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/report/runs.h"
#include "qkv/tasks/encoding/run.h"

namespace qkv::report {

RunFacts run_facts(const EncodingConfig& config, const std::string& folder) {
  using Json = nlohmann::ordered_json;
  const EncodingDataConfig& d = config.data;
  const PretrainedTokenizer tokenizer = open_encoder_tokenizer(folder, config.model.architecture);
  const std::vector<std::string> classes = load_encoder_classes(folder);
  Json json = {{"model", Json::object()},
               {"data", {{"text", d.text}, {"valid_text", d.valid_text}, {"valid_share", d.valid_share}}},
               {"tokenizer", {{"kind", tokenizer.kind()}, {"tokens", tokenizer.size()}}}};
  if (!classes.empty()) json["classes"] = classes;
  RunFacts out{config.facts().summary,
               {tr("data        {data}\n", "data"_a = verbatim(printable(d.text))),
                tr("tokenizer   {kind}, {tokens} tokens\n", "kind"_a = tokenizer.kind(),
                   "tokens"_a = grouped(static_cast<uint64_t>(tokenizer.size()))),
                tr("head        {head}\n", "head"_a = config.model.bert.head)},
               json.dump(-1, ' ', false, Json::error_handler_t::replace)};
  if (!classes.empty())
    out.lines.push_back(tr("classes     {count}: {names}\n", "count"_a = classes.size(),
                           "names"_a = verbatim(printable(listed(classes)))));
  return out;
}

}  // namespace qkv::report
