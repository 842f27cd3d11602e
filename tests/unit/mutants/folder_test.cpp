// Mutants of the files of a model's folder: it is loaded and translates, or is refused.
#include "../tasks/translation_fixture.h"
#include "mutator.h"
#include "qkv/tasks/language/generator.h"
#include "qkv/tasks/language/run.h"
#include "qkv/tasks/translation/translator.h"

namespace qkv {
namespace {

class MutantFolders : public TranslationRunTest {
 protected:
  // Trains a tiny model, then damages one file of its folder after the other.
  void damage(const TranslationConfig& config, const std::vector<std::string>& names) {
    TranslationRun(config, run_folder()).train({}, nullptr);
    for (const std::string& name : names) {
      SCOPED_TRACE(name);
      const std::string path = run_folder() + "/" + name;
      const qkv_test::Seeds seeds{
          {qkv_test::file_bytes(path)},
          {"{", "}", "[", ",", ": ", "\"", "-1", "0", "\n", "<unk>", "subwords", "transformer"}};
      qkv_test::survives(seeds, path, qkv_test::mutants(100), [&](const std::string&) {
        const Translator translator(run_folder());
        const std::vector<std::string> sentences = {"1 2 3", "", "9 x"};
        for (const Translation& t : translator.translate(sentences, {.beam = 2, .max_length = 4}))
          for (const Hypothesis& h : t.hypotheses) translator.text(h);
      });
    }
  }
};

}  // namespace

TEST_F(MutantFolders, OfWordsAreUsedOrRefused) {
  TranslationConfig c = config(1);
  c.seq2seq().embed = c.seq2seq().hidden = 4;
  damage(c, {"config.yaml", "model.safetensors", "vocab.source.txt", "vocab.target.txt", "tokenizer.target.txt"});
}

TEST_F(MutantFolders, OfSubwordsAreUsedOrRefused) {
  TranslationConfig c = config(1);
  c.model = TransformerConfig{.hidden = 8, .ffn = 8, .heads = 2};
  c.data.tokenizer = TokenizerKind::bpe;
  c.data.vocabulary = 26;
  c.data.shared_vocabulary = true;
  damage(c, {"config.yaml", "model.safetensors", "source.model", "target.model", "tokenizer.source.txt"});
}

TEST(MutantLanguageFolders, AreUsedOrRefused) {
  const qkv_test::TempFolder folder;
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += "one two three\n";
  qkv_test::put_bytes(folder / "text.txt", lines);
  for (const TextTokens tokens : {TextTokens::characters, TextTokens::words}) {
    LanguageConfig c;
    c.data.text = folder / "text.txt";
    c.data.tokenizer = tokens;
    c.model.context = 8;
    c.model.transformer.hidden = c.model.transformer.ffn = 8;
    c.model.transformer.heads = c.model.transformer.layers = 2;
    c.training.epochs = 1;
    const std::string run = folder / std::string(name_of(tokens));
    LanguageRun(c, run).train();
    for (const char* name : {"config.yaml", "model.safetensors", "vocab.text.txt", "tokenizer.text.txt"}) {
      SCOPED_TRACE(name);
      const std::string path = run + "/" + name;
      const qkv_test::Seeds seeds{{qkv_test::file_bytes(path)},
                                  {"{", ": ", "-1", "0", "\n", "\\n", "<unk>", "bytes", "masked", "spans", "language"}};
      qkv_test::survives(seeds, path, qkv_test::mutants(100), [&](const std::string&) {
        const LanguageGenerator generator(run);
        const std::vector<std::string> prompts{"one", "x"};
        GenerateOptions options = generator.defaults();
        options.max_tokens = 3;
        if (generator.objective() == LanguageObjective::causal) generator.generate(prompts, options);
        generator.score("one two", verbatim("text"));
      });
    }
  }
}

}  // namespace qkv
