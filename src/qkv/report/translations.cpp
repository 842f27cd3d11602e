// Translations as JSON.
#include "qkv/report/translations.h"

#include <nlohmann/json.hpp>

#include "qkv/ops/shape.h"
#include "qkv/report/nested_json.h"

namespace qkv::report {
namespace {

using Json = nlohmann::ordered_json;

std::string printed(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}  // a file's name may contain any bytes

}  // namespace

Tensor by_layers(const Translator& translator, const Tensor& attention) {
  const MapGroup maps = translator.model().facts().source_maps().value();
  const Tensor apart = permute(attention, {1, 0, 2});
  const Shape& s = apart.shape();
  return maps.numbered ? apart.viewed({s[0] / maps.heads, maps.heads, s[1], s[2]}) : apart;
}

std::string to_json(const Translator& translator, const std::string& sentence, const Translation& t,
                    const TranslationPlace& place) {
  Json out = Json::object();
  if (!place.file.empty()) out["file"] = place.file;
  out["line"] = place.line;
  out["source"] = sentence;
  out["source_tokens"] = translator.tokenizers().source.tokens(t.source);
  Json list = Json::array();
  for (const Hypothesis& h : t.hypotheses) {
    std::vector<int32_t> ids = h.tokens;
    if (h.ended) ids.push_back(translator.tokenizers().target.eos());
    Json one = {{"text", translator.text(h, t.writing)},
                {"log_probability", h.log_probability},
                {"score", h.score},
                {"ended", h.ended},
                {"tokens", translator.tokenizers().target.tokens(ids)}};
    if (place.attention && h.attention.defined())
      one["attention"] = nested_json<Json>(by_layers(translator, h.attention));
    list.push_back(std::move(one));
  }
  out["text"] = t.hypotheses.empty() ? "" : translator.text(t.hypotheses[0], t.writing);
  out["hypotheses"] = std::move(list);
  return printed(out);
}

std::string to_json(const Translator& translator, const std::string& source, const std::string& reference,
                    const ForcedTranslation& t, const TranslationPlace& place) {
  Json out = {{"line", place.line}, {"source", source}, {"reference", reference}};
  out["source_tokens"] = translator.tokenizers().source.tokens(t.source);
  out["tokens"] = translator.tokenizers().target.tokens(t.target);
  out["log_probability"] = t.target.empty() ? Json() : Json(t.forced.log_probability());
  out["log_probabilities"] = t.forced.log_probabilities;
  if (place.attention && t.forced.attention.defined())
    out["attention"] = nested_json<Json>(by_layers(translator, t.forced.attention));
  return printed(out);
}

}  // namespace qkv::report
