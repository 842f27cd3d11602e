// Training a language model: what is said before it starts, a sample of its text after it, and what to type next.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/train_task.h"
#include "qkv/core/numbers.h"
#include "qkv/data/text.h"
#include "qkv/report/runs.h"
#include "qkv/tasks/language/generator.h"
#include "qkv/tasks/language/run.h"

namespace qkv::cli {
namespace {

constexpr int64_t kShown = 60;  // tokens of a sample

// On one line.
std::string shown(std::string text) {
  for (size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at)) text.replace(at, 1, "⏎");
  return printable(text);
}

// The first words of a line of the text; with a gap for a model that fills gaps.
std::string prompt_of(const LanguageRun& run) {
  const std::string& all = run.text().valid.empty() ? run.text().train : run.text().valid;
  std::string line;
  for (const std::string& candidate : split(all.substr(0, 10'000), '\n'))
    if (split_blanks(candidate).size() >= 3) {
      line = candidate;
      break;
    }
  const std::vector<std::string_view> words = split_blanks(line);
  std::string prompt;
  for (size_t i = 0; i < std::min<size_t>(words.size(), 3); ++i)
    prompt +=
        text(i > 0 ? " " : "", i == 2 && run.config().model.objective != LanguageObjective::causal ? kGap : words[i]);
  return prompt;
}

class TrainLanguage : public TrainTask {
 public:
  TrainLanguage(const LanguageConfig& config, const TrainRequest& request)
      : run_(config, request.folder, request.existing, request.ranks) {}

  void say_start(const Global& global) const override {
    const auto number = [](int64_t n) { return grouped(static_cast<uint64_t>(n)); };
    const int64_t train = std::ssize(run_.task().train_ids()), valid = std::ssize(run_.task().valid_ids());
    const Text tokens = valid > 0 ? tr("{tokens} tokens and {valid} for validation", "tokens"_a = number(train),
                                       "valid"_a = number(valid))
                                  : tr("{tokens} tokens", "tokens"_a = number(train));
    say_line(
        tr("{tokens} ({tokenizer}, vocabulary {vocabulary}), {parameters} parameters, {folder}", "tokens"_a = tokens,
           "tokenizer"_a = report::tokenizer_text(run_.config().data), "vocabulary"_a = number(run_.tokenizer().size()),
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
    const std::string prompt = prompt_of(run_);
    if (prompt.empty()) return;
    const LanguageGenerator generator(run_.model(), run_.tokenizer(), run_.config());
    GenerateOptions options = generator.defaults();
    options.max_tokens = std::min(options.max_tokens, kShown);
    options.seed = global.seed;
    if (run_.config().model.objective == LanguageObjective::causal)
      say_line(text("  ", shown(prompt + generator.generate(std::span(&prompt, 1), options)[0].texts[0].text)), global);
    else if (std::ssize(generator.tokenizer().encode(prompt)) < run_.config().model.context)
      say_line(text("  ", printable(prompt), " => ", shown(generator.fill(prompt, 1, options).text)), global);
    const std::string folder = shell_word(run_.folder()), words = shell_word(prompt);
    fmt::print(stderr, "{}qkv generate --model {} --prompt {}\n", tr("next: ").in(global.language), folder, words);
    fmt::print(stderr, "{}qkv inspect --model {} {}\n", tr("or:   ").in(global.language), folder, words);
  }

 private:
  LanguageRun run_;
};

}  // namespace

std::unique_ptr<TrainTask> train_task(const LanguageConfig& config, const TrainRequest& request) {
  return std::make_unique<TrainLanguage>(config, request);
}

void check_train_options(const LanguageConfig&) {}

}  // namespace qkv::cli
