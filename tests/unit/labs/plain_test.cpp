// Blocks, tables and lines as a terminal shows them.
#include <gtest/gtest.h>

#include "qkv/labs/plain_table.h"
#include "qkv/labs/render.h"
#include "qkv/labs/work.h"
#include "qkv/labs/wrap.h"
#include "qkv/train/progress.h"
#include "unit/labs/labs_support.h"

using namespace qkv;
using namespace qkv::labs;

namespace {

int widest_line(const std::string& text) {
  int widest = 0;
  for (const std::string& line : wrapped_lines(text, 1 << 20)) widest = std::max(widest, columns_of(line));
  return widest;
}

}  // namespace

TEST(Wrap, BreaksAtSpacesAndBetweenWideCharacters) {
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("注意力汇聚", 4), "注意\n力汇\n聚");
  EXPECT_EQ(wrapped("键key值", 5), "键key\n值");
}

TEST(Wrap, IndentsTheLinesAfterTheFirst) {
  EXPECT_EQ(wrapped("ok    one two three", 11, 6), "ok    one\n      two\n      three");
}

TEST(Wrap, NoLineBeginsWithAClosingMarkOrEndsWithAnOpeningOne) {
  EXPECT_EQ(wrapped("查询和键，值", 8), "查询和\n键，值");
  EXPECT_EQ(wrapped("查询（键）", 6), "查询\n（键）");
}

TEST(Wrap, BreaksAWordOnlyWhenItIsWiderThanALine) { EXPECT_EQ(wrapped("a abcdefgh b", 4), "a\nabcd\nefgh\nb"); }

TEST(Wrap, EscapeCodesTakeNoColumns) {
  EXPECT_EQ(columns_of("\x1b[1mab\x1b[0m"), 2);
  EXPECT_EQ(wrapped("\x1b[1mone\x1b[0m two", 7), "\x1b[1mone\x1b[0m two");
}

TEST(PlainTable, PutsNumbersToTheRight) {
  EXPECT_EQ(plain_table({"name", "count"}, {{"a", "5"}, {"bcd", "1,200"}}, 80, false),
            "  name  count\n"
            "  -----------\n"
            "  a         5\n"
            "  bcd   1,200\n");
}

TEST(PlainTable, BreaksCellsThatDoNotFit) {
  EXPECT_EQ(plain_table({"what", "why"}, {{"x", "one two three four"}}, 18, false),
            "  what  why\n"
            "  ----------------\n"
            "  x     one two\n"
            "        three four\n");
}

TEST(PlainTable, ContinuesBelowWhenItsWordsDoNotFit) {
  const std::string table = plain_table({"row", "aaaaaaaa", "bbbbbbbb", "cccccccc"}, {{"x", "1", "2", "3"}}, 26, false);
  EXPECT_EQ(table,
            "  row  aaaaaaaa  bbbbbbbb\n"
            "  -----------------------\n"
            "  x           1         2\n"
            "\n"
            "  row  cccccccc\n"
            "  -------------\n"
            "  x           3\n");
}

TEST(Plain, NoBlockIsWiderThanItsTerminal) {
  Page page({});
  page.heading(in_both("A heading that is rather long for such a narrow terminal",
                       "对这么窄的终端来说相当长的一个标题，还要再长一些才行"));
  page.say(in_both("Words and `code` and $p_q = p_k$ and **strong** words in a paragraph.",
                   "一段话里有词、`代码`、公式 $p_q = p_k$ 和**重点**，超过一行。"));
  page.formula("f(x) = \\sum_{i=1}^n \\frac{K(x - x_i)}{\\sum_{j=1}^n K(x - x_j)} y_i");
  page.print(verbatim("a line of output that a program printed and that is long"));
  page.table(
      {in_both("one column", "一列"), in_both("another column", "另一列"), in_both("and a third one", "以及第三列")},
      {{"1", "2", "3"}});
  page.draw("curve", curves({{"y", {1, 2, 3}, {1, 4, 9}}}, {.label = "x"}, {.label = "y"}),
            in_both("A curve with a caption of some length.", "一条曲线，图注有一定长度。"));
  page.claim(true, in_both("A claim of more words than the line holds.", "一条比一行更长的论断，需要换行显示。"),
             in_both("1.000 against 2.000", "1.000，对照为 2.000"));
  for (const bool colour : {false, true})
    for (const Language language : {Language::en, Language::zh})
      for (const Block& block : page.blocks())
        EXPECT_LE(
            widest_line(plain(block, language, {.columns = 40, .colour = colour, .figures = true, .folder = "out"})),
            40);
}

TEST(Plain, ColoursAreUsedOnlyWhenAskedFor) {
  Page page({});
  page.heading(verbatim("Head"));
  page.claim(true, verbatim("It holds."), verbatim("1"));
  page.claim(false, verbatim("It does not."), verbatim("2"));
  EXPECT_EQ(plain(page.blocks()[0], Language::en, {.colour = true}), "\n\x1b[1m== Head ==\x1b[0m\n");
  EXPECT_EQ(plain(page.blocks()[1], Language::en, {.colour = true}),
            "\x1b[32mok\x1b[0m    It holds. \x1b[2m[1]\x1b[0m\n");
  EXPECT_EQ(plain(page.blocks()[1], Language::en), "ok    It holds. [1]\n");
  EXPECT_TRUE(plain(page.blocks()[2], Language::en, {.colour = true}).starts_with("\x1b[1;31mFAILED\x1b[0m"));
}

TEST(Plain, FiguresAreDrawnOrOnlyNamed) {
  Page page({});
  page.draw("curve", curves({{"y", {1, 2, 3}, {1, 4, 9}}}, {.label = "x"}, {.label = "y"}), verbatim("A curve."));
  const Block& figure = page.blocks()[0];
  EXPECT_EQ(plain(figure, Language::en), "[figure curve] A curve.\n");
  EXPECT_EQ(plain(figure, Language::en, {.folder = "lab"}), "[figure curve] A curve.\n  lab/curve.svg\n");
  EXPECT_GT(wrapped_lines(plain(figure, Language::en, {.figures = true}), 200).size(), 10u);
}

TEST(Work, AddsUpItsPartsAndEndsWithOne) {
  Page page({});
  std::vector<double> seen;
  page.at_work = [&](const Text& what, double done) {
    EXPECT_EQ(what.in(Language::en), "training");
    seen.push_back(done);
  };
  {
    Work work(page, verbatim("training"), 2);
    work.at(0, 0.5);
    work.at(1, 1);
    WorkObserver follower(work, 0);
    follower.step({.step = 3, .steps = 4});
    follower.finished({});
  }
  EXPECT_EQ(seen, (std::vector<double>{0.25, 0.75, 0.875, 1}));
}

TEST(LogPace, IsDueHalfAMinuteAfterTheLastLine) {
  LogPace pace;
  EXPECT_FALSE(pace.due(29.9));
  EXPECT_TRUE(pace.due(30));
  EXPECT_FALSE(pace.due(59));
  pace.written(59);
  EXPECT_FALSE(pace.due(88));
  EXPECT_TRUE(pace.due(89));
}
