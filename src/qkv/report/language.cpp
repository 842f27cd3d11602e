// Results of language models.
#include "qkv/report/language.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "qkv/core/numbers.h"
#include "qkv/data/text.h"

namespace qkv::report {
namespace {

using Json = nlohmann::ordered_json;

std::string printed(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json candidate_json(const LanguageGenerator& generator, int32_t token, double probability) {
  return {{"token", generator.tokens(std::span(&token, 1)).front()}, {"probability", probability}};
}

}  // namespace

std::string to_json(const LanguageGenerator& generator, const std::string& prompt, const Continued& c) {
  Json texts = Json::array();
  for (const GeneratedText& text : c.texts) {
    Json tokens = Json::array();
    for (size_t i = 0; i < text.tokens.size(); ++i)
      tokens.push_back(candidate_json(generator, text.tokens[i], std::exp(text.log_probabilities[i])));
    texts.push_back(
        {{"text", text.text},
         {"end", name_of(text.end)},
         {"log_probability", std::accumulate(text.log_probabilities.begin(), text.log_probabilities.end(), 0.0)},
         {"tokens", tokens}});
  }
  Json out = {{"prompt", prompt}, {"prompt_tokens", generator.tokens(c.prompt)}};
  if (c.unread > 0) out["unread_tokens"] = c.unread;
  out["texts"] = texts;
  return printed(out);
}

std::string to_json(const LanguageGenerator& generator, const std::string& prompt, const Filled& filled) {
  Json out = {{"prompt", prompt}, {"text", filled.text}};
  if (generator.objective() == LanguageObjective::spans) {
    out["spans"] = filled.spans;
    out["log_probability"] = filled.log_probability;
    return printed(out);
  }
  Json gaps = Json::array();
  for (const auto& gap : filled.gaps) {
    Json list = Json::array();
    for (const Candidate& c : gap) list.push_back(candidate_json(generator, c.token, c.probability));
    gaps.push_back(list);
  }
  out["gaps"] = gaps;
  return printed(out);
}

std::string to_text(const LanguageGenerator& generator, const Filled& filled, Language language) {
  std::string out = filled.text + "\n";
  for (size_t i = 0; i < filled.gaps.size(); ++i) {
    std::vector<std::string> words;
    for (const Candidate& c : filled.gaps[i])
      words.push_back(fmt::format("{} {:.3f}", generator.tokens(std::span(&c.token, 1)).front(), c.probability));
    out += tr("  gap {number}: {candidates}\n", "number"_a = i + 1, "candidates"_a = listed(words)).in(language);
  }
  return out;
}

std::string to_json(LanguageObjective objective, const std::string& file, const TextScore& s) {
  Json out = {{"file", file},
              {"objective", name_of(objective)},
              {"perplexity", s.perplexity()},
              {"nats_per_token", s.nats_per_token()}};
  if (objective == LanguageObjective::causal) out["bits_per_character"] = s.bits_per_character();
  out["characters"] = s.characters;
  out["tokens"] = s.tokens;
  out["scored_tokens"] = static_cast<int64_t>(s.scored);
  out["unknown_tokens"] = s.unknown;
  return printed(out);
}

Text to_text(LanguageObjective objective, const Text& file, const TextScore& s) {
  const auto number = [](int64_t n) { return grouped(static_cast<uint64_t>(n)); };
  if (objective == LanguageObjective::causal)
    return tr(
        "{file}: perplexity {perplexity:.4f}, {nats:.4f} nats per token, {bits:.4f} bits per character "
        "({characters} characters, {tokens} tokens)",
        "file"_a = file, "perplexity"_a = s.perplexity(), "nats"_a = s.nats_per_token(),
        "bits"_a = s.bits_per_character(), "characters"_a = number(s.characters), "tokens"_a = number(s.tokens));
  // A model of spans is also asked where each span ends.
  const bool spans = objective == LanguageObjective::spans;
  const auto hidden = static_cast<int64_t>(s.scored);
  const Text of = spans         ? tr("{scored} hidden tokens and marks", "scored"_a = number(hidden))
                  : hidden == 1 ? tr("one hidden token")
                                : tr("{scored} hidden tokens", "scored"_a = number(hidden));
  return tr(
      "{file}: perplexity {perplexity:.4f}, {nats:.4f} nats per token, of {hidden} ({characters} characters, {tokens} "
      "tokens)",
      "file"_a = file, "perplexity"_a = s.perplexity(), "nats"_a = s.nats_per_token(), "hidden"_a = of,
      "characters"_a = number(s.characters), "tokens"_a = number(s.tokens));
}

}  // namespace qkv::report
