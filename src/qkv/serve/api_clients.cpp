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
  require(in.at("q").size() <= 64, "q: at most {most} texts are accepted", "most"_a = 64);
  for (const Json& text : in.at("q")) {
    require(text.is_string(), "q: expected texts");
    out.push_back(translated(call, model, text.get<std::string>()));
  }
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

Json openai_models(const Call& call) {
  Json list = Json::array();
  for (const ShelfModel& m : call.api.shelf().models())
    if (m.can_answer() && m.run && m.run->config.task() == TaskKind::language)
      list.push_back({{"id", m.name}, {"object", "model"}, {"created", 0}, {"owned_by", "qkv"}});
  return {{"object", "list"}, {"data", list}};
}

Json openai_completions(const Call& call) {
  const Fields in = call.fields();
  const std::string wanted = in.text("model", "");
  std::string id;
  for (const ShelfModel& m : call.api.shelf().models()) {
    if (!m.can_answer() || !m.run || m.run->config.task() != TaskKind::language) continue;
    if (id.empty() && (wanted.empty() || m.name == wanted || m.id == wanted)) id = m.id;
  }
  if (id.empty()) throw Refused(404, tr("there is no language model {name}", "name"_a = wanted));
  require(!in.flag("stream", false), "stream: this server answers as a whole");
  const auto generator = call.api.shelf().generator(id);
  GenerateOptions options = generator->defaults();
  options.temperature = in.number("temperature", 0, 2, 1);
  options.top_p = in.number("top_p", 1e-6, 1, 1);
  options.max_tokens = in.whole("max_tokens", 1, 1000, 16);
  options.samples = in.whole("n", 1, 8, 1);
  options.seed = static_cast<uint64_t>(in.whole("seed", 0, INT64_C(1) << 53, 0));
  options.stop = call.stop;
  if (in.has("stop") && in.at("stop").is_array()) {
    for (const Json& s : in.at("stop"))
      if (s.is_string() && options.stops.size() < 4) options.stops.push_back(s.get<std::string>());
  } else if (in.has("stop")) {
    options.stops = {in.text("stop")};
  }
  const std::vector<std::string> prompts = {in.text("prompt", "")};
  const Continued written = generator->generate(prompts, options)[0];
  call.go_on();
  Json choices = Json::array();
  size_t tokens = 0;
  for (size_t i = 0; i < written.texts.size(); ++i) {
    tokens += written.texts[i].tokens.size();
    choices.push_back({{"text", written.texts[i].text},
                       {"index", i},
                       {"logprobs", nullptr},
                       {"finish_reason", name_of(written.texts[i].end)}});
  }
  return {{"id", "cmpl-qkv"},
          {"object", "text_completion"},
          {"created", 0},
          {"model", call.api.shelf().model(id).name},
          {"choices", choices},
          {"usage",
           {{"prompt_tokens", written.prompt.size()},
            {"completion_tokens", tokens},
            {"total_tokens", written.prompt.size() + tokens}}}};
}

}  // namespace qkv::serve
