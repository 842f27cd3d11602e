// Requests as clients of other programs send them: LibreTranslate's /translate and /languages, and OpenAI's form of
// /v1/completions and /v1/models.
#include <cmath>

#include "qkv/serve/call.h"

namespace qkv::serve {
namespace {

struct Pair {
  std::string source, target;
};

// The built-in corpus names its languages; other data does not, and is "auto" here.
Pair languages_of(const TranslationConfig& config) {
  if (!config.data.built_in()) return {"auto", "auto"};
  return config.data.reverse ? Pair{"fr", "en"} : Pair{"en", "fr"};
}

std::vector<std::pair<ShelfModel, Pair>> translators(const Call& call) {
  std::vector<std::pair<ShelfModel, Pair>> out;
  for (ShelfModel& m : call.api.shelf().models()) {
    if (!m.can_answer() || !m.run || m.run->config.task() != TaskKind::translation) continue;
    const Pair pair = languages_of(std::get<TranslationConfig>(m.run->config.of));
    out.emplace_back(std::move(m), pair);
  }
  return out;
}

std::string translated(const Call& call, const std::string& model, const std::string& text) {
  const auto translator = call.api.shelf().translator(model);
  TranslateOptions options = translator->defaults();
  options.name = tr("the text");
  options.watch.stop = call.stop;
  const std::vector<std::string> one = {text};
  const Translation t = translator->translate(one, options)[0];
  call.go_on();
  return t.hypotheses.empty() ? "" : translator->text(t.hypotheses[0], t.writing);
}

// A text, or a list of some.
std::vector<std::string> texts(const Fields& in, const char* key, size_t most) {
  if (!in.has(key)) return {};
  if (!in.at(key).is_array()) return {in.text(key)};
  std::vector<std::string> out;
  for (const Json& one : in.at(key)) {
    require(one.is_string() && out.size() < most, "{field}: expected a text or a list of at most {most} texts",
            "field"_a = key, "most"_a = most);
    out.push_back(one.get<std::string>());
  }
  return out;
}

}  // namespace

Json libre_translate(const Call& call) {
  const Fields in = call.fields();
  const std::string source = in.text("source", "auto"), target = in.text("target", "auto");
  std::string model;
  for (const auto& [m, pair] : translators(call)) {
    const bool fits = (source == "auto" || pair.source == "auto" || source == pair.source) &&
                      (target == "auto" || pair.target == "auto" || target == pair.target);
    if (fits && model.empty()) model = m.id;
  }
  if (model.empty()) refuse("no model translates from {source} to {target}", "source"_a = source, "target"_a = target);
  if (!in.at("q").is_array()) return {{"translatedText", translated(call, model, in.text("q"))}};
  Json out = Json::array();
  for (const std::string& text : texts(in, "q", 64)) out.push_back(translated(call, model, text));
  return {{"translatedText", out}};
}

Json libre_languages(const Call& call) {
  Json out = Json::array();
  const auto name = [](const std::string& code) { return code == "en" ? "English" : code == "fr" ? "French" : "auto"; };
  for (const auto& [m, pair] : translators(call)) {
    bool known = false;
    for (const Json& l : out) known = known || l["code"] == pair.source;
    if (!known) out.push_back({{"code", pair.source}, {"name", name(pair.source)}, {"targets", {pair.target}}});
  }
  return out;
}

namespace {

Json openai_model_json(const ShelfModel& m) {
  return {{"id", m.name}, {"object", "model"}, {"created", 0}, {"owned_by", "qkv"}};
}

std::vector<ShelfModel> language_models(const Call& call) {
  std::vector<ShelfModel> out;
  for (ShelfModel& m : call.api.shelf().models())
    if (m.can_answer() && m.run && m.run->config.task() == TaskKind::language) out.push_back(std::move(m));
  return out;
}

// By name or id; the first one if there is no name.
ShelfModel language_model(const Call& call, const std::string& wanted) {
  for (const ShelfModel& m : language_models(call))
    if (wanted.empty() || m.name == wanted || m.id == wanted) return m;
  if (wanted.empty()) throw Refused(404, tr("there is no language model"), tr("qkv train --preset lm makes one"));
  throw Refused(404, tr("there is no language model {name}", "name"_a = wanted));
}

Json logprobs_json(const LanguageGenerator& generator, const GeneratedText& text) {
  Json offsets = Json::array();
  size_t offset = 0;
  for (const int32_t token : text.tokens) {
    offsets.push_back(offset);
    if (token < generator.tokenizer().size()) offset += generator.tokenizer().decode(std::vector{token}).size();
  }
  return {{"tokens", generator.tokens(text.tokens)},
          {"token_logprobs", text.log_probabilities},
          {"top_logprobs", nullptr},
          {"text_offset", offsets}};
}

}  // namespace

Json openai_models(const Call& call) {
  Json list = Json::array();
  for (const ShelfModel& m : language_models(call)) list.push_back(openai_model_json(m));
  return {{"object", "list"}, {"data", list}};
}

Json openai_model(const Call& call, const std::string& name) { return openai_model_json(language_model(call, name)); }

Json openai_completions(const Call& call) {
  const Fields in = call.fields();
  const ShelfModel model = language_model(call, in.text("model", ""));
  const auto generator = call.api.shelf().generator(model.id);
  require(generator->objective() == LanguageObjective::causal,
          "this model fills gaps: only a causal model writes the next token");
  GenerateOptions options = generator->defaults();
  options.temperature = in.number("temperature", 0, 2, 1);
  options.top_p = in.number("top_p", 1e-6, 1, 1);
  options.max_tokens = in.whole("max_tokens", 1, 1000, 16);
  options.samples = in.whole("n", 1, 8, 1);
  options.seed = static_cast<uint64_t>(in.whole("seed", 0, INT64_C(1) << 53, 0));
  options.stop = call.stop;
  options.stops = texts(in, "stop", 4);
  std::vector<std::string> prompts = texts(in, "prompt", 16);
  if (prompts.empty()) prompts.emplace_back();
  const auto written = generator->generate(prompts, options);
  call.go_on();
  Json choices = Json::array();
  size_t read = 0, tokens = 0;
  for (size_t p = 0; p < written.size(); ++p) {
    read += written[p].prompt.size();
    for (const GeneratedText& text : written[p].texts) {
      tokens += text.tokens.size();
      choices.push_back({{"text", (in.flag("echo", false) ? prompts[p] : "") + text.text},
                         {"index", choices.size()},
                         {"logprobs", in.has("logprobs") ? logprobs_json(*generator, text) : Json()},
                         {"finish_reason", text.end == TextEnd::length ? "length" : "stop"}});
    }
  }
  Json out = {{"id", "cmpl-qkv"}, {"object", "text_completion"}, {"created", 0}, {"model", model.name}};
  if (!in.flag("stream", false)) {
    out["choices"] = choices;
    out["usage"] = {{"prompt_tokens", read}, {"completion_tokens", tokens}, {"total_tokens", read + tokens}};
    return out;
  }
  // As events, one per choice: what such a client expects, although everything is written by now.
  std::string events;
  for (const Json& choice : choices) {
    out["choices"] = Json::array({choice});
    events += "data: " + out.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n\n";
  }
  return events + "data: [DONE]\n\n";
}

}  // namespace qkv::serve
