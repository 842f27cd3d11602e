// Numbers in text and tables as a book sets them.
#include "qkv/labs/typeset.h"

#include <gtest/gtest.h>

#include "qkv/labs/render.h"

using namespace qkv;
using namespace qkv::labs;

TEST(Typeset, PowersOfTenHaveThreeDigitsAtMost) {
  EXPECT_EQ(typeset("1.2554996e-08"), "1.26 × 10⁻⁸");
  EXPECT_EQ(typeset("max |Δ| = 1.2e-07, -3e+12."), "max |Δ| = 1.2 × 10⁻⁷, −3 × 10¹².");
  EXPECT_EQ(typeset("1e-07"), "10⁻⁷");
  EXPECT_EQ(typeset("9.999e-08"), "1.00 × 10⁻⁷");
  EXPECT_EQ(typeset("5.00000e-01"), "0.500");
  EXPECT_EQ(typeset("1.5e-03"), "0.0015");
  EXPECT_EQ(typeset("6e+04"), "60000");
}

TEST(Typeset, LeavesOtherTextUnchanged) {
  for (const char* same : {"`1e-08 -1` and $-10^{-6}$", "2e", "a1e-05", "0x1e-5", "1.5.2", "10–20", "3-4", "1e-5x"})
    EXPECT_EQ(typeset(same), same);
  EXPECT_EQ(typeset("-0.5, x = -2"), "−0.5, x = −2");
}

TEST(Typeset, NumbersInTablesAreFlushRight) {
  const Lab lab{"1", "lab", verbatim("Lab"), {}};
  Page page({});
  page.table({verbatim("name"), verbatim("value"), verbatim("time"), verbatim("shape")},
             {{"a", "1.2554996e-08", "1.5 ms", "(2, 3)"}, {"2", "-0.5", "-", "(10, 3)"}});
  const Table& table = std::get<Table>(page.blocks()[0]);
  const bool expected[] = {false, true, true, false};
  for (size_t c = 0; c < 4; ++c) EXPECT_EQ(is_number_column(table, c, Language::en), expected[c]) << c;
  const std::string note = markdown(lab, page, Language::en), report = html_report({{&lab, page, 1}}, Language::en);
  EXPECT_NE(
      note.find(
          "| name | value | time | shape |\n|---|---:|---:|---|\n| a | 1.26 × 10⁻⁸ | 1.5 ms | (2, 3) |\n| 2 | −0.5 |"),
      note.npos)
      << note;
  EXPECT_NE(report.find("<th class=\"number\">value</th>"), report.npos);
  EXPECT_NE(report.find("<td>2</td><td class=\"number\">−0.5</td>"), report.npos);
  EXPECT_NE(plain(page.blocks()[0], Language::en).find("1.26 × 10⁻⁸"), std::string::npos);
}
