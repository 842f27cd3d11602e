// Two translated sentences of the corpus, and what to type next.
#include "qkv/cli/train_ending.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "qkv/cli/terminal.h"
#include "qkv/labs/wrap.h"
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

}  // namespace

std::string shell_word(const std::string& word) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:=@%+";
  if (!word.empty() && word.find_first_not_of(kSafe) == word.npos) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void say_line(const Text& text, const Global& global) {
  const std::string line = text.in(global.language);
  fmt::print(stderr, "{}\n", ::isatty(STDERR_FILENO) ? labs::wrapped(line, terminal_columns(STDERR_FILENO), 2) : line);
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

}  // namespace qkv::cli
