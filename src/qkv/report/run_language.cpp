// What a run of a language model says about itself: text, tokenizer, vocabulary.
#include <nlohmann/json.hpp>

#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/report/runs.h"
#include "qkv/tasks/language/data.h"

namespace qkv::report {

Text tokenizer_text(const LanguageDataConfig& d) {
  if (d.tokenizer == TextTokens::pretrained) return tr("that of the pretrained model");
  const bool lower = d.has_subwords() ? d.lowercase : d.tokenizer == TextTokens::words;
  const Text kind = lower ? tr("{tokenizer} of lower-cased text", "tokenizer"_a = d.tokenizer)
                          : verbatim(std::string(name_of(d.tokenizer)));
  if (!d.has_subwords() || d.normalize == Normalization::none) return kind;
  return tr("{tokenizer}, {form}", "tokenizer"_a = kind, "form"_a = d.normalize);
}

Text data_text(const LanguageDataConfig& d) {
  return d.built_in() ? tr("the English sentences of the built-in corpus ({pairs} pairs)",
                           "pairs"_a = grouped(static_cast<uint64_t>(d.corpus_size)))
                      : verbatim(printable(d.text));
}

RunFacts run_facts(const LanguageConfig& config, const std::string& folder) {
  using Json = nlohmann::ordered_json;
  const LanguageDataConfig& d = config.data;
  const int64_t tokens = TextTokenizer::load(folder).size();
  const Json json = {{"model", Json::object()},
                     {"data", {{"text", d.text}, {"valid_text", d.valid_text}, {"valid_share", d.valid_share}}},
                     {"tokenizer", {{"kind", name_of(d.tokenizer)}, {"tokens", tokens}}}};
  return {config.facts().summary,
          {tr("data        {data}\n", "data"_a = data_text(d)),
           tr("tokenizer   {tokenizer}, vocabulary {tokens}\n", "tokenizer"_a = tokenizer_text(d),
              "tokens"_a = grouped(static_cast<uint64_t>(tokens)))},
          json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

}  // namespace qkv::report
