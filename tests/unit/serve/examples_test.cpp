// Sentences to begin with, for models of other data than the built-in corpus.
#include "qkv/serve/examples.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace qkv::serve {
namespace {

namespace fs = std::filesystem;

class Examples : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder); }
  void TearDown() override { fs::remove_all(folder); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder / name) << content;
    return folder / name;
  }
  fs::path folder = fs::temp_directory_path() / ("qkv-examples-" + std::to_string(::getpid()));
};

using Texts = std::vector<std::string>;

TEST_F(Examples, AreLinesOfTheValidationOrElseOfTheTraining) {
  TranslationConfig config;
  config.data.source = file("train.en", "Go.\n\nTwo men are standing near a truck.\nA dog runs on the green grass.\n");
  config.data.target = file("train.de", "Los.\n\nZwei Männer stehen neben einem Lastwagen.\n");
  EXPECT_EQ(example_texts(config, folder / "runs/one"),
            (Texts{"Two men are standing near a truck.", "A dog runs on the green grass."}));
  config.data.reverse = true;
  EXPECT_EQ(example_texts(config, folder / "runs/one"), (Texts{"Zwei Männer stehen neben einem Lastwagen."}));
  config.data.valid_target = file("valid.de", "Ein Kind spielt im Garten.\r\n");
  EXPECT_EQ(example_texts(config, folder / "runs/one"), (Texts{"Ein Kind spielt im Garten."}));
}

TEST_F(Examples, AreOneSideOfPairsAndShortIfAllOfThemAre) {
  TranslationConfig config;
  config.data.pairs = file("pairs.tsv", "Go.\tVa !\tlicence\nGo.\tMarche.\nHi.\tSalut !\nno tab\n");
  EXPECT_EQ(example_texts(config, folder / "runs/one"), (Texts{"Go.", "Hi."}));
  config.data.reverse = true;
  EXPECT_EQ(example_texts(config, folder / "runs/one"), (Texts{"Va !", "Marche.", "Salut !"}));
}

TEST_F(Examples, AreNoneIfTheFileIsGoneOrCompressed) {
  TranslationConfig config;
  config.data.pairs = "gone.tsv";
  EXPECT_TRUE(example_texts(config, folder / "runs/one").empty());
  config.data.pairs = file("pairs.tsv.gz", "this is not read at all\tceci\n");
  EXPECT_TRUE(example_texts(config, folder / "runs/one").empty());
}

TEST_F(Examples, AreFoundNearTheRun) {
  TranslationConfig config;
  file("qkv-examples.tsv", "Go.\tVa !\n");
  config.data.pairs = "qkv-examples.tsv";
  fs::create_directories(folder / "runs/one");
  EXPECT_EQ(example_texts(config, folder / "runs/one"), (Texts{"Go."}));
  EXPECT_EQ(example_texts(config, folder / "runs"), (Texts{"Go."}));
}

TEST_F(Examples, OfALanguageModelAreBeginnings) {
  LanguageConfig config;
  EXPECT_EQ(example_texts(config, folder / "runs/one"), (Texts{"the little cat ", "she reads "}));
  config.data.text = file("text.txt", "It was a dark and stormy night in the old town.\n");
  EXPECT_EQ(example_texts(config, folder / "runs/one"), (Texts{"It was a dark and"}));
}

TEST_F(Examples, OfTheBuiltInCorpusAreThoseOfTheSideThatIsRead) {
  TranslationConfig config;
  config.data.pairs = "en-fr";
  const Texts english = example_texts(config, folder / "runs/one");
  ASSERT_EQ(english.size(), 6);
  config.data.reverse = true;
  EXPECT_NE(example_texts(config, folder / "runs/one"), english);
}

}  // namespace
}  // namespace qkv::serve
