// Mutants of the files of a model's folder: it is loaded and translates, or is refused.
#include "../tasks/translation_fixture.h"
#include "mutator.h"
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

}  // namespace qkv
