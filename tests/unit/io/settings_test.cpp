// Settings: YAML in, YAML out, and every way to get it wrong with its line.
#include "qkv/io/settings.h"

#include <gtest/gtest.h>

#include "qkv/core/check.h"

namespace qkv {
namespace {

enum class Cell { gru, lstm };
constexpr std::array<std::string_view, 2> names(Cell) { return {"gru", "lstm"}; }

struct Values {
  int64_t epochs = 10;
  double rate = 0.005;
  bool shuffle = true;
  Cell cell = Cell::gru;
  std::string file;

  Settings settings() {
    Settings s;
    s.add("training", "epochs", verbatim("passes over the data"), epochs, 0, 1000);
    s.add("training", "rate", verbatim("learning rate"), rate, 0);
    s.add("training", "shuffle", verbatim("new order every epoch"), shuffle);
    s.add("model", "cell", verbatim("the cell"), cell);
    s.add("model", "file_name", verbatim("a file"), file, "FILE");
    return s;
  }
};

std::string error_of(const std::string& yaml) {
  Values v;
  try {
    v.settings().parse(yaml, "run.yaml");
  } catch (const Error& e) {
    EXPECT_EQ(v.epochs, 10) << "a refused file changed a value";
    return e.hint().empty() ? e.what() : text(e.what(), " | ", e.hint().in(Language::en));
  }
  return "";
}

TEST(Settings, ReadsWhatIsNamedAndLeavesTheRest) {
  Values v;
  v.settings().parse("training:\n  epochs: 3\n  shuffle: false\nmodel:\n  cell: lstm\n  file_name: \"a b.txt\"\n",
                     "run.yaml");
  EXPECT_EQ(v.epochs, 3);
  EXPECT_FALSE(v.shuffle);
  EXPECT_EQ(v.rate, 0.005);
  EXPECT_EQ(v.cell, Cell::lstm);
  EXPECT_EQ(v.file, "a b.txt");
}

TEST(Settings, DumpReadsBackAsTheSameValues) {
  for (const std::string name :
       {"", "a b", "null", "1e5", "-x", "übung/文.tsv", "q\"uo\\te", "tab\there", "line\nend", "carriage\rreturn",
        "bell\a\x7f", "Null", "NULL", "~", "true", "# no comment", "a: b"}) {
    Values out;
    out.epochs = 7;
    out.rate = 1e-5;
    out.shuffle = false;
    out.file = name;
    EXPECT_TRUE(out.settings().dump().starts_with("training:\n  epochs: 7"));
    Values in;
    in.settings().parse(out.settings().dump(), "dump");
    EXPECT_EQ(in.epochs, 7);
    EXPECT_EQ(in.rate, 1e-5);
    EXPECT_FALSE(in.shuffle);
    EXPECT_EQ(in.file, name);
  }
}

TEST(Settings, DumpSaysWhichWordsThereAre) {
  const std::string dump = Values().settings().dump();
  EXPECT_NE(dump.find("# the cell (one of gru, lstm)\n"), std::string::npos) << dump;
  EXPECT_NE(dump.find("# new order every epoch\n"), std::string::npos) << dump;
}

TEST(Settings, RefusesWithLineAndSuggestion) {
  EXPECT_EQ(error_of("training:\n  epoch: 3\n"),
            "run.yaml:2: unknown key \"epoch\" in the block \"training\" | did you mean \"epochs\"?");
  EXPECT_EQ(error_of("traning:\n  epochs: 3\n"), "run.yaml:1: unknown block \"traning\" | did you mean \"training\"?");
  EXPECT_EQ(error_of("training:\n  epochs: 3\n  epochs: 4\n"), "run.yaml:3: the key \"training.epochs\" appears twice");
  EXPECT_EQ(error_of("training:\n  epochs: 3\ntraining:\n  rate: 1\n"),
            "run.yaml:3: the block \"training\" appears twice");
  EXPECT_EQ(error_of("training:\n  epochs: many\n"),
            "run.yaml:2: training.epochs: got \"many\", expected a whole number from 0 to 1000");
  EXPECT_EQ(error_of("training:\n  epochs: 3.5\n"),
            "run.yaml:2: training.epochs: got \"3.5\", expected a whole number from 0 to 1000");
  EXPECT_EQ(error_of("training:\n  epochs: -1\n"),
            "run.yaml:2: training.epochs: got \"-1\", expected a whole number from 0 to 1000");
  EXPECT_EQ(error_of("training:\n  epochs: 99999999999999999999\n"),
            "run.yaml:2: training.epochs: got \"99999999999999999999\", expected a whole number from 0 to 1000");
  EXPECT_EQ(error_of("training:\n  rate: -0.5\n"),
            "run.yaml:2: training.rate: got \"-0.5\", expected a number of at least 0");
  EXPECT_EQ(error_of("training:\n  rate: nan\n"),
            "run.yaml:2: training.rate: got \"nan\", expected a number of at least 0");
  EXPECT_EQ(error_of("training:\n  shuffle: yes\n"),
            "run.yaml:2: training.shuffle: got \"yes\", expected true or false");
  EXPECT_EQ(error_of("model:\n  cell: gruu\n"),
            "run.yaml:2: model.cell: got \"gruu\", expected one of gru, lstm | did you mean \"gru\"?");
  EXPECT_EQ(error_of("training:\n  epochs: [1, 2]\n"), "run.yaml:2: \"training.epochs\" must have one value");
  EXPECT_EQ(error_of("training: 3\n"), "run.yaml:1: the block \"training\" must hold \"key: value\" lines");
  EXPECT_EQ(error_of("- a\n- b\n"), "run.yaml: expected blocks of \"key: value\" lines");
  EXPECT_EQ(error_of("training:\n  epochs: 3\n  rate: x\n"),
            "run.yaml:3: training.rate: got \"x\", expected a number of at least 0");
  EXPECT_NE(error_of("training: {epochs: 3\n").find("not YAML"), std::string::npos);
  EXPECT_EQ(error_of("training:\n  epochs: 3\n---\ntraining:\n  epochs: 4\n"),
            "run.yaml:3: something follows the settings, expected one YAML document of blocks");
  EXPECT_EQ(error_of(""), "");
  EXPECT_EQ(error_of("training:\n"), "");
}

TEST(Settings, AnExpandingAliasIsRefusedNotWalked) {
  std::string bomb = "a: &a [x,x]\n";
  for (char c = 'b'; c < 'z'; ++c)
    bomb += text(c, ": &", c, " [*", static_cast<char>(c - 1), ",*", static_cast<char>(c - 1), "]\n");
  EXPECT_EQ(error_of(bomb), "run.yaml:1: unknown block \"a\"");
}

// yaml-cpp reads endless empty documents from a stray comma, and uses up all memory unless stopped.
TEST(Settings, AStrayCommaIsRefused) {
  const std::string more = "something follows the settings, expected one YAML document of blocks";
  EXPECT_EQ(error_of(","), "run.yaml:1: " + more);
  EXPECT_EQ(error_of("{},"), "run.yaml:1: " + more);
  EXPECT_EQ(error_of("{training: {epochs: 3}},"), "run.yaml:1: " + more);
  EXPECT_EQ(error_of("training:\n  epochs: 3\n,"), "run.yaml:3: not YAML: end of map not found");
  EXPECT_EQ(error_of("[a],"), "run.yaml: expected blocks of \"key: value\" lines");
  EXPECT_EQ(error_of("\"x\" ,"), "run.yaml: expected blocks of \"key: value\" lines");
}

TEST(Settings, NestsAndLongFilesAreRefusedWhereTheyBegin) {
  const std::string commas(200'000, ','), brackets(200'000, '[');
  EXPECT_NE(error_of("[" + commas).find("run.yaml"), std::string::npos);
  EXPECT_NE(error_of("training:\n  epochs: [" + commas).find("\"training.epochs\" must have one value"),
            std::string::npos);
  EXPECT_EQ(error_of(brackets), "run.yaml:1: the name of a block must be a word");
  EXPECT_EQ(error_of("training:\n  epochs: {a: b}\n"), "run.yaml:2: \"training.epochs\" must have one value");
  EXPECT_EQ(error_of("training:\n  ? [a]\n  : 3\n"), "run.yaml:2: a key must be a word");
  EXPECT_EQ(error_of("? {a: b}\n: 3\n"), "run.yaml:1: the name of a block must be a word");
  EXPECT_EQ(error_of("training: [1]\n"), "run.yaml:1: the block \"training\" must hold \"key: value\" lines");
  EXPECT_EQ(error_of("training:\n  epochs: &a 3\n  rate: *a\n"),
            "run.yaml:3: a setting cannot be an alias, expected its value");
  EXPECT_EQ(error_of(std::string((256 << 10) + 1, ' ')),
            "run.yaml: has 262,145 bytes; a configuration has at most 262,144");
}

TEST(Settings, FlagsAreKebabCase) {
  Values v;
  EXPECT_EQ(v.settings().find("model.file_name").flag, "--file-name");
  EXPECT_THROW(v.settings().find("model.nothing"), Error);
}

struct Block {
  int64_t width = 4;
  float dropout = 0.1f;
  std::optional<int64_t> heads;
  std::optional<float> share;
  Cell cell = Cell::gru;
  void fields(auto&& f) {
    f("width", verbatim("its width"), width, 1, 9);
    f("dropout", verbatim("its dropout"), dropout, 0, 0.99);
    f("heads", verbatim("its heads"), heads, Open{"same", "0"}, 1, 8);
    f("share", verbatim("its share"), share, Open{"same", "-1"}, 0, 1);
    f("cell", verbatim("its cell"), cell, std::vector{Cell::lstm});
  }
};

TEST(Settings, ABlockIsTheFieldsOfItsConfig) {
  Block b;
  Settings s;
  s.add_block("model", b);
  s.parse("model:\n  width: 7\n  dropout: 0.3\n  heads: 2\n  share: 0.25\n  cell: lstm\n", "run.yaml");
  EXPECT_EQ(b.width, 7);
  EXPECT_EQ(b.dropout, 0.3f);
  EXPECT_EQ(b.heads, 2);
  EXPECT_EQ(b.share, 0.25f);
  EXPECT_EQ(s.find("model.dropout").get(), "0.3");
  EXPECT_THROW(s.find("model.cell").set("gru", "--cell"), Error);
}

TEST(Settings, AValueMayBeLeftOpenByAWordOrByWhatOlderFilesHave) {
  Block b{.heads = 2, .share = 0.5f};
  Settings s;
  s.add_block("model", b);
  s.parse("model:\n  heads: 0\n  share: -1\n", "run.yaml");
  EXPECT_FALSE(b.heads || b.share);
  EXPECT_EQ(s.find("model.heads").get(), "same");
  s.find("model.heads").set("3", "--heads");
  s.find("model.heads").set("same", "--heads");
  EXPECT_FALSE(b.heads);
  try {
    s.find("model.heads").set("9", "--heads");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "--heads: got \"9\", expected a whole number from 1 to 8, or same");
  }
}

TEST(Settings, ReadsWhatOlderFilesHave) {
  Values v;
  Settings s = v.settings();
  s.accept("training.passes", "training.epochs");
  s.drop("training.colour");
  s.accept_value("model.cell", "auto", "lstm");
  s.parse("training:\n  passes: 4\n  colour: red\nmodel:\n  cell: auto\n", "run.yaml");
  EXPECT_EQ(v.epochs, 4);
  EXPECT_EQ(v.cell, Cell::lstm);
  EXPECT_EQ(s.dump().find("colour"), std::string::npos);
  EXPECT_THROW(s.parse("training:\n  passes: 4\n  epochs: 5\n", "run.yaml"), Error);
}

TEST(Settings, SaysWhyAKeyIsUnknown) {
  Values v;
  Settings s = v.settings();
  s.explain("model.heads", verbatim("it is a setting of transformer"));
  try {
    s.parse("model:\n  heads: 4\n", "run.yaml");
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "run.yaml:2: unknown key \"heads\" in the block \"model\": it is a setting of transformer");
  }
}

TEST(Settings, AKeyOfTwoBlocksHasTheSecondBlockInItsFlag) {
  int64_t a = 0, b = 0;
  Settings s;
  s.add("model", "max_rows", verbatim(""), a);
  s.add("book", "max_rows", verbatim(""), b);
  EXPECT_EQ(s.find("model.max_rows").flag, "--max-rows");
  EXPECT_EQ(s.find("book.max_rows").flag, "--book-max-rows");
}

TEST(Settings, OneSettingIsFoundAmongAnythingElse) {
  const std::string yaml = "other:\n  x: 1\nmodel:\n  unknown: 3\n  cell: lstm\n";
  const auto found = find_setting(yaml, "run.yaml", "model.cell");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, "lstm");
  EXPECT_EQ(found->where, "run.yaml:5: model.cell");
  EXPECT_FALSE(find_setting(yaml, "run.yaml", "model.kind"));
}

}  // namespace
}  // namespace qkv
