// Training a translation model: what is said before it starts, two translated sentences after it, and what to type
// next.
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "qkv/cli/train_task.h"
#include "qkv/core/counts.h"
#include "qkv/core/numbers.h"
#include "qkv/core/system_reason.h"
#include "qkv/data/text.h"
#include "qkv/eval/d2l_bleu.h"
#include "qkv/report/runs.h"
#include "qkv/tasks/presets.h"
#include "qkv/tasks/translation/run.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv::cli {
namespace {

constexpr size_t kSamples = 2;
constexpr int64_t kLookedAt = 1000;  // sentences of the corpus

// Different sentences of three to ten words, from different parts of the corpus; any others if there are none.
std::vector<std::string> samples(const TranslationRun& run) {
  const TranslationText& text = run.text();
  const std::vector<std::string>& all = text.valid.source.empty() ? text.train.source : text.valid.source;
  const auto count = static_cast<size_t>(std::min<int64_t>(std::ssize(all), kLookedAt));
  std::vector<std::string> out;
  for (const bool short_only : {true, false})
    for (size_t s = out.size(); s < kSamples; ++s)
      for (size_t i = s * count / kSamples; i < count; ++i) {
        const auto blanks = std::count(all[i].begin(), all[i].end(), ' ');
        if ((short_only && (blanks < 2 || blanks > 9)) || all[i].empty() ||
            std::find(out.begin(), out.end(), all[i]) != out.end())
          continue;
        out.push_back(all[i]);
        break;
      }
  return out;
}

void say_samples(const TranslationRun& run, const Global& global) {
  const Translator translator(run.model(), run.tokenizers(), run.config());
  const std::vector<std::string> sentences = samples(run);
  const auto translations = translator.translate(sentences, translator.defaults());
  for (size_t i = 0; i < sentences.size(); ++i) {
    const std::string said = translations[i].hypotheses.empty() ? "" : translator.text(translations[i].hypotheses[0]);
    say_line(text("  ", printable(sentences[i]), " => ", printable(said)), global);
  }
}

void say_next(const TranslationRun& run, const Global& global) {
  const std::vector<std::string> sentences = samples(run);
  if (sentences.empty()) return;
  const std::string sentence = shell_word(sentences[0]), folder = shell_word(run.folder());
  fmt::print(stderr, "{}echo {} | qkv translate --model {}\n", tr("next: ").in(global.language), sentence, folder);
  if (run.model().facts().source_maps())
    fmt::print(stderr, "{}qkv inspect --model {} {}\n", tr("or:   ").in(global.language), folder, sentence);
}

// The presets expect a corpus with blanks around its punctuation. Your own text seldom has them.
void note_tokenizer(const TranslationRun& run, const std::set<std::string>& given, const Global& global) {
  const TranslationDataConfig& data = run.config().data;
  const std::string& preset = run.config().preset;
  if (preset.empty() || given.contains("data.tokenizer") || data.tokenizer != TokenizerKind::spaces || data.built_in())
    return;
  const AttachedPunctuation found = attached_punctuation(run.text().train.source);
  if (found.share < 0.5) return;
  global.note(
      tr("data.tokenizer is spaces, from the preset {preset}, but {share:.0f} % of the sentences have punctuation "
         "attached to words: \"{example}\" is one word to this model; --tokenizer words or bpe separates them",
         "preset"_a = preset, "share"_a = std::floor(100 * found.share), "example"_a = printable(found.example)));
}

void say_start_of(const TranslationRun& run, const std::set<std::string>& given, const Global& global) {
  const auto number = [](int64_t n) { return grouped(static_cast<uint64_t>(n)); };
  const TranslationConfig& config = run.config();
  const Text training = pair_count(static_cast<uint64_t>(run.training_pairs()));
  const Text pairs = run.validation_pairs() > 0 ? tr("{pairs} and {valid} for validation", "pairs"_a = training,
                                                     "valid"_a = number(run.validation_pairs()))
                                                : training;
  say_line(tr("{pairs}, vocabularies {source} and {target}, {parameters} parameters, {folder}", "pairs"_a = pairs,
              "source"_a = number(run.tokenizers().source.size()), "target"_a = number(run.tokenizers().target.size()),
              "parameters"_a = number(run.model().parameters().count()), "folder"_a = run.folder()),
           global);
  say_loaded(run.start(), global);
  note_warmup(config.training, run.updates(), global);
  const Text tokenizer = report::tokenizer_text(config.data);
  if (config.data.has_subwords() && config.data.lowercase)
    global.note(tr("{tokenizer}: translations will have no capitals; score them with qkv score --lowercase",
                   "tokenizer"_a = tokenizer));
  else if (!config.data.has_subwords() && config.data.tokenizer != TokenizerKind::spaces &&
           config.data.tokenizer != TokenizerKind::pretrained)
    say_line(tr("tokenizer: {tokenizer}", "tokenizer"_a = tokenizer), global);
  note_tokenizer(run, given, global);
}

// Prints what the book prints: the loss in its unit, the speed of the last epoch, and four sentences.
void book_ending(const TranslationRun& run, const Progress& last, const Global& global) {
  const Text speed =
      tr("loss {loss:.3f}, {tokens:.1f} tokens/sec on cpu", "loss"_a = last.epoch_loss, "tokens"_a = last.per_second());
  if (last.epoch_seconds > 0) fmt::print("{}\n", speed.in(global.language));
  const Translator translator(run.model(), run.tokenizers(), run.config());
  std::vector<std::string> sentences;
  for (const BookSentence& s : book_sentences()) sentences.emplace_back(s.source);
  const auto translations = translator.translate(sentences, translator.defaults());
  for (size_t i = 0; i < sentences.size(); ++i) {
    const std::string said = translations[i].hypotheses.empty() ? "" : translator.text(translations[i].hypotheses[0]);
    fmt::print("{} => {},  bleu {:.3f}\n", sentences[i], said, d2l_bleu(said, book_sentences()[i].target, 2));
  }
}

class TrainTranslation : public TrainTask {
 public:
  TrainTranslation(const TranslationConfig& config, const TrainRequest& request)
      : given_(request.given), run_(config, request.folder, request.existing, request.ranks) {}
  void say_start(const Global& global) const override { say_start_of(run_, given_, global); }
  TrainResult train(std::span<Observer* const> observers, const std::atomic<bool>* stop) override {
    return run_.train(observers, stop);
  }
  void say_end(const Progress& last, bool trained, const Global& global) const override {
    if (is_book_preset(run_.config().preset))
      book_ending(run_, last, global);
    else if (trained)
      say_samples(run_, global);
    if (trained) say_next(run_, global);
  }

 private:
  std::set<std::string> given_;
  TranslationRun run_;
};

}  // namespace

std::unique_ptr<TrainTask> train_task(const TranslationConfig& config, const TrainRequest& request) {
  return std::make_unique<TrainTranslation>(config, request);
}

void check_train_options(const TranslationConfig& config) {
  if (is_book_preset(config.preset) && !config.has_data())
    throw UsageError(
        tr("the preset {preset} needs the book's fra.txt: give it with --data FILE", "preset"_a = config.preset),
        tr("qkv data fra-eng -o fra.txt fetches it"));
  if (config.preset.empty()) return;
  const std::string own = translation_preset(config.preset).data.source;
  if (!own.empty() && config.data.source == own && !std::filesystem::exists(own))
    throw Error(tr("cannot open {path}: {reason}", "path"_a = own, "reason"_a = system_reason(ENOENT)),
                tr("the preset {preset} expects its data there; --source and --target name other files",
                   "preset"_a = config.preset));
}

}  // namespace qkv::cli
