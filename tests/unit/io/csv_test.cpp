// CSV as spreadsheets write it, and every way it can be wrong.
#include "qkv/io/csv.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "qkv/core/check.h"
#include "qkv/core/rng.h"
#include "support/files.h"

using namespace qkv;

namespace {

using Names = std::vector<std::string>;
using Column = std::vector<double>;

CsvContent parse(std::string_view text, const CsvOptions& options = {}) { return parse_csv(text, "d.csv", options); }

using qkv_test::error_of;

std::string error_in(std::string_view text, const CsvOptions& options = {}) {
  return error_of([&] { parse(text, options); });
}

}  // namespace

TEST(Csv, FirstLineIsAHeaderWhenACellIsText) {
  EXPECT_EQ(parse("x,y\n1,2\n").table.names, (Names{"x", "y"}));
  EXPECT_EQ(parse("1,y\n1,2\n").table.names, (Names{"1", "y"}));
  const Table bare = parse("1,2\n3,4\n").table;
  EXPECT_EQ(bare.names, (Names{"1", "2"}));
  EXPECT_EQ(bare.columns[0], (Column{1, 3}));
  EXPECT_EQ(parse("1,\n3,4\n", {.missing = Missing::drop_row}).table.columns[1],
            (Column{4}));  // an empty cell is not text
}

TEST(Csv, ReadsMarksLineEndsSeparatorsQuotesAndSpaces) {
  EXPECT_EQ(parse("\xEF\xBB\xBF腰围,体重\r\n51,40\r\n").table.names, (Names{"腰围", "体重"}));
  EXPECT_EQ(parse("a;b\n1;2").table.columns[1], (Column{2}));
  EXPECT_EQ(parse("a\tb\n1\t2\n").table.columns[1], (Column{2}));
  EXPECT_EQ(parse("a,b\r1,2\r3,4").table.columns[0], (Column{1, 3}));
  const Table quoted = parse("\"a, \"\"b\"\"\",\"two\nlines\"\n \"1\" , 2 \n\n+3,-4e-1\n").table;
  EXPECT_EQ(quoted.names, (Names{"a, \"b\"", "two\nlines"}));
  EXPECT_EQ(quoted.columns[0], (Column{1, 3}));
  EXPECT_EQ(quoted.columns[1], (Column{2, -0.4}));
  EXPECT_EQ(parse("\"x;y\",z\n1,2\n").table.columns[1], (Column{2}));  // a semicolon in quotes is not a separator
  EXPECT_EQ(parse("x\n1e-999\n").table.columns[0], (Column{0}));
}

TEST(Csv, TakesTheNamedColumnsInOrderAndIgnoresTextElsewhere) {
  const Table t = parse("name,waist,weight\nAnn,51,40\nBob,56,43\n", {.columns = {"weight", "2"}}).table;
  EXPECT_EQ(t.names, (Names{"weight", "waist"}));
  EXPECT_EQ(t.columns[0], (Column{40, 43}));
  EXPECT_EQ(t.columns[1], (Column{51, 56}));
}

TEST(Csv, ErrorsNameTheLineTheColumnAndTheCell) {
  EXPECT_EQ(error_in("x,weight\n1,2\n1,2\n1,2\n1,2\n1,2\n7,abc\n"),
            "d.csv: line 7, column \"weight\": expected a number, found \"abc\"");
  EXPECT_EQ(error_in("\"a\nb\",y\n1,2\n3,x\n"), "d.csv: line 4, column \"y\": expected a number, found \"x\"");
  EXPECT_EQ(error_in("x,y\n1,1.5.2\n"), "d.csv: line 2, column \"y\": expected a number, found \"1.5.2\"");
  EXPECT_EQ(error_in("x;y\n1;1,5\n"), "d.csv: line 2, column \"y\": expected a number, found \"1,5\"");
  EXPECT_EQ(error_in("x,y\n1,inf\n"), "d.csv: line 2, column \"y\": expected a number, found \"inf\"");
  EXPECT_EQ(error_in("x,y\n1,1e999\n"), "d.csv: line 2, column \"y\": expected a number, found \"1e999\"");
  EXPECT_EQ(error_in("x,y\n1,2\n1,2,3\n"), "d.csv: line 3 has 3 cells, the first line has 2");
  EXPECT_EQ(error_in("x,y\n1\n"), "d.csv: line 2 has 1 cells, the first line has 2");
  EXPECT_EQ(error_in(""), "d.csv: is empty");
  EXPECT_EQ(error_in("\n\r\n  \n"), "d.csv: is empty");
  EXPECT_EQ(error_in("x,y\n1,\"2\n"), "d.csv: line 2: a quote is opened and never closed");
  EXPECT_EQ(error_in("x,y\n1,\"2\"3\n"), "d.csv: line 2: expected a separator after a quoted cell, found \"3\"");
  EXPECT_EQ(error_in("x,y\n1,2\n", {.columns = {"z"}}),
            "d.csv: there is no column \"z\"; the columns are \"x\", \"y\"");
  EXPECT_EQ(error_in("x,x\n1,2\n", {.columns = {"x"}}), "d.csv: two columns are called \"x\": name it by its number");
  EXPECT_EQ(error_in("\xFF\xFEx"), "d.csv: is UTF-16, expected UTF-8");
  EXPECT_EQ(error_in("x,y\n1," + std::string(50, 'q') + "\n"),
            "d.csv: line 2, column \"y\": expected a number, found \"" + std::string(40, 'q') + "...\"");
  EXPECT_EQ(error_of([] { read_csv("/nowhere/x.csv"); }), "cannot open /nowhere/x.csv: No such file or directory");
}

TEST(Csv, MissingNumbersAreNamedOrTheirRowsDropped) {
  EXPECT_EQ(error_in("x,y\n1,2\n3,\n"), "d.csv: line 3, column \"y\": expected a number, the cell is empty");
  EXPECT_EQ(error_in("x,y\n1,2\nNaN,3\n"), "d.csv: line 3, column \"x\": expected a number, found \"NaN\"");
  const CsvContent content = parse("x,y\n1,2\nNA,3\n4,\n5,null\n6,7\n", {.missing = Missing::drop_row});
  EXPECT_EQ(content.dropped, 3);
  EXPECT_EQ(content.table.columns[0], (Column{1, 6}));
  EXPECT_EQ(content.table.columns[1], (Column{2, 7}));
}

TEST(Csv, WhatIsWrittenReadsBackBitForBit) {
  Table table{{"plain", "with, \"all\"\nof it", "腰围"}, {{}, {}, {}}};
  const Rng rng(3);
  for (uint64_t i = 0; i < 200; ++i) {
    table.columns[0].push_back(rng.normal(i));
    table.columns[1].push_back(std::ldexp(rng.word(i) * 1.1, static_cast<int>(i % 120) - 60));
    table.columns[2].push_back(i == 0 ? 0.1 : i == 1 ? -0.0 : i == 2 ? 5e-324 : 1.7976931348623157e308);
  }
  const auto path = (std::filesystem::temp_directory_path() / text("qkv-csv-", ::getpid(), ".csv")).string();
  write_csv(path, table);
  const Table back = read_csv(path).table;
  EXPECT_EQ(csv_columns(path), table.names);
  std::filesystem::remove(path);
  EXPECT_EQ(back.names, table.names);
  for (int c = 0; c < 3; ++c)
    EXPECT_EQ(std::memcmp(back.columns[c].data(), table.columns[c].data(), 200 * sizeof(double)), 0);
  EXPECT_EQ(csv_text({{"x", "y"}, {{1, 2.5}, {NAN, 4}}}), "x,y\n1,\n2.5,4\n");
  EXPECT_EQ(error_of([] { csv_text({{"x"}, {{1}, {2}}}); }), "[csv] 1 names for 2 columns");
  EXPECT_EQ(error_of([] { csv_text({{"x", "y"}, {{1}, {2, 3}}}); }), "[csv] column \"y\" has 2 rows, the first has 1");
}

TEST(Csv, NoBytesCrashTheReader) {
  const std::string alphabet = "1,;\t\"\r\n x.e-+\xEF\xBB\xBF";
  const Rng rng(11);
  for (uint64_t round = 0; round < 20000; ++round) {
    std::string text;
    const uint64_t length = rng.at(round).below(24, 0);
    for (uint64_t i = 1; i <= length; ++i) text += alphabet[rng.at(round).below(alphabet.size(), i)];
    try {
      const CsvContent content = parse(text, {.missing = round % 2 ? Missing::refuse : Missing::drop_row});
      for (const auto& column : content.table.columns) {
        ASSERT_EQ(static_cast<int64_t>(column.size()), content.table.rows());
        for (const double value : column) ASSERT_TRUE(std::isfinite(value));
      }
    } catch (const Error& error) {
      ASSERT_EQ(std::string(error.what()).rfind("d.csv: ", 0), 0u) << error.what();
      ASSERT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
}
