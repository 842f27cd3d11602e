// GET /about, /models: what the program and its models are.
#include <chrono>

#include "qkv/attention/any_scorer.h"
#include "qkv/attention/positions.h"
#include "qkv/core/forms.h"
#include "qkv/core/parallel.h"
#include "qkv/core/version.h"
#include "qkv/kernels/target.h"
#include "qkv/regression/local_fit.h"
#include "qkv/serve/models_json.h"

namespace qkv::serve {
namespace {

// Since 1970. Not every standard library can turn the time of a file into that of the system; how long ago it was, any.
int64_t seconds_of(std::filesystem::file_time_type time) {
  using namespace std::chrono;
  const auto at = system_clock::now().time_since_epoch() + (time - file_clock::now());
  return duration_cast<seconds>(round<milliseconds>(at)).count();
}

Json layers_of(const ModelFacts& facts) {
  Json out = Json::object();
  for (const MapGroup& group : facts.maps)
    if (group.numbered && group.name != "cross") out[std::string(group.name)] = group.layers;
  return out;
}

void add_facts(Json& out, const ModelFacts& facts, Language language) {
  out["summary"] = facts.summary.in(language);
  out["layers"] = layers_of(facts);
  out["heads"] = facts.maps.empty() ? Json() : Json(facts.maps.front().heads);
  out["maps"] = Json::array();
  for (const MapGroup& group : facts.maps) out["maps"].push_back(group.name);
  if (facts.longest_input) out["longest"] = *facts.longest_input;
}

void add_task(Json& out, const TranslationConfig& config, Language language) {
  add_facts(out, config.facts(), language);
  out["gold"] = config.data.built_in();
}

void add_task(Json& out, const LanguageConfig& config, Language language) {
  add_facts(out, config.facts(), language);
  out["objective"] = name_of(config.model.objective);
  out["gold"] = false;
}

void add_task(Json& out, const VisionConfig& config, Language language) {
  add_facts(out, config.model.facts(), language);
  out["gold"] = false;
}

void add_task(Json& out, const EncodingConfig& config, Language language) {
  add_facts(out, config.facts(), language);
  out["gold"] = false;
}

}  // namespace

Json model_json(const ShelfModel& model, Language language) {
  Json out = {{"id", model.id},
              {"name", model.name},
              {"state", name_of(model.state)},
              {"done", model.done},
              {"changed", seconds_of(model.changed)}};
  if (!model.error.empty()) out["error"] = model.error.in(language);
  out["usable"] = model.can_answer();
  if (model.state == ModelState::interrupted)
    out["resume"] = command_line({"train", "-c", model.folder + "/config.yaml", "-o", model.folder});
  if (!model.run) return out;
  out["task"] = facts_of(model.run->config.task()).name;
  out["kind"] = model.run->config.kind();
  out["parameters"] = model.run->parameters;
  out["epochs"] = model.run->epochs;
  out["of_epochs"] = model.run->config.training().epochs;
  if (model.run->loss) out["loss"] = *model.run->loss;
  if (model.run->valid_loss) out["valid_loss"] = *model.run->valid_loss;
  std::visit([&](const auto& config) { add_task(out, config, language); }, model.run->config.of);
  out["examples"] = model.examples;
  if (model.images)
    out["image"] = {{"size", model.images->size.height},
                    {"channels", model.images->size.channels},
                    {"classes", model.images->classes}};
  return out;
}

Json background_json(const ModelShelf& shelf, Language language) {
  const BackgroundTraining background = shelf.background();
  if (background.state == BackgroundTraining::State::none) return nullptr;
  Json out = {{"state", name_of(background.state)}, {"name", background.name}};
  if (!background.error.empty()) out["error"] = background.error.in(language);
  return out;
}

Json models_json(const ModelShelf& shelf, Language language) {
  Json list = Json::array();
  for (const ShelfModel& model : shelf.models()) list.push_back(model_json(model, language));
  return {{"models", std::move(list)}, {"background", background_json(shelf, language)}};
}

Json models(const Call& call) { return models_json(call.api.shelf(), call.language); }

Json health(const Call&) { return {{"status", "ok"}, {"version", version()}}; }

Json about(const Call& call) {
  Json scorers = Json::array();
  for (const ScorerKind kind : every<ScorerKind>()) {
    if (kind == ScorerKind::none) continue;
    const ScorerFacts& facts = facts_of(kind);
    const ScorerInputs inputs = inputs_of(kind);
    Json tensors = Json::array();
    for (const auto& [name, needed] : inputs.tensors) tensors.push_back({{"name", name}, {"needed", needed}});
    scorers.push_back({{"name", facts.name},
                       {"formula", facts.formula},
                       {"equal_widths", facts.equal_widths},
                       {"bandwidth", inputs.bandwidth},
                       {"temperature", inputs.temperature},
                       {"scale", inputs.scale},
                       {"params", std::move(tensors)},
                       {"param_shapes", facts.tensors}});
  }
  return {{"version", version()},
          {"languages", {"en", "zh"}},
          {"kernels", kernels::running_target()},
          {"threads", threads()},
          {"scorers", std::move(scorers)},
          {"kernels_1d", names_of(every<KernelShape>())},
          {"estimators", names_of(every<Estimator>())},
          {"positions", names_of(every<PositionKind>())},
          {"background", background_json(call.api.shelf(), call.language)}};
}

}  // namespace qkv::serve
