// What a run of translation says about itself: data, tokenizers, vocabularies.
#include <nlohmann/json.hpp>

#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/report/runs.h"
#include "qkv/tasks/translation/data.h"

namespace qkv::report {
namespace {

bool is_lower(const TranslationDataConfig& d) {
  if (d.has_subwords()) return d.lowercase;
  return d.tokenizer != TokenizerKind::spaces && d.tokenizer != TokenizerKind::pretrained;
}

}  // namespace

Text tokenizer_text(const TranslationDataConfig& d) {
  if (d.tokenizer == TokenizerKind::pretrained) return tr("that of the pretrained model");
  const Text kind = is_lower(d) ? tr("{tokenizer} of lower-cased text", "tokenizer"_a = d.tokenizer)
                                : verbatim(std::string(name_of(d.tokenizer)));
  if (!d.has_subwords() || d.normalize == Normalization::none) return kind;
  return tr("{tokenizer}, {form}", "tokenizer"_a = kind, "form"_a = d.normalize);
}

Text data_text(const TranslationDataConfig& d) {
  const Text files =
      d.built_in()
          ? tr("en-fr, the built-in corpus ({pairs} pairs)", "pairs"_a = grouped(static_cast<uint64_t>(d.corpus_size)))
      : d.pairs.empty()
          ? tr("{source} and {target}", "source"_a = printable(d.source), "target"_a = printable(d.target))
          : verbatim(printable(d.pairs));
  return d.reverse ? tr("{files}, from the second side into the first", "files"_a = files) : files;
}

RunFacts run_facts(const TranslationConfig& config, const std::string& folder) {
  const TranslationDataConfig& d = config.data;
  const Tokenizers tokenizers = load_tokenizers(folder);
  const int64_t source = tokenizers.source.size(), target = tokenizers.target.size();
  nlohmann::ordered_json json = {
      {"model", nlohmann::ordered_json::object()},
      {"data", {{"pairs", d.pairs}, {"source", d.source}, {"target", d.target}, {"reverse", d.reverse}}},
      {"tokenizer",
       {{"kind", name_of(d.tokenizer)},
        {"lowercase", is_lower(d)},
        {"normalize", name_of(d.has_subwords() ? d.normalize : Normalization::none)},
        {"source_tokens", source},
        {"target_tokens", target}}}};
  if (const auto* transformer = std::get_if<TransformerConfig>(&config.model))
    json["model"]["decoder_layers"] = transformer->decoder_depth();  // a number, even if it is left open
  return {
      config.facts().summary,
      {tr("data        {data}\n", "data"_a = data_text(d)),
       tr("tokenizer   {tokenizer}, vocabularies {source} and {target}\n", "tokenizer"_a = tokenizer_text(d),
          "source"_a = grouped(static_cast<uint64_t>(source)), "target"_a = grouped(static_cast<uint64_t>(target)))},
      json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
      config.book.loss == LossUnit::book};
}

}  // namespace qkv::report
