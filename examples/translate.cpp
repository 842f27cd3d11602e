// A translation model: trained on a file of sentence pairs, saved in a folder, loaded from there, asked to translate.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "qkv/tasks/translation/run.h"
#include "qkv/tasks/translation/translator.h"

using namespace qkv;

// A word, and the form that it takes beside a masculine and a feminine noun.
struct Adapting {
  std::string english, masculine, feminine;
};

// All sentences of a small grammar. In French the colour follows the noun, and article and colour have its gender.
SentencePairs grammar() {
  struct Noun {
    std::string english, french;
    bool feminine;
  };
  const std::vector<Adapting> articles = {{"the", "le", "la"}, {"a", "un", "une"}, {"my", "mon", "ma"}};
  const std::vector<Noun> nouns = {{"cat", "chat", false},      {"dog", "chien", false},   {"horse", "cheval", false},
                                   {"cow", "vache", true},      {"mouse", "souris", true}, {"turtle", "tortue", true},
                                   {"frog", "grenouille", true}};
  const std::vector<Adapting> colours = {
      {"black", "noir", "noire"}, {"white", "blanc", "blanche"}, {"green", "vert", "verte"}};
  const std::vector<Adapting> verbs = {
      {"sleeps", "dort", "dort"}, {"eats", "mange", "mange"}, {"sings", "chante", "chante"}};
  SentencePairs pairs;
  for (const Adapting& article : articles)
    for (const Noun& noun : nouns)
      for (const Adapting& colour : colours)
        for (const Adapting& verb : verbs) {
          const auto form = [&](const Adapting& w) { return noun.feminine ? w.feminine : w.masculine; };
          pairs.source.push_back(article.english + " " + colour.english + " " + noun.english + " " + verb.english);
          pairs.target.push_back(form(article) + " " + noun.french + " " + form(colour) + " " + form(verb));
        }
  return pairs;
}

int main() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "qkv_translate";
  std::filesystem::create_directories(folder);

  // Every fifth sentence is kept out of the file.
  const SentencePairs all = grammar();
  std::vector<std::string> held, wanted;
  {
    std::ofstream file(folder / "pairs.tsv");
    for (size_t i = 0; i < all.source.size(); ++i)
      if (i % 5 == 4) {
        held.push_back(all.source[i]);
        wanted.push_back(all.target[i]);
      } else {
        file << all.source[i] << '\t' << all.target[i] << '\n';
      }
  }

  // Train. The folder gets configuration, vocabularies, checkpoints and weights; a second start would resume.
  TranslationConfig config;
  config.data.pairs = folder / "pairs.tsv";
  config.data.tokenizer = TokenizerKind::spaces;
  config.data.min_count = 1;
  config.model = TransformerConfig{.hidden = 32, .ffn = 64, .heads = 2, .norm = NormPlace::pre};
  config.training.epochs = 40;
  config.training.batch_rows = 16;
  config.training.rate = 5e-3;
  config.training.schedule = ScheduleKind::cosine;
  {
    TranslationRun run(config, folder / "run", ExistingRun::discard);
    const TrainResult result = run.train();
    std::printf("trained on %ld pairs; loss below 0.1 nats per token: %s\n", long(run.training_pairs()),
                result.progress.epoch_loss < 0.1 ? "yes" : "no");
  }

  // Load, and translate what was kept out.
  const Translator translator(folder / "run");
  const auto translations = translator.translate(held, translator.defaults());
  size_t right = 0;
  for (size_t i = 0; i < held.size(); ++i) right += translator.text(translations[i].hypotheses[0]) == wanted[i];
  std::printf("new sentences: %zu; right: %s\n", held.size(),
              right * 10 >= held.size() * 9 ? "at least 90 %" : "fewer");
  std::printf("%s => %s\n", held[7].c_str(), translator.text(translations[7].hypotheses[0]).c_str());
  std::filesystem::remove_all(folder);
}
