// The .po reader, and the laws of the Chinese catalogue.
#include "qkv/core/catalogue.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "qkv/core/check.h"
#include "qkv/core/chinese.h"

namespace qkv {
namespace {

// The program makes its catalogue known when it starts; so do these tests.
[[maybe_unused]] const bool ready = [] {
  add_catalogue(Language::zh, std::string(chinese_catalogue()));
  return true;
}();

std::string refusal(std::string_view po) {
  try {
    read_po(po);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Catalogue, ReadsStringsOverSeveralLinesWithEscapes) {
  const auto entries = read_po(
      "# a comment\nmsgid \"\"\nmsgstr \"Language: zh\\n\"\n\n#: file.cpp\nmsgid \"\"\n\"one \\\"two\\\"\"\n"
      "\"\\n\\\\three\\t\"\n"
      "msgstr \"一\"\n\n#, fuzzy\nmsgid \"b\"\nmsgstr \"二\"");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].english, "one \"two\"\n\\three\t");
  EXPECT_EQ(entries[0].translation, "一");
  EXPECT_FALSE(entries[0].fuzzy);
  EXPECT_EQ(entries[1].english, "b");
  EXPECT_TRUE(entries[1].fuzzy);
}

TEST(Catalogue, DamageIsRefusedWithTheLine) {
  EXPECT_EQ(refusal("msgid \"a\"\nmsgstr \"b"), "[read_po] line 2: expected a string in quotes");
  EXPECT_EQ(refusal("msgid \"a\\q\""), "[read_po] line 1: unknown escape \\q");
  EXPECT_EQ(refusal("\"a\""), "[read_po] line 1: expected msgid, msgstr or a string, got \"a\"");
  EXPECT_EQ(refusal("msgstr \"a\""), "[read_po] line 1: a msgstr without msgid");
  EXPECT_EQ(refusal("msgid \"a\"\nmsgid_plural \"b\""),
            "[read_po] line 2: expected msgid, msgstr or a string, got msgid_plural \"b\"");
  EXPECT_EQ(read_po("").size(), 0u);
}

// {name} and {name:format}; TeX's braces are the same in both languages too.
std::multiset<std::string> fields(const std::string& text) {
  static const std::regex field("\\{[a-z_0-9]+(:[^}]*)?\\}");
  std::multiset<std::string> out;
  for (std::sregex_iterator at(text.begin(), text.end(), field), end; at != end; ++at) out.insert(at->str());
  return out;
}

TEST(Catalogue, EverySentenceIsTranslatedOnceWithTheSameFields) {
  std::set<std::string> seen;
  for (const CatalogueEntry& entry : read_po(chinese_catalogue())) {
    EXPECT_TRUE(seen.insert(entry.english).second) << entry.english;
    EXPECT_FALSE(entry.fuzzy) << entry.english;
    EXPECT_FALSE(entry.translation.empty()) << entry.english;
    const auto wanted = fields(entry.english), got = fields(entry.translation);
    EXPECT_EQ(std::set(wanted.begin(), wanted.end()), std::set(got.begin(), got.end())) << entry.english << "\n"
                                                                                        << entry.translation;
    EXPECT_EQ(entry.english.ends_with('\n'), entry.translation.ends_with('\n')) << entry.english;
  }
  EXPECT_GT(seen.size(), 1500u);
}

}  // namespace
}  // namespace qkv
