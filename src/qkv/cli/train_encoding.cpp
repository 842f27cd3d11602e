// Training an encoder of texts: what is said before it starts, how good it is after it, and what to type next.
#include <fmt/format.h>

#include <cstdio>

#include "qkv/cli/train_task.h"
#include "qkv/core/counts.h"
#include "qkv/core/numbers.h"
#include "qkv/tasks/encoding/run.h"

namespace qkv::cli {
namespace {

class TrainEncoding : public TrainTask {
 public:
  TrainEncoding(const EncodingConfig& config, const TrainRequest& request)
      : run_(config, request.folder, request.existing, request.ranks) {}

  void say_start(const Global& global) const override {
    const auto number = [](int64_t n) { return grouped(static_cast<uint64_t>(n)); };
    const EncodingData& data = run_.data();
    const Text trained = text_count(static_cast<uint64_t>(data.train.count()));
    const Text texts = data.valid.count() > 0 ? tr("{texts} and {valid} for validation", "texts"_a = trained,
                                                   "valid"_a = number(data.valid.count()))
                                              : trained;
    const Text what = classifies() ? tr("{count} classes", "count"_a = data.classes.size()) : tr("hidden words");
    say_line(tr("{texts}, {what}, {parameters} parameters, {folder}", "texts"_a = texts, "what"_a = what,
                "parameters"_a = number(run_.parameters().count()), "folder"_a = run_.folder()),
             global);
    say_loaded(run_.start(), global);
    if (const int64_t cut = data.train.cut + data.valid.cut; cut > 0)
      global.note(tr("{texts} had more tokens than are read and were cut off (data.max_tokens)",
                     "texts"_a = text_count(static_cast<uint64_t>(cut))));
    note_warmup(run_.config().training, run_.updates(), global);
  }

  TrainResult train(std::span<Observer* const> observers, const std::atomic<bool>* stop) override {
    return run_.train(observers, stop);
  }

  void say_end(const Progress&, bool trained, const Global& global) const override {
    if (!trained) return;
    if (classifies() && run_.data().valid.count() > 0) {
      const Validated measured = run_.task().validate();
      say_line(tr("validation accuracy {accuracy:.4f}, loss {loss:.4f}", "accuracy"_a = *measured.accuracy,
                  "loss"_a = measured.loss),
               global);
    }
    const std::string folder = shell_word(run_.folder());
    fmt::print(stderr, "{}qkv {}\n", tr("next: ").in(global.language),
               classifies() ? fmt::format("classify --model {} --text TEXT", folder)
                            : fmt::format("generate --model {} --prompt 'a text with a [MASK]'", folder));
    fmt::print(stderr, "{}qkv inspect --model {} TEXT\n", tr("or:   ").in(global.language), folder);
  }

 private:
  bool classifies() const { return run_.config().model.bert.head == EncoderHead::classes; }
  EncodingRun run_;
};

}  // namespace

std::unique_ptr<TrainTask> train_task(const EncodingConfig& config, const TrainRequest& request) {
  return std::make_unique<TrainEncoding>(config, request);
}

void check_train_options(const EncodingConfig&) {}

}  // namespace qkv::cli
