// Training a classifier of images: what is said before it starts, how good it is after it, and what to type next.
#include <fmt/format.h>

#include <cstdio>

#include "qkv/cli/train_task.h"
#include "qkv/core/counts.h"
#include "qkv/core/numbers.h"
#include "qkv/tasks/vision/run.h"

namespace qkv::cli {
namespace {

class TrainVision : public TrainTask {
 public:
  TrainVision(const VisionConfig& config, const TrainRequest& request)
      : run_(config, request.folder, request.existing, request.ranks) {}

  void say_start(const Global& global) const override {
    const auto number = [](int64_t n) { return grouped(static_cast<uint64_t>(n)); };
    const VisionData& data = run_.data();
    const Text trained = image_count(static_cast<uint64_t>(data.train.count()));
    const Text images = data.valid.count() > 0 ? tr("{images} and {valid} for validation", "images"_a = trained,
                                                    "valid"_a = number(data.valid.count()))
                                               : trained;
    say_line(tr("{images}, {size} pixels, {classes} classes, {parameters} parameters, {folder}", "images"_a = images,
                "size"_a = size_text(data.facts.size), "classes"_a = data.facts.classes.size(),
                "parameters"_a = number(run_.parameters().count()), "folder"_a = run_.folder()),
             global);
    say_loaded(run_.start(), global);
    note_warmup(run_.config().training, run_.updates(), global);
  }

  TrainResult train(std::span<Observer* const> observers, const std::atomic<bool>* stop) override {
    return run_.train(observers, stop);
  }

  void say_end(const Progress&, bool trained, const Global& global) const override {
    if (!trained) return;
    if (run_.data().valid.count() > 0) {
      const Validated measured = run_.validate();
      say_line(tr("validation accuracy {accuracy:.4f}, loss {loss:.4f}", "accuracy"_a = *measured.accuracy,
                  "loss"_a = measured.loss),
               global);
    }
    const std::string folder = shell_word(run_.folder());
    const bool drawn = run_.config().data.built_in();
    if (drawn)
      fmt::print(stderr, "{}qkv data pictures --count 20 --seed 7 -o some && qkv classify --model {} some/*/*.png\n",
                 tr("next: ").in(global.language), folder);
    else
      fmt::print(stderr, "{}qkv classify --model {} IMAGE.png\n", tr("next: ").in(global.language), folder);
    fmt::print(stderr, "{}qkv inspect --model {} {} -o attention.png\n", tr("or:   ").in(global.language), folder,
               drawn ? "some/star/3.png" : "IMAGE.png");
  }

 private:
  VisionRun run_;
};

}  // namespace

std::unique_ptr<TrainTask> train_task(const VisionConfig& config, const TrainRequest& request) {
  return std::make_unique<TrainVision>(config, request);
}

void check_train_options(const VisionConfig&) {}

}  // namespace qkv::cli
