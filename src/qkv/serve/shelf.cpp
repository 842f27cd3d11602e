// Runs and pretrained folders directly below the folder of models, and the folder itself if it is one.
#include "qkv/serve/shelf.h"

#include <algorithm>

#include "qkv/run/run_folder.h"
#include "qkv/run/run_state.h"
#include "qkv/serve/call.h"
#include "qkv/serve/examples.h"
#include "qkv/tasks/pretrained/folder.h"

namespace qkv::serve {
namespace {

namespace fs = std::filesystem;

fs::file_time_type last_change(const std::string& folder) {
  fs::file_time_type latest = fs::file_time_type::min();  // the clock begins in the future: zero would not do
  std::error_code no;
  for (const char* name : {"/config.yaml", "/model.safetensors", "/checkpoints/last.safetensors",
                           "/checkpoints/best.safetensors", "/metrics.jsonl", "/config.json", "/model.bin"})
    if (const auto time = fs::last_write_time(folder + name, no); !no) latest = std::max(latest, time);
  return latest;
}

// What decides whether a model in memory is still that of the folder.
fs::file_time_type weights_change(const std::string& folder) {
  if (is_pretrained_folder(folder)) return last_change(folder);
  std::error_code no;
  return fs::last_write_time(run_weights(folder), no);
}

// What no bench of the page shows.
void refuse_unshown(const std::string& folder) {
  require(run_task(folder) != TaskKind::encoding,
          "the page has no bench for encoders of texts; qkv embed, generate, classify and inspect use this model");
}

ShelfModel look(const std::string& id, const std::string& folder) {
  ShelfModel out;
  out.id = id;
  out.folder = folder;
  out.name = fs::path(folder).filename().string();
  out.changed = last_change(folder);
  out.held = is_training(folder);
  try {
    refuse_unshown(folder);
    if (is_pretrained_folder(folder)) {
      out.run = report::report_pretrained_as_run(folder);
      out.has_weights = !out.run->weights.empty();
      if (out.run->config.task() == TaskKind::vision) out.images = read_image_facts(folder);
      return out;
    }
    out.run = report::report_run(folder);
    out.has_weights = !out.run->weights.empty();
    if (out.run->config.task() == TaskKind::vision) out.images = read_image_facts(folder);
    out.examples = std::visit(
        [&]<class T>(const T& config) -> std::vector<std::string> {
          if constexpr (requires { example_texts(config, folder); }) return example_texts(config, folder);
          return {};
        },
        out.run->config.of);
    const double epochs = static_cast<double>(std::max<int64_t>(out.run->config.training().epochs, 1));
    out.done = out.run->ended_early ? 1 : std::min(1.0, static_cast<double>(out.run->epochs) / epochs);
    // The final weights are written last; without them, and with nobody at it, the run was interrupted.
    if (out.held)
      out.state = ModelState::training;
    else if (!fs::exists(folder + "/model.safetensors"))
      out.state = ModelState::interrupted;
    if (out.state == ModelState::ready) out.done = 1;
    return out;
  } catch (const Error& e) {
    out.error = e.message();
  } catch (const std::exception& e) {
    out.error = verbatim(e.what());
  }
  out.state = ModelState::failed;
  out.done = 0;
  return out;
}

bool holds_model(const std::string& folder) { return report::is_run_folder(folder) || is_pretrained_folder(folder); }

}  // namespace

bool ModelShelf::scan() {
  std::vector<std::string> folders;
  std::error_code no;
  if (holds_model(folder_)) folders.push_back(fs::path(folder_).lexically_normal().string());
  for (fs::directory_iterator it(folder_, no), end; !no && it != end; it.increment(no)) {
    const std::string path = it->path().string();
    if (!it->path().filename().string().starts_with('.') && it->is_directory(no) && holds_model(path))
      folders.push_back(path);
  }
  std::sort(folders.begin(), folders.end());
  std::vector<ShelfModel> before;
  {
    const std::lock_guard lock(mutex_);
    before = models_;
    for (const std::string& f : folders)
      if (!ids_.contains(f)) ids_[f] = "m" + std::to_string(ids_.size() + 1);
  }
  bool changed = before.size() != folders.size();
  std::vector<ShelfModel> now;
  for (const std::string& f : folders) {
    const auto same = std::ranges::find(before, f, &ShelfModel::folder);
    if (same != before.end() && same->changed == last_change(f) && same->held == is_training(f)) {
      now.push_back(*same);
      continue;
    }
    changed = true;
    now.push_back(look(ids_.at(f), f));
  }
  const std::lock_guard lock(mutex_);
  models_ = std::move(now);
  return changed;
}

std::vector<ShelfModel> ModelShelf::models() const {
  const std::lock_guard lock(mutex_);
  return models_;
}

ShelfModel ModelShelf::model(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  auto known = std::ranges::find(ids_, id, [](const auto& entry) { return entry.second; });
  if (known == ids_.end())
    known = std::ranges::find(ids_, id, [](const auto& entry) { return fs::path(entry.first).filename().string(); });
  if (known == ids_.end())
    throw Refused(404, tr("there is no model {id}", "id"_a = id), tr("GET /api/v1/models lists the models"));
  const auto found = std::ranges::find(models_, known->second, &ShelfModel::id);
  if (found == models_.end() || !holds_model(found->folder))
    throw Refused(410, tr("the folder of model {id} is gone: {name}", "id"_a = id,
                          "name"_a = fs::path(known->first).filename().string()));
  return *found;
}

BackgroundTraining ModelShelf::background() const {
  const std::lock_guard lock(mutex_);
  return background_;
}

void ModelShelf::set_background(BackgroundTraining background) {
  const std::lock_guard lock(mutex_);
  background_ = std::move(background);
}

LoadedModel ModelShelf::loaded(const ShelfModel& model) {
  const auto changed = weights_change(model.folder);
  const auto held = std::ranges::find(held_, model.id, &Held::id);
  if (held != held_.end() && held->changed == changed) {
    held_.splice(held_.begin(), held_, held);
    return held->model;
  }
  if (held != held_.end()) held_.erase(held);
  LoadedModel made;
  switch (model.run->config.task()) {
    case TaskKind::translation:
      made = std::make_shared<const Translator>(model.folder);
      break;
    case TaskKind::language:
      made = std::make_shared<const LanguageGenerator>(model.folder);
      break;
    case TaskKind::vision:
      made = std::make_shared<const Classifier>(model.folder);
      break;
    case TaskKind::encoding:
      fail("[serve] ", model.folder, " has no bench");
  }
  held_.push_front({model.id, changed, made});
  if (held_.size() > kLoaded) held_.pop_back();
  return made;
}

template <class T>
std::shared_ptr<const T> ModelShelf::as(const std::string& id, TaskKind task) {
  const ShelfModel model = this->model(id);
  if (!model.run) throw Refused(409, tr("{name}: {problem}", "name"_a = model.name, "problem"_a = model.error));
  if (model.run->config.task() != task)
    throw Refused(400, tr("{name} is not {expected}", "name"_a = model.name, "expected"_a = facts_of(task).model));
  if (!model.can_answer())
    throw Refused(
        409, model.state == ModelState::training
                 ? tr("{name} has no weights yet: its training has just begun", "name"_a = model.name)
                 : tr("{name} has no weights: its training ended before the first checkpoint", "name"_a = model.name));
  const std::lock_guard lock(loading_);
  return std::get<std::shared_ptr<const T>>(loaded(model));
}

std::shared_ptr<const Translator> ModelShelf::translator(const std::string& id) {
  return as<Translator>(id, TaskKind::translation);
}
std::shared_ptr<const LanguageGenerator> ModelShelf::generator(const std::string& id) {
  return as<LanguageGenerator>(id, TaskKind::language);
}
std::shared_ptr<const Classifier> ModelShelf::classifier(const std::string& id) {
  return as<Classifier>(id, TaskKind::vision);
}

}  // namespace qkv::serve
